# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The versions that rmm-uvm needs, and the check of the RMM that is installed.

See Also
--------
pyproject.toml : the same requirement of RMM, for pip.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata

__all__ = [
    "CUDA_MAJOR",
    "MINIMUM_DISCARD_DRIVER",
    "MINIMUM_DRIVER",
    "RMM_MINOR",
    "Version",
    "installed_packages",
    "installed_version",
    "parse_version",
    "rmm_problem",
]

Version = tuple[int, ...]
"""A dotted version as numbers: 580.159.04 is ``(580, 159, 4)``. Compares as versions do."""

# RMM promises no binary interface from one minor version to the next: its symbols carry the
# version (librmm's namespace _RMM_26_10), so an extension built for one loads with no other.
RMM_MINOR: Version = (26, 10)
CUDA_MAJOR = 13

# The driver branch of CUDA 13.0: CUDA Toolkit release notes, table "CUDA Toolkit and
# corresponding driver versions".
MINIMUM_DRIVER: Version = (580,)

# The first public release of the UVM kernel driver whose uvm_ioctl.h has UVM_DISCARD:
# github.com/NVIDIA/open-gpu-kernel-modules, tag 580.65.06 (absent in 575.51.02).
MINIMUM_DISCARD_DRIVER: Version = (580, 65, 6)

# RMM first, then what it needs, then what rmm-uvm works with.
_PACKAGES = (
    "rmm-uvm",
    "rmm-cu13",
    "rmm-cu12",
    "rmm",
    "cuda-bindings",
    "nvidia-cuda-runtime",
    "cudf-cu13",
    "cupy-cuda13x",
    "torch",
    "xgboost",
    "dask-cuda",
)
_INSTALL_RMM = f"pip install 'rmm-cu{CUDA_MAJOR}=={'.'.join(map(str, RMM_MINOR))}.*'"


def parse_version(text: str) -> Version:
    """Return the leading numbers of a dotted version.

    Examples
    --------
    >>> parse_version("580.159.04"), parse_version("26.10.0a12")
    ((580, 159, 4), (26, 10, 0))
    """
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def installed_packages() -> dict[str, str]:
    """Return version by distribution name of the packages that matter and are installed."""
    versions = {name: installed_version(name) for name in _PACKAGES}
    return {name: version for name, version in versions.items() if version is not None}


def installed_version(package: str) -> str | None:
    """Return the version of a distribution; None if it is not installed or cannot be read."""
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, OSError):
        return None


def rmm_problem(packages: Mapping[str, str]) -> str:
    """Return what is wrong with the installed RMM in one line, empty if nothing is.

    Parameters
    ----------
    packages : mapping of str to str
        Version by distribution name, as from `installed_packages`.

    Examples
    --------
    >>> rmm_problem({"rmm-cu13": "26.10.0"})
    ''
    >>> rmm_problem({"rmm-cu13": "26.12.0"})
    "rmm-cu13 26.12.0 is not the 26.10 that rmm-uvm is built for: pip install 'rmm-cu13==26.10.*'"
    """
    if other := [name for name in packages if re.fullmatch(r"rmm-cu(?!13$)\d+", name)]:
        name = other[0]
        return (
            f"{name} {packages[name]} is not for CUDA {CUDA_MAJOR}: "
            f"pip uninstall {name} lib{name}, then {_INSTALL_RMM}"
        )
    # conda's package carries no CUDA version in its name.
    name = f"rmm-cu{CUDA_MAJOR}" if f"rmm-cu{CUDA_MAJOR}" in packages else "rmm"
    if name not in packages:
        return f"RMM is not installed: {_INSTALL_RMM}"
    if parse_version(packages[name])[:2] != RMM_MINOR:
        minor = ".".join(map(str, RMM_MINOR))
        return (
            f"{name} {packages[name]} is not the {minor} that rmm-uvm is built for: {_INSTALL_RMM}"
        )
    return ""
