#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Check that no file uses what lies above it.

Covers the include rule of the C++ folders (cpp/README.md) and the order of the Python modules.
Imports inside functions count as well. It does not look into tests and benchmarks: they may use
everything, and the build keeps CUDA and RMM away from the tests of the core.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Folder(NamedTuple):
    """What the files of one C++ folder may include, besides the standard library."""

    ours: frozenset[str]
    foreign: re.Pattern[str]


NOTHING = re.compile(r"(?!)")
FOLDERS = {
    "driver": Folder(frozenset({"driver"}), NOTHING),
    "sim": Folder(frozenset({"driver", "sim"}), NOTHING),
    "cuda": Folder(frozenset({"driver", "cuda"}), re.compile(r"cuda(Typedefs)?\.h|cupti.*\.h")),
    "residency": Folder(frozenset({"driver", "residency"}), NOTHING),
    "ipc": Folder(frozenset({"driver", "residency", "ipc"}), NOTHING),
    "monitor": Folder(frozenset({"driver", "monitor"}), NOTHING),
    "replay": Folder(frozenset({"driver", "sim", "residency", "replay"}), NOTHING),
    "mr": Folder(frozenset({"driver", "sim", "residency", "mr"}), re.compile(r"rmm/|cuda/")),
}
# Headers that belong to CUDA, CCCL or RMM; everything else is the standard library or the system.
FOREIGN = re.compile(r"(cuda|cupti|nvml|nvtx|crt/|thrust/|cub/|nv/|rmm/|rapids_logger/)")
# These instantiate RMM's pools in our objects, against its rules and ours.
NEVER = re.compile(r"rmm/mr/.*(pool|arena|fixed_size)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Bottom to top; a module may import those of its own line and of the lines above it here. A dotted
# name takes one module out of its package.
PYTHON_LAYERS = (
    ("errors", "messages", "units", "requirements", "optional_packages", "output", "saving"),
    ("device_info", "host_memory", "cupti_library", "process_facts"),
    ("watch.sample", "watch.finding", "watch.recording"),
    ("_rmm_check",),
    ("_lib", "limits"),
    ("sizing", "residency", "harvest"),
    ("doctor",),
    ("_current_device", "drivers"),
    ("neighbors",),
    ("simulator",),
    ("node",),
    ("trace",),
    ("report",),
    ("watch",),
    ("ipc",),
    ("pools",),
    ("mr",),
    ("planner",),
    ("integrations",),
    ("install", "installation", "_install_arguments", "_install_device", "_install_warnings"),
    ("installed_pools",),
    ("hints",),
    ("torch",),
    ("__init__",),
    ("comm",),
    ("dask",),
    ("top",),
    ("run",),
    ("mortgage",),
    ("cli",),
)
RANKS = {name: rank for rank, names in enumerate(PYTHON_LAYERS) for name in names}
CYTHON_IMPORT = re.compile(
    r"^\s*(?:from\s+(rmm_uvm[\w.]*)\s+c?import|c?import\s+(rmm_uvm[\w.]*))", re.MULTILINE
)


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


def python_imports(source: str) -> Iterator[str]:
    """Yield the full name of every module that Python source imports, at any depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "rmm_uvm":  # a module of ours, or a name of the front page
                yield from (f"rmm_uvm.{alias.name}" for alias in node.names)


def layer_of(module: str) -> str:
    """Return the name by which `PYTHON_LAYERS` knows a module; "" for one that it does not."""
    parts = module.split(".")[1:]
    if not parts:
        return "__init__"
    full = ".".join(parts[:2])
    return full if full in RANKS else parts[0] if parts[0] in RANKS else ""


def imported_layers(path: Path) -> Iterator[str]:
    """Yield the layer names that one file imports from this package."""
    text = path.read_text()
    if path.suffix == ".py":
        names = list(python_imports(text))
    else:
        names = [first or second for first, second in CYTHON_IMPORT.findall(text)]
    ours = [name for name in names if name == "rmm_uvm" or name.startswith("rmm_uvm.")]
    for name in ours:
        # `from rmm_uvm import units` names the module units, not the front page.
        if name == "rmm_uvm" and any(layer_of(other) for other in ours if other != name):
            continue
        if layer := layer_of(name):
            yield layer


def check_python(root: Path) -> Iterator[str]:
    """Yield every import of a module that lies higher, and modules that no layer names."""
    package = root / "rmm_uvm"
    for path in sorted(p for p in package.rglob("*") if p.suffix in {".py", ".pyx", ".pxd"}):
        where = path.relative_to(root)
        module = ".".join(where.with_suffix("").parts).removesuffix(".__init__")
        own = layer_of(module)
        if not own:
            yield f"{where}: in no layer: add it to PYTHON_LAYERS in ci/check_layers.py"
            continue
        for used in sorted(set(imported_layers(path))):
            if RANKS[used] > RANKS[own]:
                yield f"{where}: {own} may not import {used}, which lies above it"


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    problems = [*check_cpp(ROOT), *check_python(ROOT)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
