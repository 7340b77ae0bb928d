# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Print, separated by semicolons, where the wheels put librmm, rapids_logger and CUDA's headers."""

import importlib.metadata
import importlib.util
import pathlib


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


print(package_root("librmm"), package_root("rapids_logger"), cuda_include(), sep=";", end="")
