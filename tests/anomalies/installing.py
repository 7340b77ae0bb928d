# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on installations, IPC pools and monitors, each made to fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.watch.sampling.sources import NOT_ASKED_FOR

from .harness import Operation
from .operations import failures, neighbors, of_pool, pool
from .world import DEVICE_BYTES, MIB, World

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
    reason = current.monitor_reason
    return failures(current.managed_mr) + ("" if reason == "as asked" else reason)


def of_libraries(_world: World, _subject: object, installed: Any) -> list[tuple[str, bool]]:
    return [(each.library, each.active) for each in installed.wirings]


def restored(*_: object) -> None:
    rmm_uvm.restore()


def other_device(_world: World) -> Any:
    """Install on a second device, which no call of the first one's driver concerns."""
    return rmm_uvm.reinitialize(
        8 * MIB,
        24 * MIB,
        driver=rmm_uvm.simulated_device(DEVICE_BYTES, device=1),
        libraries=(),
        monitor=False,
    )


def left(_world: World, _other: object, made: Any) -> None:
    with made:
        pass


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


def watch_all(world: World) -> Any:
    """Watch with everything that a monitor may be asked for."""
    return watch(world, {"attribution": True, "faults": True})


def reasons(_world: World, _subject: object, monitor: Any) -> str:
    found = monitor.sources
    told = (found[name].reason for name in TOLD if name in found)
    return "".join(reason for reason in told if reason != NOT_ASKED_FOR.reason)


def of_lines(world: World, subject: object, monitor: Any) -> str:
    found = monitor.recording().lines
    assert found is not None
    return reasons(world, subject, monitor) + str(found.how.partition(" without a budget: ")[2])


def look(_world: World, monitor: Any) -> Any:
    return monitor.snapshot(), monitor.window(), monitor.report()


def topology(world: World, other: Any) -> Any:
    return rmm_uvm.topology(measure=True, drivers=[world.device, other])


def of_topology(_world: World, _other: object, found: Any) -> str:
    devices = "".join(device.host_rates_reason for device in found.devices)
    pairs = "".join(pair.peer_access.reason + pair.rates_reason for pair in found.pairs)
    return devices + pairs + str(found.reason)


def node(_world: World, _none: object) -> Any:
    """Make a node, and a pool on its second GPU."""
    made = rmm_uvm.simulated_node(2, DEVICE_BYTES, backing=True)
    return made, rmm_uvm.managed_pool(
        driver=made.devices[1], initial_pool_size=16 * MIB, maximum_pool_size=24 * MIB
    )


def take_place(world: World, _none: object) -> Any:
    board = rmm_uvm.harvest.HarvestBoard(world.folder)
    board.offer(world.device.info.uuid, 4 * MIB)
    return board


def recorded(world: World) -> Any:
    with rmm_uvm.monitor(
        driver=world.device, interval_seconds=3600.0, publish=False, on_finding=None
    ) as monitor:
        pass
    return monitor.report()


def save(world: World, report: Any) -> None:
    report.save_json(world.folder / "report.json")
    report.save_html(world.folder / "report.html")


def nothing(_world: World) -> None:
    return None


# Sources of a monitor of which it says why they are not there.
TOLD = ("trace", "sampler", "kernel_counters", "faults", "cupti")
# A sample of what could not be read of the device has no figure of it: that is all.
OF_SAMPLES = ("memory",)
WITHOUT_DRIVER = [
    Operation("save a report", recorded, save),
    Operation("simulated_node", nothing, node),
    Operation("HarvestBoard", nothing, take_place, lambda _w, _none, board: board.usable.reason),
]
INSTALLING = [
    Operation("reinitialize", nothing, lambda w, _: install(w), of_installation, restored),
    Operation(
        "reinitialize with libraries",
        nothing,
        lambda world, _: install(world, libraries=("cupy", "numba", "torch")),
        of_installation,
        restored,
        shows=of_libraries,
    ),
    Operation(
        "reinitialize with all",
        nothing,
        with_all,
        of_installation,
        restored,
        quiet=OF_SAMPLES,
        threaded=True,
    ),
    Operation(
        "reinitialize over another",
        install,
        lambda world, _: install(world),
        of_installation,
        end=restored,
        clears=True,
    ),
    Operation(
        "reinitialize with all over another",
        with_all,
        with_all,
        of_installation,
        end=restored,
        quiet=OF_SAMPLES,
        clears=True,
        threaded=True,
    ),
    Operation(
        "reinitialize with all beside another device",
        other_device,
        with_all,
        of_installation,
        left,
        restored,
        quiet=OF_SAMPLES,
        threaded=True,
        shows=lambda _world, other, _made: [each.current for each in other.devices],
    ),
    Operation("restore", with_all, restored, end=restored, quiet=OF_SAMPLES),
    Operation(
        "ipc_pool",
        nothing,
        lambda world, _none: rmm_uvm.ipc_pool(4 * MIB, driver=world.device),
    ),
    Operation("export", ipc, export, undo=lambda _w, subject, handle: subject[0].revoke(handle)),
    Operation("monitor", nothing, watch, reasons, stop, quiet=OF_SAMPLES, threaded=True),
    Operation(
        "monitor of causes and faults",
        nothing,
        lambda world, _none: watch_all(world),
        reasons,
        stop,
        quiet=OF_SAMPLES,
        threaded=True,
    ),
    Operation(
        "monitor of lines",
        lambda world: install(world, device_budget=None),
        lambda world, _: watch(world, {"lines": True}),
        of_lines,
        stop,
        restored,
        quiet=OF_SAMPLES,
        threaded=True,
        features={"tells_moves": False},
    ),
    Operation("snapshot and report", watch_all, look, end=stop, quiet=OF_SAMPLES),
    Operation(
        "topology",
        lambda _world: rmm_uvm.simulated_device(DEVICE_BYTES, device=1, neighbors=1),
        topology,
        of_topology,
    ),
    Operation("stop", watch, stop, end=stop, quiet=OF_SAMPLES),
    Operation(
        "second pool",
        lambda world: pool(world, None, 8 * MIB),
        lambda world, _first: pool(world, None, 8 * MIB),
        of_pool,
    ),
]
