# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Managed memory for RAPIDS: data may exceed the GPU.

`reinitialize` installs a managed-memory pool with prefetch-on-allocate for cuDF, CuPy and, on
request, PyTorch. The building blocks are in `rmm_uvm.mr`, `managed_pool` and `ipc_pool`; `ipc`
opens what other processes export from theirs. Errors and warnings are here too, to be caught and
filtered; `rmm_uvm.errors` says what each is.

Names are imported when they are first used, so that ``rmm-uvm doctor`` can say what is wrong with
an installation in which they cannot be.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmm_uvm import harvest, ipc, mr
    from rmm_uvm.doctor.links import topology
    from rmm_uvm.drivers import cuda_driver, simulated_device
    from rmm_uvm.errors import (
        AmplificationWarning,
        AvailabilityError,
        BudgetWarning,
        CapacityWarning,
        ConfigurationError,
        DataError,
        DeviceTakenWarning,
        DoubleFreeError,
        DriverError,
        EvictionWarning,
        FindingWarning,
        HostMemoryWarning,
        IpcPoolWarning,
        MonitorWarning,
        NeighborWarning,
        NotEnteredWarning,
        OutOfRangeError,
        OversubscriptionWarning,
        PredictionWarning,
        PrefetchEvictionWarning,
        ReplacedResourceWarning,
        UvmError,
        UvmWarning,
    )
    from rmm_uvm.planner import plan
    from rmm_uvm.pool.build import ipc_pool, managed_pool
    from rmm_uvm.pool.hints import advise, evict, pin, prefetch, touch
    from rmm_uvm.pool.install import current_installation, reinitialize, restore
    from rmm_uvm.pool.installed import residency_statistics
    from rmm_uvm.pool.sleeping import sleep, wake
    from rmm_uvm.pool.trimming import trim, trim_when_idle
    from rmm_uvm.simulator.node import SimulatedNode as simulated_node  # noqa: N813 - as monitor
    from rmm_uvm.watch.monitor import Monitor as monitor  # noqa: N813 - used as a function is
    from rmm_uvm.watch.stages import stage

__version__ = "0.1.0"

__all__ = [
    "AmplificationWarning",
    "AvailabilityError",
    "BudgetWarning",
    "CapacityWarning",
    "ConfigurationError",
    "DataError",
    "DeviceTakenWarning",
    "DoubleFreeError",
    "DriverError",
    "EvictionWarning",
    "FindingWarning",
    "HostMemoryWarning",
    "IpcPoolWarning",
    "MonitorWarning",
    "NeighborWarning",
    "NotEnteredWarning",
    "OutOfRangeError",
    "OversubscriptionWarning",
    "PredictionWarning",
    "PrefetchEvictionWarning",
    "ReplacedResourceWarning",
    "UvmError",
    "UvmWarning",
    "__version__",
    "advise",
    "cuda_driver",
    "current_installation",
    "evict",
    "harvest",
    "ipc",
    "ipc_pool",
    "managed_pool",
    "monitor",
    "mr",
    "pin",
    "plan",
    "prefetch",
    "reinitialize",
    "residency_statistics",
    "restore",
    "simulated_device",
    "simulated_node",
    "sleep",
    "stage",
    "topology",
    "touch",
    "trim",
    "trim_when_idle",
    "wake",
]

_MODULE_OF = {
    "advise": "pool.hints",
    "cuda_driver": "drivers",
    "current_installation": "pool.install",
    "evict": "pool.hints",
    "ipc_pool": "pool.build",
    "managed_pool": "pool.build",
    "monitor": "watch.monitor",
    "pin": "pool.hints",
    "plan": "planner",
    "prefetch": "pool.hints",
    "reinitialize": "pool.install",
    "residency_statistics": "pool.installed",
    "restore": "pool.install",
    "simulated_device": "drivers",
    "simulated_node": "simulator.node",
    "sleep": "pool.sleeping",
    "stage": "watch.stages",
    "topology": "doctor.links",
    "touch": "pool.hints",
    "trim": "pool.trimming",
    "trim_when_idle": "pool.trimming",
    "wake": "pool.sleeping",
}
_MODULES = ("harvest", "ipc", "mr")
_EXTRAS = ("dask", "torch")  # likewise, where what they need is installed
_NAME_THERE = {  # classes that are used as functions are
    "monitor": "Monitor",
    "simulated_node": "SimulatedNode",
}


