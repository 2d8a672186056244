"""Every source has its test: x/foo.cc -> tests/x/foo_test.cc."""

import pathlib

from tree import FOLDERS

# The exceptions, one a line: source, the file that tests it instead, the reason.
EXCEPTIONS = "tests/lint/tested_elsewhere.txt"


def check(tree):
    excepted, problems = _exceptions(tree)
    for name in tree.files:
        folder, _, rest = name.partition("/")
        if folder not in FOLDERS or not name.endswith((".cc", ".cu")):
            continue
        tests = _tests_of(folder, pathlib.PurePath(rest))
        found = any(tree.exists(t) for t in tests)
        if not found and name not in excepted:
            problems.append(f"{name}: has no test; write {tests[0]}, or name in {EXCEPTIONS} what tests it")
        if found and name in excepted:
            problems.append(f"{EXCEPTIONS}: {name} has its own test; remove the line")
    return problems


def _tests_of(folder, rest):
    tests = [f"tests/{folder}/{rest.with_suffix('')}_test.cc", f"tests/{folder}/{rest.stem}_test.cc"]
    if rest.parts[0] == "kernels":  # All backends stand the same tests.
        tests += [f"tests/{folder}/kernels_test.cc", f"tests/{folder}/kernels/kernels_test.cc"]
    if rest.parts[0] == "cuda":  # What a kernel makes is seen through the codecs that use it.
        tests.append(f"tests/{folder}/cuda/device_codec_test.cc")
    if folder == "apps":  # A verb is a process: it is tested as one.
        tests.append(f"tests/integration/{rest.stem}_test.py")
    return tests


def _exceptions(tree):
    excepted, problems = {}, []
    lines = tree.text(EXCEPTIONS).split("\n") if tree.exists(EXCEPTIONS) else []
    for number, line in enumerate(lines, 1):
        fields = line.split(None, 2)
        if not fields or line.startswith("#"):
            continue
        if len(fields) < 3:
            problems.append(f"{EXCEPTIONS}:{number}: wants a source, its test and a reason")
            continue
        excepted[fields[0]] = fields[1]
        problems += [f"{EXCEPTIONS}:{number}: there is no {f}" for f in fields[:2] if not tree.exists(f)]
    return excepted, problems
