# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of a trace on a simulated card, with what a budget moves beside them.

Covers traces that tell kernels apart. Does not cover other recordings; see `rmm_uvm.plan`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmm_uvm.errors import DataError
from rmm_uvm.planner.trials.replaying import replaying_here
from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.planner.workload.result import PacedReplay
from rmm_uvm.residency.budget import Budget, budget_for
from rmm_uvm.support.machine_files import Machine, as_machine
from rmm_uvm.support.settings import SETTINGS, PrefetchMode
from rmm_uvm.support.units import parse_bytes

if TYPE_CHECKING:
    from rmm_uvm.simulator import DriverSettings

__all__ = ["replay_paced"]


def replay_paced(
    trace: str | os.PathLike[str] | Workload,
    device_memory: int | str,
    *,
    machine: str | os.PathLike[str] | Machine = "h200-pcie5",
    device_budget: int | str | float | Budget | None = None,
    eviction: str | None = None,
    prefetch: PrefetchMode = "auto",
    host_memory: int | str | None = None,
    driver: DriverSettings | None = None,
) -> PacedReplay:
    """Run the kernels of a trace on a simulated card, and tell how long they wait for memory.

    Each kernel's uses are announced, as `rmm_uvm.touch` does, when it is launched. Then it waits
    for what is not there, and computes as long as the trace says. With a budget, what the budget
    evicts and fetches ahead goes on beside that, as far as the link has time.

    Parameters
    ----------
    trace : path or Workload
        What `rmm_uvm.trace.KernelTraceWriter` wrote.
    device_memory : int or str
        Memory of the card, bytes or such as "40GiB"; rounded down to blocks of 2 MiB.
    machine : str, path or Machine
        A machine profile, its name, or its file.
    device_budget : int, str, float, Budget or None
        As in `rmm_uvm.managed_pool`, but None by default, whatever the environment says: the kernel
        driver alone evicts.
    eviction : str, optional
        Eviction policy of the budget, as in `rmm_uvm.managed_pool`.
    prefetch : {"auto", "always", "never"}
        Without a budget: "never" announces nothing, so that everything comes by page faults.
    host_memory : int or str, optional
        Memory of the host for what leaves the card; by default as much as is wanted. The machine's
        third tier, if it has one, takes the oldest of a full host.
    driver : DriverSettings, optional
        Parameters of the kernel driver.

    Returns
    -------
    PacedReplay
        The same for the same arguments, always.

    Raises
    ------
    ConfigurationError
        If an argument cannot be used, or there is no such machine.
    DataError
        If the file is missing or broken, or does not tell kernels apart.
    MemoryError
        If this process has no addresses for the card's memory, or may not have as much managed
        memory as the trace allocates (``RMM_UVM_MANAGED_LIMIT``); if card, host and third tier
        together have no room for it.

    Notes
    -----
    Needs no GPU. Nothing runs in threads. The pool's first slab holds a quarter more than the
    trace's peak. A kernel takes the time until the next one begins: where kernels of several
    streams run at once, the time of all of them together is right.

    Examples
    --------
    Two kernels use 64 MiB each, which do not fit together:

    >>> import tempfile
    >>> from rmm_uvm.planner import replay_paced
    >>> from rmm_uvm.trace import KernelTraceWriter
    >>> folder = tempfile.TemporaryDirectory()
    >>> with KernelTraceWriter(f"{folder.name}/two.trace") as trace:
    ...     data = [trace.allocate("64MiB") for _ in range(2)]
    ...     for _ in range(3):
    ...         trace.kernel("first", writes=data[:1], seconds=0.01)
    ...         trace.kernel("second", writes=data[1:], seconds=0.01)
    >>> took = replay_paced(f"{folder.name}/two.trace", "96MiB")
    >>> took.kernels, round(took.compute_seconds, 6), took.waited_seconds > 0
    (6, 0.06, True)
    >>> replay_paced(f"{folder.name}/two.trace", "256MiB").to_host_bytes
    0
    >>> folder.cleanup()
    """
    from rmm_uvm.planner.trials.paced import PacedTrial
    from rmm_uvm.planner.trials.shadow_device import ShadowDevice

    SETTINGS["prefetch"].read(prefetch)
    profile = as_machine(machine)
    device_bytes = parse_bytes(device_memory, "device_memory")
    budget = budget_for(device_budget, eviction, device_bytes)
    workload = trace if isinstance(trace, Workload) else load_workload(trace)
    if not workload.kernels:
        raise DataError(
            f"{workload.source} does not tell kernels apart, so nothing says how long they compute:"
            " write it with rmm_uvm.trace.KernelTraceWriter, or use rmm_uvm.plan"
        )
    host_bytes = None if host_memory is None else parse_bytes(host_memory, "host_memory")
    with replaying_here(workload):
        card = ShadowDevice(
            device_bytes,
            profile,
            budget,
            prefetch=prefetch,
            driver=driver,
            host_bytes=host_bytes,
            pool_bytes=workload.peak_live_bytes * 5 // 4,
            paced=True,
        )
        return PacedTrial(workload, card, host_bytes).result()
