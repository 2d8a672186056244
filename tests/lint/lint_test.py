#!/usr/bin/env python3
"""The checks themselves: each finds what it is for, and passes what is allowed."""

import pathlib
import tempfile
import unittest

import formatting
import layering
import links
import test_files
import words
from tree import Tree, code_only


class LintCase(unittest.TestCase):
    def problems(self, check, files):
        """What `check` says of a tree with these files (name -> text)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check(Tree(folder))


class LayeringTest(LintCase):
    def test_a_folder_may_include_itself_and_what_is_below(self):
        self.assertEqual(self.problems(layering.check, {
            "core/a.h": "#include <vector>\n#include <sys/eventfd.h>\n",
            "wan/b.h": '#include "core/a.h"\n#include "wan/c.h"\n#include "isthmus/status.h"\n'}), [])

    def test_a_folder_may_not_include_what_is_above_or_beside(self):
        for name, included in (("core/a.h", "proto/b.h"), ("worker/a.cc", "server/b.h"),
                               ("server/a.cc", "worker/b.h"), ("wan/a.cc", "compression/codec.h"),
                               ("compression/a.h", "proto/b.h"), ("trainer/a.cc", "server/b.h")):
            found = self.problems(layering.check, {name: f'\n#include "{included}"\n'})
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(f"{name}:2: "), found)

    def test_a_library_is_named_in_its_folder_only(self):
        allowed = {"transport/a.cc": "zmq.hpp", "wan/a.cc": "boost/asio/ssl.hpp", "apps/a.cc": "CLI/CLI.hpp",
                   "proto/a.cc": "google/protobuf/message.h", "trainer/a.cc": "torch/torch.h",
                   "compression/kernels/a.cc": "hwy/highway.h", "core/config_file.cc": "yaml-cpp/yaml.h"}
        self.assertEqual(self.problems(
            layering.check, {k: f"#include <{v}>\n" for k, v in allowed.items()}), [])
        for name, included in (("server/a.cc", "zmq.h"), ("server/a.cc", "boost/asio/post.hpp"),
                               ("worker/a.cc", "torch/torch.h"), ("core/mailbox.cc", "yaml-cpp/yaml.h"),
                               ("core/a.cc", "boost/optional.hpp"), ("core/a.cc", "absl/strings/str_cat.h")):
            self.assertEqual(len(self.problems(layering.check, {name: f"#include <{included}>\n"})), 1)

    def test_a_public_header_stands_on_the_standard_library(self):
        self.assertEqual(self.problems(
            layering.check, {"include/isthmus/a.h": '#include <span>\n#include "isthmus/b.h"\n'}), [])
        for line in ('#include "core/a.h"', "#include <zmq.h>", "#include <sys/types.h>"):
            self.assertEqual(len(self.problems(layering.check, {"include/isthmus/a.h": line})), 1)

    def test_cmake_links_follow_the_same_table(self):
        def files(folder, name, linked):
            return {"trainer/CMakeLists.txt": "isthmus_module(NAME models SOURCES a.cc)\n",
                    "core/CMakeLists.txt": "isthmus_module(\n  NAME core SOURCES a.cc)  # isthmus::models\n",
                    f"{folder}/CMakeLists.txt": f"isthmus_module(NAME {name} DEPENDS {linked})\n"}
        for allowed in (files("wan", "wan", "isthmus::core"), files("apps", "app", "isthmus::models")):
            self.assertEqual(self.problems(layering.check, allowed), [])
        for forbidden in (files("server", "server", "isthmus::models"),
                          files("core", "core", "isthmus::models")):
            self.assertEqual(len(self.problems(layering.check, forbidden)), 1)


class WordsTest(LintCase):
    def test_what_is_written_in_comments_and_strings_does_not_count(self):
        self.assertEqual(self.problems(words.check, {
            "wan/a.cc": '// std::mutex, the van\nauto s = "std::mutex";  /* getenv(\n */\n'}), [])

    def test_each_rule_finds_its_offender_and_spares_its_exception(self):
        cases = [("std::mutex m;", "wan/a.cc", "core/a.cc"),
                 ("std::scoped_lock lock(m);", "server/a.cc", "core/a.cc"),
                 ("std::this_thread::sleep_for(1s);", "tests/wan/a_test.cc", "trainer/synthetic.cc"),
                 ('auto x = std::getenv("X");', "core/a.cc", "tests/core/a_test.cc"),
                 ('std::printf("x");', "server/a.cc", "apps/a.cc"),
                 ("class VanTable;", "core/a.h", "docs/a.h2"),
                 ("int num_customers, customer_id;", "core/a.h", "docs/a.h2")]
        for text, bad, good in cases:
            self.assertEqual(len(self.problems(words.check, {bad: text})), 1, text)
            self.assertEqual(self.problems(words.check, {good: text}), [], text)

    def test_a_word_counts_whole(self):
        self.assertEqual(self.problems(words.check, {
            "core/a.h": "int relevant, advance, kAdvanced; std::snprintf(b, n, f); "}), [])

    def test_python_tests_do_not_sleep(self):
        text = "import time\ntime.sleep(1)\n"
        self.assertEqual(len(self.problems(words.check, {"tests/integration/a_test.py": text})), 1)

    def test_paths_of_one_machine_are_found(self):
        path = "/".join(("", "home", "me", "isthmus"))
        self.assertEqual(len(self.problems(words.check, {"docs/a.md": f"cd {path}\n"})), 1)
        self.assertEqual(self.problems(words.check, {"docs/a.md": "https://example.org/home/page\n"}), [])


class TestFilesTest(LintCase):
    def test_a_source_wants_its_test(self):
        self.assertEqual(len(self.problems(test_files.check, {"wan/link.cc": ""})), 1)
        self.assertEqual(self.problems(
            test_files.check, {"wan/link.cc": "", "tests/wan/link_test.cc": ""}), [])
        self.assertEqual(self.problems(
            test_files.check, {"apps/keys.cc": "", "tests/integration/keys_test.py": ""}), [])
        self.assertEqual(self.problems(
            test_files.check, {"compression/kernels/cpu.cc": "", "tests/compression/kernels_test.cc": ""}), [])

    def test_an_exception_must_be_needed_and_true(self):
        line = "wan/link.cc tests/wan/tls_test.cc because\n"
        files = {"wan/link.cc": "", "tests/wan/tls_test.cc": "", test_files.EXCEPTIONS: line}
        self.assertEqual(self.problems(test_files.check, files), [])
        self.assertEqual(len(self.problems(test_files.check, files | {"tests/wan/link_test.cc": ""})), 1)
        self.assertEqual(len(self.problems(
            test_files.check, {"wan/link.cc": "", test_files.EXCEPTIONS: line})), 1)


class FormattingTest(LintCase):
    def test_finds_a_file_that_clang_format_would_change(self):
        style = {".clang-format": "BasedOnStyle: Google\n"}
        self.assertEqual(self.problems(formatting.check, style | {"core/a.h": "int a;\n"}), [])
        self.assertEqual(len(self.problems(formatting.check, style | {"core/a.h": "int  a ;\n"})), 1)


class LinksTest(LintCase):
    def test_finds_a_link_to_nowhere(self):
        text = "[a](../core/a.h#part) [b](decisions/) [c](https://example.org/x) [d]({})\n"
        files = {"core/a.h": "", "docs/decisions/1.md": ""}
        self.assertEqual(self.problems(links.check, files | {"docs/x.md": text.format("x.md")}), [])
        self.assertEqual(len(self.problems(links.check, files | {"docs/x.md": text.format("y.md")})), 1)


class CodeOnlyTest(unittest.TestCase):
    def test_keeps_lines_and_code(self):
        text = 'int a = 1\'000;  // x\nauto s = R"(" // no)";\nchar c = \'"\'; int b; /* two\nlines */ int d;\n'
        code = code_only(text)
        self.assertEqual(code.count("\n"), text.count("\n"))
        for kept in ("1'000;", "int b;", "int d;"):
            self.assertIn(kept, code)
        for gone in ("no", "lines", "// x"):
            self.assertNotIn(gone, code)


if __name__ == "__main__":
    unittest.main()
