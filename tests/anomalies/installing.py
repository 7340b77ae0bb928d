# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a program asks of installations, IPC pools and monitors: the operations made to fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rmm

import rmm_uvm

from .harness import Operation
from .operations import failures, neighbors, of_pool, pool
from .world import MIB, World

BUFFER_BYTES = 1 * MIB


def install(world: World, **settings: Any) -> Any:
    return rmm_uvm.reinitialize(
        8 * MIB,
        24 * MIB,
        **{"driver": world.device, "libraries": (), "monitor": False, **settings},
    )


def with_all(world: World, subject: object = None) -> Any:
    """Install with everything that there is: budget, neighbour, IPC pool, monitor and trace."""
    del subject
    path = world.folder / "x.trace"
    path.unlink(missing_ok=True)
    return install(
        world,
        device_budget=neighbors(world),
        ipc_pool_size=2 * MIB,
        monitor={"trace": path, "interval_seconds": 3600.0},
    )


def of_installation(_world: World, _subject: object, installed: Any) -> str:
    current = installed if installed is not None else rmm_uvm.current_installation()
    if current is None or not current.devices:
        return ""
    return failures(current.managed_mr) + current.monitor_reason


def restored(*_: object) -> None:
    rmm_uvm.restore()


def export(_world: World, subject: tuple[Any, Any]) -> bytes:
    made, buffer = subject
    return bytes(made.export(buffer))


def ipc(world: World) -> tuple[Any, Any]:
    made = rmm_uvm.ipc_pool(4 * MIB, driver=world.device)
    return made, rmm.DeviceBuffer(size=BUFFER_BYTES, mr=made)


def watch(world: World, settings: Mapping[str, Any] | None = None) -> Any:
    path = world.folder / "y.trace"
    path.unlink(missing_ok=True)
    return rmm_uvm.monitor(
        driver=world.device,
        interval_seconds=3600.0,
        publish=False,
        on_finding=None,
        trace=path,
        **(settings or {}),
    ).start()


def stop(_world: World, subject: Any, monitor: Any = None) -> None:
    (monitor or subject).stop()


def reasons(_world: World, _subject: object, monitor: Any) -> str:
    found = monitor.sources
    return "".join(found[name].reason for name in ("trace", "sampler") if name in found)


def recorded(world: World) -> Any:
    with rmm_uvm.monitor(
        driver=world.device, interval_seconds=3600.0, publish=False, on_finding=None
    ) as monitor:
        pass
    return monitor.report()


def save(world: World, report: Any) -> None:
    report.save_json(world.folder / "report.json")
    report.save_html(world.folder / "report.html")


SAVING = Operation("save a report", recorded, save)
# A sample that could not be taken of the device's memory has no figure of it: that is all.
OF_SAMPLES = ("memory",)
INSTALLING = [
    Operation("reinitialize", lambda _: None, lambda w, _: install(w), of_installation, restored),
    Operation(
        "reinitialize with all",
        lambda _world: None,
        with_all,
        of_installation,
        restored,
        quiet=OF_SAMPLES,
    ),
    Operation("restore", with_all, restored, end=restored, quiet=OF_SAMPLES),
    Operation(
        "ipc_pool",
        lambda _world: None,
        lambda world, _none: rmm_uvm.ipc_pool(4 * MIB, driver=world.device),
    ),
    Operation("export", ipc, export, undo=lambda _w, subject, handle: subject[0].revoke(handle)),
    Operation("monitor", lambda _world: None, watch, reasons, stop, quiet=OF_SAMPLES),
    Operation("stop", watch, stop, end=stop, quiet=OF_SAMPLES),
    Operation(
        "second pool",
        lambda world: pool(world, None, 8 * MIB),
        lambda world, _first: pool(world, None, 8 * MIB),
        of_pool,
    ),
]
