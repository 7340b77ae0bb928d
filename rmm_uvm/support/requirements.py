# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The versions that rmm-uvm needs, and the check of the RMM that is installed.

See Also
--------
pyproject.toml : the same requirement of RMM, for pip.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib import metadata

__all__ = [
    "CUDA_MAJORS",
    "MINIMUM_CUDA",
    "MINIMUM_DISCARD_DRIVER",
    "MINIMUM_DRIVER",
    "RMM_MINORS",
    "Version",
    "install_extra",
    "installed_packages",
    "installed_version",
    "own_distribution",
    "parse_version",
    "rmm_package",
    "rmm_problem",
    "supported_rmm",
]

Version = tuple[int, ...]
"""A dotted version as numbers: 580.159.04 is ``(580, 159, 4)``. Compares as versions do."""

# RMM promises no binary interface from one minor version to the next, and from 26.08 on its symbols
# carry the version (librmm's namespace _RMM_26_10): what is compiled for one loads with no other. A
# wheel has it compiled for each of these. A minor is listed once ci/wheels.sh passes with it: that
# something compiles says nothing of whether it works.
RMM_MINORS: tuple[Version, ...] = ((26, 6), (26, 8), (26, 10))

# RMM's headers and Python declarations are the same for both.
CUDA_MAJORS = (12, 13)

# What RMM for a CUDA major needs, and we: cuMemPrefetchAsync with a location came with CUDA 12.2.
# CUDA Toolkit release notes, table "CUDA Toolkit and corresponding driver versions".
MINIMUM_CUDA: Mapping[int, Version] = {12: (12, 2), 13: (13, 0)}
MINIMUM_DRIVER: Mapping[int, Version] = {12: (535,), 13: (580,)}

# The first public release of the UVM kernel driver whose uvm_ioctl.h has UVM_DISCARD:
# github.com/NVIDIA/open-gpu-kernel-modules, tag 580.65.06 (absent in 575.51.02).
MINIMUM_DISCARD_DRIVER: Version = (580, 65, 6)

# RMM first, then what it needs, then what rmm-uvm works with.
_PACKAGES = (
    "rmm-uvm",
    *("rmm-uvm-cu12", "rmm-uvm-cu13"),
    *("rmm-cu13", "rmm-cu12", "rmm"),
    "cuda-bindings",
    "nvidia-cuda-runtime",
    *("cudf-cu13", "cudf-cu12"),
    *("cupy-cuda13x", "cupy-cuda12x"),
    "torch",
    "xgboost",
    "dask-cuda",
)

# What conda calls packages of extras, where it is not what pip does. CUDA is in no name.
_OF_CUDA = re.compile(r"-cu(da)?\d+x?$")
_CONDA_NAMES = {
    "torch": "pytorch",
    "prometheus-client": "prometheus_client",
    "nvidia-cuda-cupti": "cuda-cupti",
}


def own_distribution() -> str:
    """Return the name under which rmm-uvm is installed: with the CUDA major in a release.

    Of several that are installed over each other it is the one for the RMM that is there.
    """
    of_rmm = f"rmm-uvm-cu{rmm_package(installed_packages())[1]}"
    names = (of_rmm, _PACKAGES[0], *(f"rmm-uvm-cu{major}" for major in CUDA_MAJORS))
    return next((name for name in names if installed_version(name) is not None), _PACKAGES[0])


def install_extra(extra: str, distribution: str | None = None) -> str:
    """Return the command that installs an extra, as ``pip install 'rmm-uvm-cu13[dask]'``.

    It is an extra of rmm-uvm, or of a distribution that is named. Beside conda's RMM, conda
    installs the packages that an extra of rmm-uvm needs: pip would bring a second RMM with some.
    """
    own = own_distribution()
    distribution = distribution or own
    if distribution == own and rmm_package(installed_packages())[0] == "rmm":
        try:
            lines = metadata.requires(own) or []
        except (metadata.PackageNotFoundError, OSError):
            lines = []
        needs = re.compile(rf"""([\w.-]+).*\bextra\s*==\s*["']{re.escape(extra)}["']""")
        found = [match[1] for line in lines if (match := needs.match(line))]
        names = [_OF_CUDA.sub("", name) for name in found]
        if names:
            return f"conda install {' '.join(_CONDA_NAMES.get(name, name) for name in names)}"
    return f"pip install '{distribution}[{extra}]'"


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


