# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Print where wheels put headers: CUDA's on the first line, then one line for each RMM.

    python wheel_headers.py [FOLDER...]

The first RMM is the one beside this Python, a further one is in each FOLDER, as `pip install
--target` makes it. A line has, separated by semicolons, RMM's version as 26.08, and the folders of
librmm, of rapids_logger, and of RMM's Python packages.
"""

import importlib.metadata
import importlib.util
import pathlib
import re
import sys


def package_root(name: str) -> pathlib.Path:
    """Return the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{name} is not installed")
    return pathlib.Path(spec.submodule_search_locations[0])


def cuda_include() -> pathlib.Path:
    """Return the folder of cuda.h in the nvidia-cuda-runtime wheel."""
    for file in importlib.metadata.files("nvidia-cuda-runtime") or ():
        if file.name == "cuda.h":
            return pathlib.Path(str(file.locate())).parent
    raise SystemExit("nvidia-cuda-runtime has no cuda.h")


def rmm_line(packages: pathlib.Path) -> str:
    """Return the line of the RMM whose wheels are in a folder."""
    header = packages / "librmm" / "include" / "rmm" / "version_config.hpp"
    if not header.is_file():
        raise SystemExit(f"{packages} has no librmm: it is named in RMM_UVM_MORE_RMM")
    found = [
        re.search(rf"^#define RMM_VERSION_{part} +(\d+)", header.read_text(), re.MULTILINE)
        for part in ("MAJOR", "MINOR")
    ]
    if None in found:
        raise SystemExit(f"{header} does not say RMM's version")
    major, minor = (int(match[1]) for match in found)
    own_logger = packages / "rapids_logger"
    logger = own_logger if own_logger.is_dir() else package_root("rapids_logger")
    folders = ";".join(str(path) for path in (packages / "librmm", logger, packages))
    return f"{major}.{minor:02};{folders}"


installed = package_root("librmm").parent
print(cuda_include(), *map(rmm_line, (installed, *map(pathlib.Path, sys.argv[1:]))), sep="\n")
