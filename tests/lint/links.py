"""A link in a document leads to a file that is there."""

import posixpath
import re

_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


def check(tree):
    problems = []
    folders = {"/".join(f.split("/")[:n]) for f in tree.files for n in range(1, f.count("/") + 1)}
    for name in tree.files:
        if not name.endswith(".md"):
            continue
        for number, line in enumerate(tree.text(name).split("\n"), 1):
            for target in _LINK.findall(line):
                path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
                if "://" not in target and not tree.exists(path) and path not in folders:
                    problems.append(f"{name}:{number}: there is no {path}")
    return problems
