#!/usr/bin/env python3
"""Runs one check over the repository: lint.py layering|words|test_files|formatting|links ROOT.

Prints one line a problem, with file and line; exits with 1 when there is one.
"""

import importlib
import sys

from tree import Tree

CHECKS = ("layering", "words", "test_files", "formatting", "links")


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 4
    tree = Tree(arguments[1])
    if not tree.cpp("core"):
        print(f"{tree.root} is not the repository's root", file=sys.stderr)
        return 4
    problems = importlib.import_module(arguments[0]).check(tree)
    print(*problems, f"{arguments[0]}: {len(problems)} problems in {len(tree.files)} files", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
