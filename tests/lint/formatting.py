"""clang-format has nothing to change."""

import re
import shutil
import subprocess


def check(tree):
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        return ["clang-format is not installed (scripts/setup installs it)"]
    files = tree.cpp()
    if not files:
        return []
    done = subprocess.run([tool, "--dry-run", "--style=file", *files], cwd=tree.root,
                          stderr=subprocess.PIPE, text=True, check=False)
    bad = sorted(set(re.findall(r"^(\S+?):\d+:\d+: (?:warning|error)", done.stderr, re.MULTILINE)))
    if not bad and done.returncode != 0:
        return [done.stderr.strip()]
    return [f"{name}: run clang-format -i {name}" for name in bad]
