#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Check that no file uses what lies above it.

Covers the include rule of the C++ folders (cpp/README.md), the order of the Python folders,
circles of imports, and names: two classes of one name, modules named like their folder.
Imports inside functions count as well, relative ones, names of the front page, and
`import_module("...")` of a name that is written there. It does not look into tests and benchmarks:
they may use everything, and the build keeps CUDA and RMM away from the tests of the core.
"""

import ast
import graphlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Folder(NamedTuple):
    """What the files of one C++ folder may include, besides the standard library."""

    ours: frozenset[str]
    foreign: re.Pattern[str]


NOTHING = re.compile(r"(?!)")
FOLDERS = {
    "process": Folder(frozenset({"process"}), NOTHING),
    "driver": Folder(frozenset({"process", "driver"}), NOTHING),
    "sim": Folder(frozenset({"process", "driver", "sim"}), NOTHING),
    "cuda": Folder(
        frozenset({"process", "driver", "cuda"}), re.compile(r"cuda(Typedefs)?\.h|cupti.*\.h")
    ),
    "residency": Folder(frozenset({"process", "driver", "residency"}), NOTHING),
    "ipc": Folder(frozenset({"process", "driver", "residency", "ipc"}), NOTHING),
    "monitor": Folder(frozenset({"process", "driver", "monitor"}), NOTHING),
    "replay": Folder(frozenset({"process", "driver", "sim", "residency", "replay"}), NOTHING),
    "torch": Folder(frozenset({"torch"}), NOTHING),
    "mr": Folder(
        frozenset({"process", "driver", "sim", "residency", "mr"}), re.compile(r"rmm/|cuda/")
    ),
}
# Headers that belong to CUDA, CCCL or RMM; everything else is the standard library or the system.
FOREIGN = re.compile(r"(cuda|cupti|nvml|nvtx|crt/|thrust/|cub/|nv/|rmm/|rapids_logger/)")
# These instantiate RMM's pools in our objects, against its rules and ours.
NEVER = re.compile(r"rmm/mr/.*(pool|arena|fixed_size)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Bottom to top: a folder, or a module of the front page, may import those above it in this list.
PYTHON_LAYERS = (
    "errors",
    "support",
    "machine",
    "residency",
    "recording",
    "_lib",
    "drivers",
    "harvest",
    "trace",
    "report",
    "ipc",
    "watch",
    "top",
    "integrations",
    "pool",
    "mr",
    "doctor",
    "simulator",
    "planner",
    "torch",
    "__init__",
    "dask",
    "run",
    "cli",
    "__main__",
)
MORTGAGE = "rmm_uvm_mortgage"  # lies above all of them, as a package of its own
PACKAGES = {"rmm_uvm": "", MORTGAGE: "mortgage/"}
RANKS = {name: rank for rank, name in enumerate((*PYTHON_LAYERS, MORTGAGE))}
# Classes of one name that are one thing: a protocol or a value in Python, and its compiled side.
SAME_THING = {"Mark", "MemoryKind", "ResidencyStatistics"}
CYTHON_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+c?import[ \t]+(?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE
)
CYTHON_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+(rmm_uvm[\w.]*)", re.MULTILINE)


def check_include(folder: str, opening: str, header: str) -> str | None:
    """Return what is wrong with one include of a file in `folder`, or None."""
    rule = FOLDERS[folder]
    if opening == '"':  # private headers, beside the source
        return None if "/" not in header else "a quoted include leaves its folder"
    if header.startswith("rmm_uvm/"):
        used = header.split("/")[1]
        return None if used in rule.ours else f"{folder}/ may not use {used}/"
    if NEVER.match(header):
        return "RMM's pool headers are never compiled into our objects"
    if FOREIGN.match(header) and not rule.foreign.match(header):
        return f"{folder}/ may not include <{header}>"
    return None


def check_cpp(root: Path) -> Iterator[str]:
    """Yield every include that breaks the rule of its folder."""
    for base in (root / "cpp/include/rmm_uvm", root / "cpp/src"):
        for path in sorted(base.rglob("*.[ch]pp")):
            folder = path.relative_to(base).parts[0]
            if folder not in FOLDERS:
                yield f"{path.relative_to(root)}: {folder}/ is in no layer: add it to {__file__}"
                continue
            for opening, header in INCLUDE.findall(path.read_text()):
                if problem := check_include(folder, opening, header):
                    yield f"{path.relative_to(root)}: {problem}"


def absolute(module: str, dots: int, package: str) -> str:
    """Return the full name of a module that a file of `package` names after so many dots."""
    folders = package.split(".")
    above = folders[: len(folders) - dots + 1] if dots else []
    return ".".join([*above, *filter(None, [module])])


def imported(module: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the full names of what `from module import names` imports.

    Of the front page it is the names: a module there is no more than that module, anything else
    is the front page's.
    """
    if module == "rmm_uvm":
        yield from (f"rmm_uvm.{name}" for name in names)
    else:
        yield module


