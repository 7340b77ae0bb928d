# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A process from which a GPU cannot be reached, whatever the machine has."""

from __future__ import annotations

import contextlib
import ctypes
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


@contextlib.contextmanager
def no_driver() -> Iterator[Mapping[str, str]]:
    """Yield environment variables; who is started with them finds no library of NVIDIA's driver.

    Whoever asks, in Python or C++, the dynamic loader finds files first that are no libraries. They
    are in /tmp since a process that becomes another user must find them as well. Were there another
    way to a GPU, no device would be visible there, and little managed memory be allowed.
    """
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="rmm-uvm-hidden-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for library in LIBRARIES:
            (folder / library).write_text("hidden by tests/environments\n")
            (folder / library).chmod(0o644)
        yield {
            "LD_LIBRARY_PATH": name,
            "CUDA_VISIBLE_DEVICES": "",
            "RMM_UVM_MANAGED_LIMIT": "256MiB",
        }


def require_hidden() -> None:
    """Raise RuntimeError if this process can load a library of NVIDIA's driver."""
    for library in LIBRARIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(library)
            raise RuntimeError(f"{library} can be loaded here: nothing is tried beside a GPU")
