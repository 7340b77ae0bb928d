# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A process from which a GPU cannot be reached, whatever the machine has."""

from __future__ import annotations

import contextlib
import ctypes
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

# Each with a function of it, by which the real one is known.
LIBRARIES = {"libcuda.so.1": "cuInit", "libnvidia-ml.so.1": "nvmlInit_v2"}


@contextlib.contextmanager
def no_driver(*there: str) -> Iterator[Mapping[str, str]]:
    """Yield environment variables; who is started with them finds no library of NVIDIA's driver.

    Libraries that are to be `there` can be loaded, and have none of NVIDIA's functions.

    Whoever asks, in Python or C++, the dynamic loader finds files first that are no libraries. They
    are in /tmp since a process that becomes another user must find them as well. Were there another
    way to a GPU, no device would be visible there, and little managed memory be allowed.
    """
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="rmm-uvm-hidden-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for library in LIBRARIES:
            if library in there:
                shutil.copy(any_library(), folder / library)
            else:
                (folder / library).write_text("hidden by tests/environments\n")
            (folder / library).chmod(0o644)
        yield {
            "LD_LIBRARY_PATH": name,
            "CUDA_VISIBLE_DEVICES": "",
            "RMM_UVM_MANAGED_LIMIT": "256MiB",
        }


def any_library() -> Path:
    """Return a library of the system: it does for NVIDIA's as far as being loaded goes."""
    found = re.search(r"/\S+/libm[.-]\S*", Path("/proc/self/maps").read_text())
    assert found
    return Path(found[0])


def require_hidden(*there: str) -> None:
    """Raise RuntimeError if this process can load a library of NVIDIA's driver.

    Those that are to be `there` have to be loaded, and to be others in their place.
    """
    for library, function in LIBRARIES.items():
        try:
            loaded = ctypes.CDLL(library)
        except OSError:
            if library in there:
                raise
            continue
        if library not in there or hasattr(loaded, function):
            raise RuntimeError(f"{library} can be loaded here: nothing is tried beside a GPU")
