# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The libraries of the programs here: cuDF, CuPy and PyTorch, where the pool is on a GPU.

On a simulated device nothing can run on a GPU. There ``stand_ins`` has modules that ask the pool
for memory as these libraries do, in the same order, and compute with NumPy or on the CPU. They lie
in a folder that is called as that of installed packages, so that reports count them as libraries.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import rmm

__all__ = ["library"]

_STAND_INS = str(Path(__file__).parent / "stand_ins" / "site-packages")


def library(name: str) -> ModuleType:
    """Return the library, or what stands in for it on a simulated device."""
    driver = getattr(rmm.mr.get_current_device_resource(), "driver", None)
    if driver is None or not driver.info.simulated:
        return import_module(name)
    if _STAND_INS not in sys.path:
        sys.path.append(_STAND_INS)
    return import_module(f"stand_in_{name}")
