"""Things that may be written only in some places: a pattern, where it holds, why."""

import fnmatch
import re

from tree import FOLDERS, code_lines

LIBRARY_FOLDERS = tuple(f for f in FOLDERS if f not in ("trainer", "apps"))

# (pattern, files it holds for, files excepted, what to do instead)
CODE_RULES = [
    (r"\bstd::(\w*mutex|\w*_lock|lock_guard|condition_variable\w*)\b|\bpthread_mutex",
     ["*/*"], ["core/*", "tests/*", "bench/*"],
     "no mutex outside core/: give the object one thread and move values through a core::Mailbox"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(",
     ["tests/*"], [],
     "a test does not sleep: wait for the event itself, or move a ManualClock"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(",
     [f"{f}/*" for f in FOLDERS], ["trainer/*synthetic*"],
     "no sleeping to wait: poll with a deadline, or use a timer"),
    (r"\b(secure_)?getenv\s*\(|\bsetenv\s*\(",
     [f"{f}/*" for f in FOLDERS], [],
     "no environment variables: the config file and the flags say everything"),
    (r"\bstd::(cout|cerr|clog)\b|\b(std::)?(printf|fprintf|puts|fputs|putchar)\s*\(",
     [f"{f}/*" for f in LIBRARY_FOLDERS], ["core/check.h"],
     "a library does not print: say it through the logger"),
]

# No identifier may have one of these among its words.
FORBIDDEN_WORDS = {
    "van": "say link (between regions) or channel (inside one)",
    "postoffice": "say membership or routing",
    "customer": "say worker or contributor",
}

_WORD = re.compile(r"[A-Za-z_]\w*")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PYTHON_SLEEP = re.compile(r"\btime\.sleep\(|from time import .*\bsleep\b")
_MACHINE_PATH = re.compile(r"(?<![\w./$})-])/(work|root|home)/\w")


def check(tree):
    problems = []
    for name in tree.cpp():
        for number, line in code_lines(tree.text(name)):
            problems += [f"{name}:{number}: {p}" for p in _code(name, line) + _vocabulary(line)]
    for name in tree.files:
        if name.endswith("_test.py") and name.startswith("tests/"):
            problems += _matches(tree, name, _PYTHON_SLEEP,
                                 "a test does not sleep: use the helper that waits for a condition")
        if not name.startswith("tests/lint/"):
            problems += _matches(tree, name, _MACHINE_PATH, "a path of one machine")
    return problems


def _code(name, line):
    return [advice for pattern, places, excepted, advice in CODE_RULES
            if any(fnmatch.fnmatch(name, p) for p in places)
            and not any(fnmatch.fnmatch(name, p) for p in excepted)
            and re.search(pattern, line)]


def _vocabulary(line):
    words = {p.lower() for w in _WORD.findall(line) for p in _PARTS.findall(w)}
    return [f"'{w}' is not one of our words: {FORBIDDEN_WORDS[w]}" for w in sorted(words & set(FORBIDDEN_WORDS))]


def _matches(tree, name, pattern, advice):
    lines = enumerate(tree.text(name).split("\n"), 1)
    return [f"{name}:{number}: {advice}" for number, line in lines if pattern.search(line)]