def __getattr__(name: str) -> Any:
    if name in __all__ and name.endswith(("Error", "Warning")):
        # Without what is compiled: filters of warnings are set before anything else.
        value = getattr(importlib.import_module("rmm_uvm.errors"), name)
        globals()[name] = value
        return value
    if name in _EXTRAS:
        return importlib.import_module(f"rmm_uvm.{name}")
    if name not in _MODULES and name not in _MODULE_OF:
        return importlib.import_module("rmm_uvm.support.submodules").submodule(__name__, name)
    importlib.import_module("rmm_uvm._lib")  # first: says in one line what is wrong with RMM
    if name in _MODULES:
        return importlib.import_module(f"rmm_uvm.{name}")
    if _MODULE_OF[name].startswith("pool."):
        # With the first of them: a child of a fork must not find what it needs half imported by
        # another thread.
        importlib.import_module("rmm_uvm.pool.hints")
    value = getattr(
        importlib.import_module(f"rmm_uvm.{_MODULE_OF[name]}"), _NAME_THERE.get(name, name)
    )
    globals()[name] = value  # the next use is a plain look-up
    return value


def load_ipython_extension(shell: Any) -> None:
    """Register ``%%uvm`` and ``%uvm_report``: what ``%load_ext rmm_uvm`` calls."""
    importlib.import_module("rmm_uvm.integrations.jupyter").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away again."""
    importlib.import_module("rmm_uvm.integrations.jupyter").unload(shell)


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


_FORMER_NAMES = {
    "rmm_uvm.comm": "rmm_uvm.dask.comm",
    "rmm_uvm.comm.backend": "rmm_uvm.dask.comm.backend",
    "rmm_uvm.comm.notices": "rmm_uvm.dask.comm.notices",
    "rmm_uvm.comm.statistics": "rmm_uvm.dask.comm.statistics",
    "rmm_uvm.dask.nanny": "rmm_uvm.dask.worker.nanny",
    "rmm_uvm.device_info": "rmm_uvm.machine.device_info",
    "rmm_uvm.installation": "rmm_uvm.pool.installation",
    "rmm_uvm.report.report": "rmm_uvm.report.of_recording",
    "rmm_uvm.residency.region": "rmm_uvm.residency.memory_of",
    "rmm_uvm.simulator.counters": "rmm_uvm.simulator.model",
    "rmm_uvm.simulator.driver_settings": "rmm_uvm.simulator.model",
    "rmm_uvm.simulator.machine": "rmm_uvm.support.machine_files",
    "rmm_uvm.simulator.profile": "rmm_uvm.support.machine_profile",
    "rmm_uvm.simulator.simulator": "rmm_uvm.simulator.model",
    "rmm_uvm.sizing": "rmm_uvm.pool.sizing",
    "rmm_uvm.torch.shadow.statistics": "rmm_uvm.planner.trials.shadow_statistics",
    "rmm_uvm.trace.trace": "rmm_uvm.trace.contents",
    "rmm_uvm.units": "rmm_uvm.support.units",
    "rmm_uvm.watch.finding": "rmm_uvm.recording.finding",
    "rmm_uvm.watch.recording": "rmm_uvm.recording.recorded",
    "rmm_uvm.watch.sample": "rmm_uvm.recording.sample",
    "rmm_uvm.watch.thresholds": "rmm_uvm.watch.judging.thresholds",
}

_FORMER_PACKAGES = {  # now installed by themselves: the name of today, and what brings it
    "rmm_uvm.mortgage": ("rmm_uvm_mortgage", "rmm-uvm-mortgage[cpu]"),
}


class _FormerNames:
    """Finds public modules by the names that they had."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        today, brought_by = _FORMER_NAMES.get(name), None
        for former, (package, distribution) in _FORMER_PACKAGES.items():
            if f"{name}.".startswith(f"{former}."):
                today, brought_by = package + name.removeprefix(former), distribution
        if today is None:
            return None
        former_names = importlib.import_module("rmm_uvm.support.former_names")
        return former_names.spec_of(name, today, brought_by)


# First, since a former package has the folder of today's: the modules there are found twice there.
sys.meta_path.insert(0, _FormerNames)
