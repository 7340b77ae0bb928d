# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds libcupti: in a wheel, a Conda environment, the loader's path or a CUDA toolkit.

Covers finding. Does not cover using it; see `rmm_uvm.watch.sampling.attribution`.
"""

from __future__ import annotations

from pathlib import Path

from rmm_uvm.machine.device_info import Availability

__all__ = ["LIBRARY_NAME", "find_cupti"]

# Beside RMM for CUDA 12 too: records are read as CUDA 13's headers lay them out, and it asks for
# nothing but a driver of CUDA 13.
_CUDA_MAJOR = 13
LIBRARY_NAME = f"libcupti.so.{_CUDA_MAJOR}"

_INSTALL = f"pip install 'nvidia-cuda-cupti>={_CUDA_MAJOR},<{_CUDA_MAJOR + 1}'"


def find_cupti(toolkit: Path = Path("/usr/local/cuda")) -> tuple[str | None, Availability]:
    """Find the libcupti that fits, one that is loaded already first.

    NVIDIA's finder does the search, and loads what it finds: the second time costs nothing. Where
    it finds nothing, the usual place of a toolkit is looked at.

    Parameters
    ----------
    toolkit : Path
        That place.

    Returns
    -------
    tuple of (str or None, Availability)
        The path; None, with the reason and the remedy, when there is none.

    Notes
    -----
    Thread-safe.
    """
    path, wrong = _by_pathfinder(), ""
    if path is not None and LIBRARY_NAME not in path:
        path, wrong = None, f"{path} is not for CUDA {_CUDA_MAJOR}; "
    if path is None:
        in_toolkit = toolkit / "extras/CUPTI/lib64" / LIBRARY_NAME
        path = str(in_toolkit) if in_toolkit.exists() else None
    if path is None:
        return None, Availability(available=False, reason=f"{wrong}no {LIBRARY_NAME}: {_INSTALL}")
    return path, Availability(available=True)


def _by_pathfinder() -> str | None:
    """Return what NVIDIA's finder finds."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = load_nvidia_dynamic_lib("cupti").abs_path
    # RuntimeError is the root of what it raises without a library; OSError comes from one that is
    # there and cannot be loaded.
    except (ImportError, RuntimeError, OSError):
        return None
    return None if path is None else str(path)
