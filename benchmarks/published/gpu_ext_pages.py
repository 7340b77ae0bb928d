# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""gpu_ext: one access a page, in order and at random, and four kinds of advice."""

from __future__ import annotations

import functools

import numpy as np
from _published import Order, Row, Table, published, run
from _workloads import MIB, Pages, at_pages, scaled, seconds_of, sector_a_page, simulator_with

from rmm_uvm.simulator import Access, Simulator, load_machine

_SCALE = 64
_CONTEXT_BYTES = 512 << 20  # what a CUDA context takes
_THREADS = 1024 * 256  # of the program's grid; all run at once, each takes every so-manieth page
_LANES = 32
_MOST_RANDOM_BYTES = (1 << 31) * 4  # rand() has 31 bits: of the input, no more is ever read
_PAGE_BYTES = 4096
_WARM_UPS, _PASSES = 3, 3
_BYTES = (
    "under a millisecond: how long the GPU looks up the addresses of single bytes in many pages is "
    "not modelled"
)
_REMOTE = "the program accesses 4 bytes of each page; what is read where it lies counts whole pages"
_HOST = (
    "what evicting a block takes of the kernel driver's CPU time is that of the H200's virtual "
    "machine, and how many pages of a block fault together is not known: warps are taken to come "
    "one by one, which makes six services of a block"
)
_FULL = (
    "at the edge of what fits, the bytes that the card, its display and the context leave decide; "
    "they are not published"
)


def _grid_order(pages: int, seed: int) -> Pages:
    """Return every page as a grid of threads goes over them in strides.

    All threads of a stride run at once: their warps, 32 pages each, come in any order.
    """
    random = np.random.default_rng(seed)
    order = []
    stride = _THREADS // _SCALE
    for low in range(0, pages, stride):
        warps = np.array_split(np.arange(low, min(low + stride, pages)), stride // _LANES)
        order += [warps[number] for number in random.permutation(len(warps))]
    return np.concatenate(order).astype(np.int64)


def _simulator() -> Simulator:
    machine = sector_a_page(scaled(load_machine("rtx5090-pcie5"), _SCALE))
    return simulator_with(machine, (machine.device_bytes - _CONTEXT_BYTES) / _SCALE)


def _working_set(factor: float) -> int:
    total: int = published("gpu_ext_pages")["total_device_mib"]
    return int(total * MIB * factor / _SCALE)


def _buffer(sim: Simulator, nbytes: int, *, host: bool) -> int:
    address = sim.allocate_managed(nbytes)
    if host:
        sim.cpu_touch(address, nbytes)
    return address


def _median_ms(sim: Simulator, accesses: list[list[Access]]) -> float:
    """Return the median of passes after some to warm up, as the program does it."""
    times = [seconds_of(sim, lambda each=each: sim.kernel(each)) for each in accesses]
    return float(np.median(times[_WARM_UPS:])) * 1e3 * _SCALE


@functools.cache
def _sequential_ms(factor: float, advice: str = "none") -> float:
    """Input and output, half of the working set each; the host writes the input."""
    sim = _simulator()
    nbytes = _working_set(factor) // 2 // _PAGE_BYTES * _PAGE_BYTES
    buffers = [_buffer(sim, nbytes, host=number == 0) for number in range(2)]
    for address in buffers:
        if advice == "read_mostly, written":
            sim.advise(address, nbytes, "read_mostly")
        elif advice == "preferred_location host":
            sim.advise(address, nbytes, "preferred_location", gpu=None)
        elif advice == "accessed_by":
            sim.advise(address, nbytes, "accessed_by", gpu=0)
    passes = []
    for number in range(_WARM_UPS + _PASSES):
        order = _grid_order(nbytes // _PAGE_BYTES, number)
        passes.append(
            [at_pages(address, nbytes, order, write=address == buffers[1]) for address in buffers]
        )
    return _median_ms(sim, passes)


@functools.cache
def _random_ms(factor: float) -> float:
    """Input, output and indices, a third each; the input is read at random."""
    sim = _simulator()
    nbytes = _working_set(factor) // 3 // _PAGE_BYTES * _PAGE_BYTES
    source, target, indices = (_buffer(sim, nbytes, host=host) for host in (True, False, True))
    pages = nbytes // _PAGE_BYTES
    read_pages = min(pages, _MOST_RANDOM_BYTES // _PAGE_BYTES // _SCALE)
    passes = []
    for number in range(_WARM_UPS + _PASSES):
        order = _grid_order(pages, number)
        # The indices stay the same: a page of them names the same page each time.
        named = np.random.default_rng(77).integers(0, read_pages, pages)
        passes.append(
            [
                at_pages(indices, nbytes, order, write=False),
                at_pages(source, nbytes, named[order], write=False),
                at_pages(target, nbytes, order, write=True),
            ]
        )
    return _median_ms(sim, passes)


def table() -> Table:
    """Run every case."""
    data = published("gpu_ext_pages")
    rows = []
    sequential = {factor: _sequential_ms(float(factor)) for factor in data["sequential_ms"]}
    random = {factor: _random_ms(float(factor)) for factor in data["random_ms"]}
    for what, theirs, ours in (
        ("in order", data["sequential_ms"], sequential),
        ("at random", data["random_ms"], random),
    ):
        for factor, milliseconds in theirs.items():
            reason = _BYTES if float(factor) < 1 else _FULL if float(factor) == 1 else _HOST
            rows.append(
                Row(f"{what}, {factor} x", "a pass", "ms", milliseconds, ours[factor], reason)
            )
    hints = {name: _sequential_ms(0.25, name) for name in data["hints_at_quarter_ms"]}
    hint_reasons = {
        "none": _BYTES,
        "accessed_by": _REMOTE,
        "preferred_location host": _REMOTE,
        "read_mostly, written": "each page is written by a fault of its own, in every pass; how "
        "many fault together, and what a change of page tables takes here, is not published",
    }
    rows += [
        Row(
            f"0.25 x, advice: {name}", "a pass", "ms", milliseconds, hints[name], hint_reasons[name]
        )
        for name, milliseconds in data["hints_at_quarter_ms"].items()
    ]
    return Table(
        name="gpu_ext_pages",
        title=data["title"],
        source=data["source"],
        machine=str(load_machine(data["machine"])),
        workload="262,144 threads, all at once, one access a page; in order: input and output; at "
        "random: a third each for indices, input and output; 3 passes to warm up, median of 3; "
        "the whole card but 0.5 GiB",
        scale=_SCALE,
        rows=tuple(rows),
        orders=(
            Order(
                "in order, by factor",
                tuple(f"{factor} x" for factor in sequential),
                tuple(sequential.values()),
                "ms",
            ),
            Order(
                "at random, by factor",
                tuple(f"{factor} x" for factor in random),
                tuple(random.values()),
                "ms",
            ),
            *(
                Order(
                    f"{factor} x",
                    ("at random", "in order"),
                    (random[factor], sequential[factor]),
                    "ms",
                )
                for factor in ("1.25", "1.5")
            ),
            Order(
                "advice at 0.25 x",
                tuple(hints),
                tuple(hints.values()),
                "ms",
            ),
        ),
        left_out={
            "pointer chase": "its segments, their number and the values of its pointers changed "
            "between published versions; at 1.25 x the one at hand would fit",
            "policies in the driver": "other drivers, that evict by access or frequency",
            "two tenants": "K-Means, GEMM and Hotspot with policies of that driver",
        },
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
