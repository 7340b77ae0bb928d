# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where instructions are counted, and what their counts depend on.

    python3 ci/instruction_build.py     prints the folder to build in

That is the wheel's build folder, whose libraries are shipped, else one of its own. A wheel that pip
built in isolation leaves a folder that points at an environment which pip has deleted: nothing can
be built there.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_ENTRY = re.compile(r"^(\w+):\w+=(.*)$", re.MULTILINE)
_NEEDED = re.compile(
    r"^(CMAKE_PREFIX_PATH|CMAKE_MAKE_PROGRAM|CMAKE_CXX_COMPILER"
    r"|PYTHON_(EXECUTABLE|INCLUDE_DIR)|Python3?_(\w+_)?(EXECUTABLE|INCLUDE_DIR))$"
)
_LIBRMM = re.compile(r"(/[^\s;]*/librmm)/lib64/librmm\.so")


def cache(folder: Path) -> Mapping[str, str]:
    """Return what CMake keeps of a build folder; nothing where it has none."""
    file = folder / "CMakeCache.txt"
    return dict(_ENTRY.findall(file.read_text())) if file.is_file() else {}


def librmm_of(folder: Path) -> Path | None:
    """Return the librmm that a build folder links to."""
    file = folder / "build.ninja"
    found = _LIBRMM.search(file.read_text()) if file.is_file() else None
    return Path(found[1]) if found else None


def usable(folder: Path, repository: Path = REPOSITORY) -> bool:
    """Return whether all that a build folder points at is still there."""
    kept, librmm = cache(folder), librmm_of(folder)
    if librmm is None or kept.get("CMAKE_HOME_DIRECTORY") != str(repository):
        return False
    needed = [
        path
        for name, value in kept.items()
        if _NEEDED.match(name)
        for path in value.split(";")
        if path.startswith("/")
    ]
    return all(Path(path).exists() for path in (*needed, librmm))


def build_folder(repository: Path = REPOSITORY) -> Path:
    """Return the folder to build in: the wheel's if it is usable."""
    wheels = sorted((repository / "build").glob("cp3*-abi3-*"))
    own = repository / "build" / "cpp" / "instructions"
    return next((folder for folder in wheels if usable(folder, repository)), own)


def built_with(folder: Path) -> dict[str, str]:
    """Return what counts depend on: of a build folder, or of one that would be made now."""
    kept = cache(folder) if usable(folder) else {}
    compiler = kept.get("CMAKE_CXX_COMPILER") or os.environ.get("CXX") or "g++"
    flags = kept.get("CMAKE_CXX_FLAGS", os.environ.get("CXXFLAGS", "")).strip()
    version = subprocess.run(
        [compiler, "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        "compiler": f"g++ {version}",
        "c_library": " ".join(platform.libc_ver()),
        "librmm": f"librmm {_librmm_version(folder if kept else None)}",
        "flags": f"CXXFLAGS {flags}" if flags else "no CXXFLAGS",
    }


def _librmm_version(folder: Path | None) -> str:
    """Return the version of the librmm of a folder, else of the one beside this interpreter."""
    root = librmm_of(folder) if folder else None
    if root is None and (spec := importlib.util.find_spec("librmm")) and spec.origin:
        root = Path(spec.origin).parent
    file = root / "VERSION" if root else None
    return file.read_text().strip() if file and file.is_file() else "of no version"


if __name__ == "__main__":
    print(build_folder().relative_to(REPOSITORY))
