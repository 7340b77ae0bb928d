# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is tried in every environment: a column of the tables of environments.md each."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping

MIB = 1 << 20
# Of the simulated device, beside its 64 MiB; an environment may change them.
DEVICE: dict[str, bool] = {}


def importing() -> str:
    """Import the package and every name that it offers."""
    rmm_uvm = importlib.import_module("rmm_uvm")
    return ", ".join(str(getattr(rmm_uvm, name)) for name in rmm_uvm.__all__)


def doctor() -> str:
    """Have the doctor look around, and print what it found."""
    from rich.console import Console

    from rmm_uvm.cli.doctor import render
    from rmm_uvm.doctor import examine

    printed = io.StringIO()
    Console(file=printed, width=1000).print(render(examine()))
    return printed.getvalue()


def pool() -> str:
    """Install a pool on a simulated device, and allocate from it past the device's memory."""
    import rmm

    import rmm_uvm

    device = rmm_uvm.simulated_device("64MiB", **DEVICE)
    installation = rmm_uvm.reinitialize(driver=device, initial_pool_size="8MiB", monitor=False)
    try:
        mr = rmm.mr.get_per_device_resource(0)
        buffers = [rmm.DeviceBuffer(size=40 * MIB, mr=mr) for _ in range(2)]
        assert mr.get_allocated_bytes() == 80 * MIB
        del buffers, mr
        return str(installation)
    finally:
        rmm_uvm.restore()


def monitor() -> str:
    """Watch a simulated device while memory comes and goes, and write the report."""
    import rmm

    import rmm_uvm

    device = rmm_uvm.simulated_device("64MiB", **DEVICE)
    watching = {"on_finding": "log"}
    with rmm_uvm.reinitialize(driver=device, initial_pool_size="8MiB", monitor=watching) as made:
        assert made.monitor is not None, made.monitor_reason
        mr = rmm.mr.get_per_device_resource(0)
        buffer = rmm.DeviceBuffer(size=40 * MIB, mr=mr)
        assert made.monitor.snapshot().footprint_bytes >= 40 * MIB
        del buffer, mr
        sources = {name: found.reason for name, found in made.monitor.sources.items()}
        return f"{made.monitor.report()}\n{sources}\n{made}"


COLUMNS: Mapping[str, Callable[[], str]] = {
    "import": importing,
    "doctor": doctor,
    "pool": pool,
    "monitor": monitor,
}
