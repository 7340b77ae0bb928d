# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""UVM Discard: prefetching alone, and discarding what is dead as well."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from _published import Order, Row, Table, published, run
from _workloads import GB, read, scaled, seconds_of, simulator_with, whole_blocks, written

from rmm_uvm.simulator import Simulator, load_machine

_SCALE = 4
_WINDOWS = 48
# Input and output of FIR, half each: the one figure taken from a column that does not fit. With
# 200 %, half of it is on the device at the end, and the rest went to the host: 6.2 GB.
_FIR_BYTES = 2 * 6.2 * GB
_HOST = (
    "the kernel driver's CPU time, above all for host memory that is taken first, is that of the "
    "H200's virtual machine: not published for this one"
)
_EDGE = (
    "the output fills the memory to the last block: how much of it page tables and the context "
    "take is not published"
)
_JOIN = (
    "which buffers the program has, and when each is dead, is not published as figures: three "
    "partitioning passes over 3.2 GB of input are assumed"
)


@dataclass(frozen=True)
class _Result:
    seconds: float
    htod_gb: float
    dtoh_gb: float


def _simulator(link: str, footprint: float, percent: int) -> Simulator:
    machine = scaled(load_machine(f"rtx3080ti-{link}"), _SCALE)
    # 0 %: nothing else is on the card.
    device = machine.device_bytes / _SCALE if percent == 0 else footprint * 100 / percent / _SCALE
    return simulator_with(machine, device)


@functools.cache
def _fir(link: str, percent: int, *, discard: bool, compute_seconds: float) -> _Result:
    """Filter window by window: input from the host, output that stays."""
    sim = _simulator(link, _FIR_BYTES, percent)
    window = whole_blocks(_FIR_BYTES / 2 / _WINDOWS / _SCALE)
    source, target = (sim.allocate_managed(window * _WINDOWS) for _ in range(2))
    sim.cpu_touch(source, window * _WINDOWS)

    def filter_all() -> None:
        for number in range(_WINDOWS):
            at = number * window
            sim.prefetch(source + at, window)
            sim.prefetch(target + at, window)
            sim.kernel(
                [read(source + at, window), written(target + at, window)],
                compute_seconds=compute_seconds / _WINDOWS / _SCALE,
            )
            if discard:
                sim.discard(source + at, window)

    return _measured(sim, filter_all)


_JOIN_BYTES = 3.2 * GB
_JOIN_PASSES = 3


@functools.cache
def _join(link: str, percent: int, *, discard: bool, compute_seconds: float) -> _Result:
    """Partition both sides in passes between two sets of buffers, then join what came of it."""
    footprint = 3 * _JOIN_BYTES
    sim = _simulator(link, footprint, percent)
    part = whole_blocks(_JOIN_BYTES / 4 / _SCALE)  # keys and values of both sides
    sets = [[sim.allocate_managed(part) for _ in range(4)] for _ in range(3)]
    for address in sets[0]:
        sim.cpu_touch(address, part)
    kernels = 4 * (_JOIN_PASSES + 1)

    def join_all() -> None:
        steps = [(0, 1), (1, 2), (2, 1)][:_JOIN_PASSES]
        for source, target in steps:
            for number in range(4):
                inside, outside = sets[source][number], sets[target][number]
                sim.prefetch(inside, part)
                if discard:
                    sim.discard_and_prefetch(outside, part)
                else:
                    sim.prefetch(outside, part)
                sim.kernel(
                    [read(inside, part), written(outside, part)],
                    compute_seconds=compute_seconds / kernels / _SCALE,
                )
                if discard:
                    sim.discard(inside, part)
        for number in range(4):
            address = sets[steps[-1][1]][number]
            sim.prefetch(address, part)
            sim.kernel([read(address, part)], compute_seconds=compute_seconds / kernels / _SCALE)

    return _measured(sim, join_all)


def _measured(sim: Simulator, work: object) -> _Result:
    before = sim.counters()
    seconds = seconds_of(sim, work) * _SCALE  # type: ignore[arg-type]
    after = sim.counters()
    return _Result(
        seconds,
        (after.to_device_bytes - before.to_device_bytes) * _SCALE / GB,
        (after.to_host_bytes - before.to_host_bytes) * _SCALE / GB,
    )


_PROGRAMS = {"fir": _fir, "hash join": _join}


def _results(program: str, link: str, *, discard: bool) -> list[_Result]:
    """Return the results of every factor; computing fills up the time of the one that fits."""
    data = published("uvm_discard")
    name = "discard_ms" if discard else "prefetch_ms"
    bare = _PROGRAMS[program](link, 0, discard=discard, compute_seconds=0.0)
    compute = max(data[link][program][name][0] / 1e3 - bare.seconds, 0.0)
    return [
        _PROGRAMS[program](link, percent, discard=discard, compute_seconds=compute)
        for percent in data["factors_percent"]
    ]


def table() -> Table:
    """Run every case."""
    data = published("uvm_discard")
    rows = []
    orders = []
    for link in ("pcie4", "pcie3"):
        for program in _PROGRAMS:
            theirs = data[link][program]
            ours = {what: _results(program, link, discard=what == "discard") for what in _ARMS}
            for what in _ARMS:
                for number, percent in enumerate(data["factors_percent"]):
                    reason = _JOIN if program == "hash join" else _HOST
                    case = f"{program}, {link}, {what}, {percent} %"
                    result = ours[what][number]
                    if program == "fir" and what == "discard" and percent == 200:
                        reason = _EDGE
                    rows.append(
                        Row(
                            *(case, "time", "ms", theirs[f"{what}_ms"][number]),
                            *(result.seconds * 1e3, reason),
                            by_construction=percent == 0,
                        )
                    )
                    for way, value in (("htod", result.htod_gb), ("dtoh", result.dtoh_gb)):
                        if f"{what}_{way}_gb" in theirs and not _is_input(program, what, percent):
                            figure = theirs[f"{what}_{way}_gb"][number]
                            rows.append(
                                Row(
                                    *(case, way, "GB", figure, value, reason),
                                    # The input comes in, and where all fits, nothing leaves.
                                    by_construction=percent == 0,
                                )
                            )
            orders += [
                Order(
                    f"{program}, {link}, {percent} %",
                    ("prefetch and discard", "prefetch"),
                    (ours["discard"][number].seconds * 1e3, ours["prefetch"][number].seconds * 1e3),
                    "ms",
                )
                for number, percent in enumerate(data["factors_percent"])
                if percent
            ]
    machine = load_machine("rtx3080ti-pcie4")
    return Table(
        name="uvm_discard",
        title=data["title"],
        source=data["source"],
        machine=f"{machine}, and rtx3080ti-pcie3",
        workload="FIR: 6.2 GB in windows from the host to an output of the same size; hash join: "
        "3.2 GB partitioned in three passes between two sets of buffers; time of computing from "
        "the column that fits",
        scale=_SCALE,
        rows=tuple(rows),
        orders=tuple(orders),
        left_out={
            "radix sort": "161 GB for 5.4 GB of keys: how its scattered writes fall over pages is "
            "not published",
            "FIR, prefetch, 200 %, dtoh": "taken as the program's size",
        },
    )


_ARMS = ("prefetch", "discard")


def _is_input(program: str, what: str, percent: int) -> bool:
    return program == "fir" and what == "prefetch" and percent == 200


if __name__ == "__main__":
    raise SystemExit(run(table))
