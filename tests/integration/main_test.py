"""The `isthmus` command itself: every verb answers --help, errors have their exit code."""

import re
import subprocess
import unittest

import environment


def isthmus(*arguments):
    return subprocess.run([environment.isthmus, *arguments], capture_output=True, text=True, timeout=60, check=False)


class MainTest(unittest.TestCase):
    def test_every_verb_of_the_help_has_help(self):
        done = isthmus("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        verbs = re.findall(r"^  (\w+) ", done.stdout, re.MULTILINE)
        self.assertIn("emulate", verbs)
        self.assertIn("keys", verbs)
        for verb in verbs:
            for arguments in ((verb, "--help"), ("help", verb)):
                done = isthmus(*arguments)
                self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
                self.assertIn(f"isthmus {verb}", done.stdout)

    def test_has_a_version(self):
        self.assertRegex(isthmus("--version").stdout, r"^isthmus \d+\.\d+\.\d+\n$")

    def test_bad_arguments_are_exit_code_4(self):
        for arguments in ((), ("emulat",), ("--verbose",), ("keys", "--no-such-flag"), ("help", "nothing")):
            done = isthmus(*arguments)
            self.assertEqual((done.returncode, done.stdout), (4, ""), arguments)
        self.assertIn("did you mean 'emulate'?", isthmus("emulat").stderr)


if __name__ == "__main__":
    unittest.main()
