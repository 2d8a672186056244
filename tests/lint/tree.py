"""The repository's files, and C++ text without its comments and strings."""

import pathlib
import re
import subprocess

# The folders that make the product, from the bottom to the top.
FOLDERS = ("core", "proto", "compression", "transport", "wan", "server", "worker", "trainer", "apps")

_SKIPPED = {"build", ".git", "__pycache__", "run", "keys"}


class Tree:
    """The files of a working tree: tracked and new ones, not the ignored ones."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = self._from_git() or self._from_disk()

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def exists(self, name):
        return (self.root / name).is_file()

    def cpp(self, *folders):
        """C++ files in `folders` (all folders if none is given)."""
        return [f for f in self.files if f.endswith((".h", ".cc", ".cu", ".cuh"))
                and (not folders or f.split("/")[0] in folders)]

    def _from_git(self):
        if not (self.root / ".git").exists():
            return []
        done = subprocess.run(
            ["git", "-c", f"safe.directory={self.root}", "-C", str(self.root), "ls-files", "-z",
             "--cached", "--others", "--exclude-standard"], stdout=subprocess.PIPE, check=False)
        names = done.stdout.decode().split("\0") if done.returncode == 0 else []
        return sorted({n for n in names if n and (self.root / n).is_file()})

    def _from_disk(self):
        names = (p.relative_to(self.root) for p in self.root.rglob("*") if p.is_file())
        return sorted(str(n) for n in names if not _SKIPPED & set(n.parts))


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"'
                    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def code_only(text):
    """`text` with comments and literals blanked; every line keeps its number."""
    return _TOKEN.sub(lambda m: "\n" * m.group().count("\n") if m.group().startswith("/")
                      else '""' + "\n" * m.group().count("\n"), text)


def code_lines(text):
    """(number, code) of each line."""
    return enumerate(code_only(text).split("\n"), 1)
