#!/usr/bin/env python3
"""Runs one integration test: run.py --build-dir DIR foo_test.py [unittest arguments].

The test finds the programs through `environment`:

    import environment
    command = [environment.isthmus, "train", config]

Exits with 0 when all passed, 1 when one failed or there was none, 77 when all were skipped.
"""

import argparse
import pathlib
import sys
import unittest

import environment

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    parser.add_argument("test", help="a file in this folder")
    arguments, rest = parser.parse_known_args()
    environment.set_build_dir(arguments.build_dir)

    module = pathlib.PurePath(arguments.test).stem
    result = unittest.main(module=module, argv=[arguments.test, *rest], exit=False, verbosity=2).result
    if result.testsRun == 0:
        print(f"{arguments.test} has no tests", file=sys.stderr)
        return 1
    if not result.wasSuccessful():
        return 1
    return SKIPPED if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