def by_name(call: ast.Call, package: str) -> Iterator[str]:
    """Yield the module that a call imports, if the call has its name."""
    function, first = call.func, call.args[0] if call.args else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in {"import_module", "__import__"} or not isinstance(first, ast.Constant):
        return
    if isinstance(first.value, str):
        module = first.value.lstrip(".")
        yield absolute(module, len(first.value) - len(module), package)


def python_imports(source: str, package: str = "rmm_uvm") -> Iterator[tuple[str, list[str]]]:
    """Yield what Python source in `package` imports, at any depth: a module, and names of it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module or "", node.level, package)
            yield module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Call):
            yield from ((name, []) for name in by_name(node, package))
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "rmm_uvm":
            yield f"rmm_uvm.{node.attr}", []  # `import rmm_uvm.errors` gives the front page, too


def cython_imports(source: str, package: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the same of Cython source."""
    yield from ((name, []) for name in CYTHON_IMPORT.findall(source))
    for dots, module, inside, line in CYTHON_FROM.findall(source):
        names = [word.split()[0] for word in (inside or line).split(",") if word.split()]
        yield absolute(module, len(dots), package), names


def layer_of(module: str) -> str:
    """Return the folder of a module, as `PYTHON_LAYERS` names it; "" for one that it does not."""
    package, _, inside = module.partition(".")
    if package == MORTGAGE:
        return MORTGAGE
    folder = inside.partition(".")[0] or "__init__"
    return folder if folder in RANKS else ""


def named_imports(path: Path, root: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what one file imports from these packages: a module, and names of it."""
    package = ".".join(place_of(path, root).parent.parts)
    imports = cython_imports if path.suffix in {".pyx", ".pxd"} else python_imports
    for module, names in imports(path.read_text(), package):
        if module.split(".")[0] in PACKAGES:
            yield module, names


def package_imports(path: Path, root: Path) -> Iterator[str]:
    """Yield the full name of all that one file imports from these packages."""
    for module, names in named_imports(path, root):
        yield from imported(module, names) if names else (module,)


def place_of(path: Path, root: Path) -> Path:
    """Return the path of a file from where its package is."""
    where = path.relative_to(root)
    return where if where.parts[0] in PACKAGES else where.relative_to(where.parts[0])


def module_of(path: Path, root: Path) -> str:
    """Return the full name of the module that a file is, or describes."""
    return ".".join(place_of(path, root).with_suffix("").parts).removesuffix(".__init__")


def python_files(root: Path) -> Iterator[Path]:
    """Yield every Python and Cython file of the packages."""
    for package, folder in PACKAGES.items():
        for path in sorted((root / folder / package).rglob("*")):
            if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}:
                yield path


def check_circles(root: Path) -> Iterator[str]:
    """Yield one circle of imports between modules, also of one folder; nothing if there is none."""
    files = list(python_files(root))
    modules = {module_of(path, root) for path in files}
    graph: dict[str, set[str]] = {}
    for path in files:
        module = module_of(path, root)
        used = graph.setdefault(module, set())
        for name, names in named_imports(path, root):
            # `from package import module` is an import of that module.
            inside = {f"{name}.{one}" for one in names}
            used |= inside & modules
            if not names or inside - modules:
                used |= {known for known in [nearest(name, modules)] if known}
        used.discard(module)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "a circle of imports: " + " -> ".join(error.args[1])


def nearest(name: str, modules: set[str]) -> str:
    """Return the module that a dotted name begins with, the longest one; "" if there is none."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def check_python(root: Path) -> Iterator[str]:
    """Yield every import of a folder that lies higher, and modules that no layer names."""
    for path in python_files(root):
        where = path.relative_to(root)
        own = layer_of(module_of(path, root))
        if not own:
            yield f"{where}: in no layer: add it to PYTHON_LAYERS in ci/check_layers.py"
            continue
        # What is in no module is the front page's.
        layers = {layer_of(name) or "__init__" for name in package_imports(path, root)}
        for layer in sorted(layers):
            if RANKS[layer] > RANKS[own]:
                yield f"{where}: {own} may not import {layer}, which lies above it"


def check_names(root: Path) -> Iterator[str]:
    """Yield class names that two modules have for different things, and doubtful module names."""
    modules: dict[str, list[str]] = {}
    for path in python_files(root):
        module = module_of(path, root)
        if path.stem == path.parent.name:
            yield f"{path.relative_to(root)}: named like its folder: say what is in it"
        if path.suffix not in {".py", ".pyi"}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(module)
    for name, where in modules.items():
        if len(set(where)) > 1 and name not in SAME_THING:
            yield f"class {name} is in {', '.join(where)}: one of them needs a name of its own"


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    checks = (check_cpp, check_python, check_circles, check_names)
    problems = [problem for check in checks for problem in check(ROOT)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
