# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Replaying a recorded workload on a simulated card.

Covers one replay: one card, one set of settings. Does not cover reading recordings
(`rmm_uvm.planner.workload.loading`), nor what follows from several replays
(`rmm_uvm.planner.planning`).

The chain's own rules and ledger decide, in C++, what is asked of the simulated device; the
pool is not run again, since the recording has its addresses. docs/understand/simulator.md,
"Replaying", says what that means.

That a card is too small is an answer of a replay. That this process has too little memory is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rmm_uvm._lib.replay import Replayer
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.planner.request import POLICIES, Policy
from rmm_uvm.planner.workload.events import REPLAY_DTYPE, Progress, Workload
from rmm_uvm.planner.workload.result import OutOfMemory, ReplayResult, StageResult, Timeline
from rmm_uvm.simulator import DriverSettings, Machine
from rmm_uvm.simulator.card import simulated_card
from rmm_uvm.support.messages import shown
from rmm_uvm.support.settings import SETTINGS, PrefetchMode
from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes, parse_bytes

__all__ = ["NoRoomError", "replay", "replaying_here"]


class NoRoomError(MemoryError):
    """A workload cannot be replayed in this process."""


@contextmanager
def replaying_here(workload: Workload) -> Iterator[None]:
    """Say what was being done, and what can be: C++ and numpy say no more than that there is none.

    Raises
    ------
    NoRoomError
        If memory runs out.
    """
    try:
        yield
    except NoRoomError:
        raise
    except MemoryError as error:
        slab_bytes = sum(slab.nbytes for slab in workload.slabs)
        raise NoRoomError(
            f"{workload.source} cannot be replayed here: this process has no addresses or memory "
            f"left for a model of {format_bytes(slab_bytes)}; raise its limit (ulimit -v, or the "
            "container's), or record a shorter run"
        ) from error


_DEFAULT_DRIVER = DriverSettings()
# Events between two looks at Python: the progress bar, and Ctrl-C.
_CHUNK_EVENTS = 8192
_POINT_DTYPE = np.dtype(
    [
        ("time_ns", "u8"),
        ("live_bytes", "u8"),
        ("resident_bytes", "u8"),
        ("to_device_bytes", "u8"),
        ("to_host_bytes", "u8"),
    ]
)


def replay(
    workload: Workload,
    machine: Machine,
    *,
    device_bytes: int | str,
    prefetch: PrefetchMode = "auto",
    driver: DriverSettings = _DEFAULT_DRIVER,
    policy: Policy = "driver",
    host_bytes: int | str | None = None,
    progress: Progress | None = None,
) -> ReplayResult:
    """Replay a recorded workload on a simulated card.

    Parameters
    ----------
    workload : Workload
        What was recorded.
    machine : Machine
        Rates and times of the card and its link.
    device_bytes : int or str
        Memory of the card, bytes or such as "16GiB"; rounded down to whole blocks of 2 MiB.
    prefetch : {"auto", "always", "never"}
        As in `rmm_uvm.reinitialize`.
    driver : DriverSettings, optional
        Parameters of the kernel driver.
    policy : {"driver", "discard-dead"}
        "driver": dead blocks are evicted as live ones are, which is so without a budget.
        "discard-dead": while less than 256 MiB (an eighth of a small card) are free, a free drops
        all blocks without a live byte, which are then evicted without a copy. A budget drops them
        too, by rules of its own (`rmm_uvm.residency.Budget`); replays know of none.
    host_bytes : int or str, optional
        Host memory that pages may take; by default without limit. The machine's third tier, if it
        has one, takes the oldest of a full host.
    progress : callable, optional
        Called with the events replayed and all events, every few thousand events.

    Returns
    -------
    ReplayResult
        The same for the same arguments, always. `out_of_memory` says where the replay ended early.

    Raises
    ------
    ConfigurationError
        If the card has less than one block, or a mode or policy is none of these.
    DataError
        If an event is unusable: outside all slabs, of an unknown kind or stage, an allocation over
        live bytes, a free of bytes that are not live. The message names its number.
    MemoryError
        If this process has no addresses or memory left for the workload's slabs.

    Notes
    -----
    Thread-safe: every call has a device of its own. Python's lock is not held while events are
    replayed; Ctrl-C is answered every few thousand events.
    """
    POLICIES.read(policy, "policy")
    SETTINGS["prefetch"].read(prefetch)
    events = workload.events
    if events.dtype != REPLAY_DTYPE:
        raise DataError(f"{workload.source}: events are of {events.dtype}, not of REPLAY_DTYPE")
    capacity_bytes = parse_bytes(device_bytes, name="device_bytes")
    if capacity_bytes < VA_BLOCK_BYTES:
        raise ConfigurationError(
            f"device_bytes is {shown(device_bytes)}: a card has at least 2 MiB"
        )
    device = simulated_card(
        machine,
        driver,
        capacity_bytes,
        None if host_bytes is None else parse_bytes(host_bytes, name="host_bytes"),
        kernels_take_time=False,
    )
    try:
        with replaying_here(workload):
            replayer = Replayer(
                device,
                workload.slabs,
                prefetch=prefetch,
                discard_dead=policy == "discard-dead",
                stage_count=len(workload.stages),
                last_time_ns=int(events["time_ns"].max()) if len(events) else 0,
            )
            _feed(replayer, workload, progress)
    except ValueError as error:
        raise DataError(f"{workload.source}: {error}") from error
    return _result(replayer, workload, device.info.total_bytes)


