# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Print where headers are: CUDA's on the first line, then one line for each RMM.

    python installed_headers.py [FOLDER...]

They come with the wheels beside this Python, or with conda's packages in its prefix. The first RMM
is that one, a further one is in each FOLDER, as `pip install --target` makes it. A line has,
separated by semicolons, RMM's version as 26.08, the folders of librmm, of rapids_logger, and of
RMM's Python packages, and the name of the folder with libraries in the first two.
"""

import importlib.metadata
import importlib.util
import pathlib
import re
import sys

PREFIX = pathlib.Path(sys.prefix)  # where conda puts headers and libraries


def packages_with(name: str) -> pathlib.Path | None:
    """Return the folder that a package is installed in, without importing it; None without it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(spec.submodule_search_locations[0]).parent


def cuda_include() -> pathlib.Path:
    """Return the folder of cuda.h: in the nvidia-cuda-runtime wheel, or in cuda-cudart-dev."""
    try:
        files = importlib.metadata.files("nvidia-cuda-runtime") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    found = [pathlib.Path(str(file.locate())) for file in files if file.name == "cuda.h"]
    found += PREFIX.glob("targets/*/include/cuda.h")
    if not found:
        raise SystemExit(
            "there is no cuda.h: install nvidia-cuda-runtime, or conda's cuda-cudart-dev"
        )
    return found[0].parent


def rmm_line(packages: pathlib.Path) -> str:
    """Return the line of the RMM whose Python packages are in a folder."""
    librmm, libraries = packages / "librmm", "lib64"
    if not librmm.is_dir() and packages.is_relative_to(PREFIX):
        librmm, libraries = PREFIX, "lib"
    header = librmm / "include" / "rmm" / "version_config.hpp"
    if not header.is_file():
        raise SystemExit(f"{packages} has no librmm: it is named in RMM_UVM_MORE_RMM")
    found = [
        re.search(rf"^#define RMM_VERSION_{part} +(\d+)", header.read_text(), re.MULTILINE)
        for part in ("MAJOR", "MINOR")
    ]
    if None in found:
        raise SystemExit(f"{header} does not say RMM's version")
    major, minor = (int(match[1]) for match in found)
    beside = packages if (packages / "rapids_logger").is_dir() else packages_with("rapids_logger")
    logger = PREFIX if beside is None else beside / "rapids_logger"
    if not (logger / "include" / "rapids_logger").is_dir():
        raise SystemExit("rapids_logger is not installed")
    return ";".join(map(str, (f"{major}.{minor:02}", librmm, logger, packages, libraries)))


installed = packages_with("librmm") or packages_with("rmm")  # conda has no package librmm
if installed is None:
    raise SystemExit("rmm is not installed")
print(cuda_include(), *map(rmm_line, (installed, *map(pathlib.Path, sys.argv[1:]))), sep="\n")
