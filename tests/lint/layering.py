"""Which folder may include which, and the one folder that may name each library."""

import fnmatch
import re

from tree import FOLDERS

# folder -> the folders it may include, besides itself and include/isthmus.
MAY_INCLUDE = {
    "core": set(),
    "proto": {"core"},
    "compression": {"core"},
    "transport": {"core", "proto"},
    "wan": {"core", "proto", "transport"},
    "worker": {"core", "proto", "compression", "transport"},
    "server": {"core", "proto", "compression", "transport", "wan"},
    "trainer": {"core", "worker"},
    "apps": set(FOLDERS),
}

# Start of an include -> the files that may have it. The first start that fits counts.
LIBRARIES = [
    ("zmq", ["transport/*"]),
    ("boost/beast", ["wan/*", "apps/*"]),
    ("boost/asio", ["wan/*", "apps/*http*"]),
    ("boost/crc", ["proto/*"]),
    ("boost/", []),
    ("openssl/", ["wan/*"]),
    ("google/protobuf", ["proto/*"]),
    ("hwy/", ["compression/*", "server/*optimizer*"]),
    ("cuda", ["compression/cuda/*", "worker/gpu/*"]),
    ("yaml-cpp/", ["core/*config*"]),
    ("spdlog/", ["core/log*"]),
    ("nlohmann/", ["core/*", "trainer/*", "apps/*"]),
    ("torch/", ["trainer/*"]),
    ("ATen/", ["trainer/*"]),
    ("c10/", ["trainer/*"]),
    ("zlib.h", ["trainer/*"]),
    ("CLI/", ["apps/*"]),
]

# What <...> may be without being a library of ours: the standard's and the system's.
_STANDARD = re.compile(r"[a-z_0-9]+")
_SYSTEM = re.compile(r"(sys|netinet|arpa|linux)/[a-z_0-9]+\.h|[a-z_0-9]+\.h")

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def check(tree):
    problems = []
    for name in tree.cpp("include", *FOLDERS):
        for match in _INCLUDE.finditer(tree.text(name)):
            line = tree.text(name).count("\n", 0, match.start(2)) + 1
            problem = (_public if name.startswith("include/") else _private)(name, *match.groups())
            if problem:
                problems.append(f"{name}:{line}: {problem}")
    modules = {module: folder for folder in FOLDERS for module in _modules(tree, folder)}
    for folder in FOLDERS:
        problems += _links(tree, folder, modules)
    return problems


def _public(name, quote, included):
    """A public header stands on the standard library alone."""
    if quote == "<" and not _STANDARD.fullmatch(included):
        return f"<{included}> in a public header, which may use the standard library only"
    if quote == '"' and not included.startswith("isthmus/"):
        return f'"{included}" in a public header, which may include isthmus/*.h only'
    return None


def _private(name, quote, included):
    folder = name.split("/")[0]
    library = next((l for l in LIBRARIES if included.startswith(l[0])), None)
    if library and not (quote == '"' and included.startswith(f"{folder}/")):
        if any(fnmatch.fnmatch(name, place) for place in library[1]):
            return None
        return f"<{included}> belongs in {' or '.join(library[1]) or 'no folder'}"
    if quote == "<":
        if _STANDARD.fullmatch(included) or _SYSTEM.fullmatch(included):
            return None
        return f"<{included}> is a library that tests/lint/layering.py does not know"
    target = included.split("/")[0]
    if "/" not in included:
        return f'"{included}": write the path from the root, "{folder}/{included}"'
    if target in (folder, "isthmus") or target in MAY_INCLUDE[folder]:
        return None
    return f"{folder} may not include {target}" if target in FOLDERS else f'"{included}": unknown folder'


def _cmake(tree, folder):
    name = f"{folder}/CMakeLists.txt"
    return re.sub(r"#.*", "", tree.text(name)) if tree.exists(name) else ""


def _modules(tree, folder):
    return re.findall(r"isthmus_module\(\s*NAME\s+(\w+)", _cmake(tree, folder))


def _links(tree, folder, modules):
    """The same table for what CMake links."""
    linked = sorted(set(re.findall(r"isthmus::(\w+)", _cmake(tree, folder))))
    return [f"{folder}/CMakeLists.txt: {folder} may not link isthmus::{module}, which is {modules[module]}'s"
            for module in linked
            if module in modules and modules[module] not in MAY_INCLUDE[folder] | {folder}]