def rmm_package(packages: Mapping[str, str]) -> tuple[str, int]:
    """Return the name of the installed RMM's package, and the CUDA major that it is for.

    conda's package carries no CUDA version in its name: there it is that of cuda-bindings, which
    RMM needs. Without any RMM it is what would be installed.

    Examples
    --------
    >>> rmm_package({"rmm-cu12": "26.10.0"})
    ('rmm-cu12', 12)
    >>> rmm_package({"rmm": "26.10.0", "cuda-bindings": "12.9.2"})
    ('rmm', 12)
    """
    for major in CUDA_MAJORS:
        if f"rmm-cu{major}" in packages:
            return f"rmm-cu{major}", major
    bindings = parse_version(packages.get("cuda-bindings", ""))
    major = bindings[0] if bindings and bindings[0] in CUDA_MAJORS else CUDA_MAJORS[-1]
    return "rmm" if "rmm" in packages else f"rmm-cu{major}", major


def supported_rmm() -> str:
    """Return which RMMs are tested.

    Examples
    --------
    >>> supported_rmm()
    'tested with RMM 26.06, 26.08 and 26.10, for CUDA 12 and 13'
    """
    majors = " and ".join(map(str, CUDA_MAJORS))
    return f"tested with RMM {_listed(RMM_MINORS)}, for CUDA {majors}"


def rmm_problem(packages: Mapping[str, str], compiled: Collection[Version] = RMM_MINORS) -> str:
    """Return what is wrong with the installed RMM in one line, empty if nothing is.

    Parameters
    ----------
    packages : mapping of str to str
        Version by distribution name, as from `installed_packages`.
    compiled : collection of Version
        RMM's minors that this rmm-uvm is compiled for.

    Examples
    --------
    >>> rmm_problem({"rmm-cu13": "26.10.0"}), rmm_problem({"rmm-cu12": "26.6.0"})
    ('', '')
    >>> rmm_problem({"rmm-cu13": "26.12.0"})
    "rmm-cu13 26.12.0 is not tested, 26.06, 26.08 and 26.10 are: pip install 'rmm-cu13==26.10.*'"
    """
    names = ("rmm", *(f"rmm-cu{major}" for major in CUDA_MAJORS))  # the first is conda's
    both = [name for name in names if name in packages]
    if len(both) > 1:
        wheels = " ".join(f"{name} lib{name}" for name in both if name != "rmm")
        then = _install(both[-1], RMM_MINORS[-1])
        if "rmm" in both:
            then = "conda install --force-reinstall rmm"
        return (
            f"{' and '.join(both)} are installed over each other: pip uninstall {wheels}, "
            f"then {then}"
        )
    name, _ = rmm_package(packages)
    if name not in packages:
        return f"RMM is not installed: {_install(name, RMM_MINORS[-1])}"
    minor = parse_version(packages[name])[:2]
    if minor not in RMM_MINORS:
        return (
            f"{name} {packages[name]} is not tested, {_listed(RMM_MINORS)} are: "
            f"{_install(name, RMM_MINORS[-1])}"
        )
    if minor not in compiled:
        return (
            f"it is compiled for RMM {_listed(sorted(compiled))}, beside {name} {packages[name]}: "
            f"{_install(name, max(compiled, default=RMM_MINORS[-1]))}, or a wheel from ci/wheels.sh"
        )
    return ""


def _install(name: str, minor: Version) -> str:
    if name == "rmm":  # conda's
        return f"conda install rmm={_listed([minor])}"
    return f"pip install '{name}=={'.'.join(map(str, minor))}.*'"


def _listed(minors: Collection[Version]) -> str:
    named = [f"{major}.{minor:02}" for major, minor in minors]
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))
