# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Public modules that have moved, by the names that they had.

Programs and pickles that name them find the modules of today. Nothing in the package uses the old
names.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

__all__ = ["FORMER_NAMES", "spec_of"]

FORMER_NAMES = {
    "rmm_uvm.comm": "rmm_uvm.dask.comm",
    "rmm_uvm.comm.backend": "rmm_uvm.dask.comm.backend",
    "rmm_uvm.comm.notices": "rmm_uvm.dask.comm.notices",
    "rmm_uvm.comm.statistics": "rmm_uvm.dask.comm.statistics",
    "rmm_uvm.dask.nanny": "rmm_uvm.dask.worker.nanny",
    "rmm_uvm.device_info": "rmm_uvm.machine.device_info",
    "rmm_uvm.installation": "rmm_uvm.pool.installation",
    "rmm_uvm.sizing": "rmm_uvm.pool.sizing",
    "rmm_uvm.units": "rmm_uvm.support.units",
    "rmm_uvm.watch.finding": "rmm_uvm.recording.finding",
    "rmm_uvm.watch.recording": "rmm_uvm.recording.recorded",
    "rmm_uvm.watch.sample": "rmm_uvm.recording.sample",
    "rmm_uvm.watch.thresholds": "rmm_uvm.watch.judging.thresholds",
}
"""The name of today by the former one."""


class _Moved(Loader):
    def __init__(self, today: str) -> None:
        self._today = today

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system: what it makes is replaced below."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of today where the import system looks for the former one."""
        sys.modules[module.__name__] = importlib.import_module(self._today)


def spec_of(former: str) -> ModuleSpec | None:
    """Return where the import system finds a module by a former name; None for any other name."""
    today = FORMER_NAMES.get(former)
    return None if today is None else spec_from_loader(former, _Moved(today))
