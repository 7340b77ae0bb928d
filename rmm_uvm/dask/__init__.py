# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask workers on managed memory: a preload, a plugin, a cluster in one line.

Importing it needs Dask alone: neither RMM nor a GPU, so schedulers and clients can. Names that need
Dask are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rmm_uvm.dask.defaults import register_defaults
from rmm_uvm.dask.preload import dask_setup, dask_teardown
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.support.requirements import install_extra
from rmm_uvm.support.submodules import submodule

if TYPE_CHECKING:
    from rmm_uvm.dask.cluster.client_warnings import warn_here
    from rmm_uvm.dask.cluster.local import local_cluster
    from rmm_uvm.dask.cluster.scheduler_plugin import UvmSchedulerPlugin
    from rmm_uvm.dask.reports.gathered import report
    from rmm_uvm.dask.worker.plugin import UvmPlugin

__all__ = [
    "UvmPlugin",
    "UvmSchedulerPlugin",
    "dask_setup",
    "dask_teardown",
    "local_cluster",
    "report",
    "warn_here",
]

_MODULE_OF = {
    "UvmPlugin": "worker.plugin",
    "UvmSchedulerPlugin": "cluster.scheduler_plugin",
    "local_cluster": "cluster.local",
    "report": "reports.gathered",
    "warn_here": "cluster.client_warnings",
}

register_defaults()


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        return submodule(__name__, name)
    try:
        value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        # Not only where it is missing: one that is too old has not all of the names.
        raise AvailabilityError(
            f"rmm_uvm.dask.{name} needs Dask: {install_extra('dask')} ({error})"
        ) from None
    globals()[name] = value  # the next use is a plain look-up
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
