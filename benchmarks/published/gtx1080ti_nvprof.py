# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A real GTX 1080 Ti under nvprof: bytes that four programs of some MB moved."""

from __future__ import annotations

import functools

from _published import Order, Row, Table, published, run
from _rodinia import PROGRAMS
from _workloads import BLOCK_BYTES, MIB, simulator_with

from rmm_uvm.simulator import load_machine

# What the rest of the card is blocked for leaves "100 %" for data and for the page tables of it,
# which take at least one 2 MiB chunk of the same memory. Inferred from hotspot at 100 %, which
# moves more than it has: its six chunks do not fit.
_PAGE_TABLE_BYTES = BLOCK_BYTES
_BFS = (
    "a random graph of the same size, not their file, and only distinct pages of 4096 threads at a "
    "time: their warps wait for several blocks at once, again and again; and whether allocations "
    "of less than 2 MiB share a chunk, or take one each so that half of eight fit, is not known"
)
_FRONT = (
    "where a front of thread blocks crosses from chunk to chunk it wants six, and three fit: the "
    "card evicts and replays again and again, the model lets go on what was served once"
)
_READ = "what the host reads besides the result, and when, is not described"
_REASONS = {"bfs": _BFS, "hotspot": _FRONT, "backprop": _READ, "fdtd": _FRONT}
_TIME = (
    "nvprof's own counters slow fault-bound kernels down (x2.8 to 3.6 on an H200), and launches of "
    "under a millisecond include its start-up"
)


@functools.cache
def _run(program: str, factor_percent: int) -> tuple[float, float, float]:
    """Return bytes to the device, bytes to the host, and seconds of kernels."""
    working_set = published("gtx1080ti_nvprof")["working_set_mib"][program] * MIB
    machine = load_machine("gtx1080ti-pcie3").replace(launch_ns=0.0)  # programs run in parts
    device_bytes = int(working_set * 100 / factor_percent) - _PAGE_TABLE_BYTES
    sim = simulator_with(machine, device_bytes)
    times = PROGRAMS[program](sim, 0.0, host_has_outputs=False)
    counters = sim.counters()
    return counters.to_device_bytes, counters.to_host_bytes, times.seconds


def table() -> Table:
    """Run every case."""
    data = published("gtx1080ti_nvprof")
    rows = []
    for program in PROGRAMS:
        for number, percent in enumerate(data["factors_percent"]):
            to_device, to_host, seconds = _run(program, percent)
            reason = _REASONS[program]
            for quantity, theirs, ours in (
                ("to the device", data["htod_mib"][program][number], to_device / MIB),
                ("to the host", data["dtoh_mib"][program][number], to_host / MIB),
            ):
                rows.append(Row(f"{program} {percent} %", quantity, "MiB", theirs, ours, reason))
            rows.append(
                Row(
                    *(f"{program} {percent} %", "kernels", "s"),
                    *(data["kernel_seconds"][program][number], seconds),
                    _BFS if program == "bfs" else _TIME,
                )
            )
    factors = data["factors_percent"]
    orders = [
        Order(
            f"{program}: bytes to the device with less memory",
            tuple(f"{percent} %" for percent in factors),
            tuple(_run(program, percent)[0] / MIB for percent in factors),
            *("MiB", reason),
        )
        for program, reason in (("bfs", ""), ("hotspot", _FRONT), ("fdtd", ""))
    ]
    return Table(
        name="gtx1080ti_nvprof",
        title=data["title"],
        source=data["source"],
        machine=str(load_machine("gtx1080ti-pcie3")),
        workload="backprop, bfs, hotspot and fdtd as in uvm_smart; the host writes inputs before "
        "and reads the result after; memory: working set / factor, less one chunk for page tables",
        rows=tuple(rows),
        orders=tuple(orders),
        left_out={
            "nw, ra, sssp": "wavefront, random and graph programs whose inputs and access orders "
            "are not published as figures; their bytes do not rise with the factor there",
        },
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