def _feed(replayer: Replayer, workload: Workload, progress: Progress | None) -> None:
    """Replay all events, or those until memory runs out."""
    events = np.ascontiguousarray(workload.events)
    raw = events.view(np.uint8).reshape(-1)
    total = len(events)
    for first in range(0, total, _CHUNK_EVENTS):
        if progress is not None:
            progress(first, total)
        chunk = raw[first * REPLAY_DTYPE.itemsize : (first + _CHUNK_EVENTS) * REPLAY_DTYPE.itemsize]
        if not replayer.feed(chunk):
            break
    replayer.finish()
    if progress is not None:
        progress(total, total)


def _result(replayer: Replayer, workload: Workload, device_bytes: int) -> ReplayResult:
    """Return what a finished replayer saw."""
    counts = replayer.statistics()
    points = np.frombuffer(replayer.points(), dtype=_POINT_DTYPE)
    stages = tuple(
        StageResult(
            name=name,
            migration_seconds=one["migration_ns"] / 1e9,
            to_device_bytes=int(one["to_device_bytes"]),
            to_host_bytes=int(one["to_host_bytes"]),
            evicted_bytes=int(one["evicted_bytes"]),
            peak_live_bytes=int(one["peak_live_bytes"]),
        )
        for name, one in zip(workload.stages, replayer.stages(), strict=True)
    )
    ended = replayer.out_of_memory()
    return ReplayResult(
        device_bytes=device_bytes,
        recorded_seconds=workload.seconds,
        migration_seconds=counts["modelled_ns"] / 1e9,
        to_device_bytes=counts["host_to_device_bytes"],
        to_host_bytes=counts["device_to_host_bytes"],
        evicted_bytes=counts["evicted_bytes"],
        evicted_blocks=counts["evicted_blocks"],
        dropped_bytes=counts["dropped_bytes"],
        gpu_faults=counts["gpu_faults"],
        peak_resident_bytes=counts["peak_resident_bytes"],
        peak_live_bytes=replayer.peak_live_bytes,
        host_page_bytes=counts["host_page_bytes"],
        stages=stages,
        timeline=Timeline(
            seconds=points["time_ns"] / 1e9,
            live_bytes=points["live_bytes"].copy(),
            resident_bytes=points["resident_bytes"].copy(),
            to_device_bytes=points["to_device_bytes"].copy(),
            to_host_bytes=points["to_host_bytes"].copy(),
        ),
        out_of_memory=None
        if ended is None
        else OutOfMemory(ended["record"], workload.stages[ended["stage"]], ended["bytes"]),
        to_third_tier_bytes=counts["to_third_tier_bytes"],
        from_third_tier_bytes=counts["from_third_tier_bytes"],
    )
