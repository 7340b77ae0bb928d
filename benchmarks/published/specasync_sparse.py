# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""SpecAsync: what the driver's prefetch threshold does to sparse and to dense access."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from _published import Order, Row, Table, published, run
from _workloads import (
    BLOCK_BYTES,
    GIB,
    Pages,
    at_pages,
    read,
    scaled,
    seconds_of,
    sector_a_page,
    simulator_with,
    written,
)

from rmm_uvm.simulator import DriverSettings, load_machine

_SCALE = 4
_STENCIL_SCALE = 64
_STENCIL_ITERATIONS = 3  # measured; the first one, with the host's data, is not
_THREADS = 256  # of a thread block
_MULTIPROCESSORS = 70
# Accesses of a thread block at a turn. Of the column that fits: at threshold 0, where a service
# brings a whole block, 73,006 faults came for 4,096 blocks, so 18 pages of a block came together.
_TURN = 16
_PASSES = 3
_PAGES_PER_BLOCK = 512
_CALIBRATES = ("fits", "1", "51")
_TOGETHER = (
    "how many pages of a block come together in one batch is taken to be 16 always; it decides how "
    "many services a block takes"
)
_SINGLE_PAGES = (
    "with the driver's prefetch off the host's pages, too, are taken one by one and lie anywhere: "
    "each is copied on its own; the model copies neighbours together"
)
_ORDER = (
    "the model takes faults in the same order in every pass; on the GPU the order varies, so that "
    "some blocks of the pass before are still there"
)
_HOST = (
    "what evicting a block takes of the kernel driver's CPU time is that of the H200's virtual "
    "machine: not published for the desktop processor of this card"
)


@dataclass(frozen=True)
class _Result:
    htod_gib: float
    dtoh_gib: float
    passes_ms: tuple[float, ...]


def _thread_order(blocks: int, pages_per_block: int, blocks_in_flight: int) -> Pages:
    """Return the pages of one pass in the order of their accesses.

    One thread a page, blocks of memory in random order, random pages of each. Thread blocks of 256
    are dealt to the multiprocessors, which take turns of 16 accesses; a store comes when the loads
    of as many thread blocks as run at once have.
    """
    random = np.random.default_rng(202610)
    pages = np.concatenate(
        [
            block * _PAGES_PER_BLOCK + random.permutation(_PAGES_PER_BLOCK)[:pages_per_block]
            for block in random.permutation(blocks)
        ]
    ).astype(np.int64)
    thread_blocks = np.array_split(pages, max(len(pages) // _THREADS, 1))
    dealt = [
        _in_turns(thread_blocks[first : first + _MULTIPROCESSORS])
        for first in range(0, len(thread_blocks), _MULTIPROCESSORS)
    ]
    behind = max(blocks_in_flight // _MULTIPROCESSORS, 1)
    accesses = []
    for number in range(len(dealt) + behind):
        if number < len(dealt):
            accesses.append(dealt[number])  # loads
        if number >= behind:
            accesses.append(dealt[number - behind])  # stores
    return np.concatenate(accesses)


def _in_turns(lists: list[Pages]) -> Pages:
    """Return some of each list, then the next of each, and so on."""
    place = np.concatenate([np.arange(len(pages)) // _TURN for pages in lists])
    return np.concatenate(lists)[np.argsort(place, kind="stable")]


@functools.cache
def _sparse(memory: str, pages_per_block: int, threshold: int) -> _Result:
    data = published("specasync_sparse")
    nbytes = data["array_gib"][memory] * GIB // _SCALE
    machine = sector_a_page(scaled(load_machine(data["machine"]), _SCALE))
    sim = simulator_with(
        machine, data["device_gib"] * GIB // _SCALE, DriverSettings(prefetch_threshold=threshold)
    )
    array = sim.allocate_managed(nbytes)
    sim.cpu_touch(array, nbytes)
    in_flight = data["resident_threads"] // _THREADS // _SCALE
    pages = _thread_order(nbytes // BLOCK_BYTES, pages_per_block, in_flight)
    access = at_pages(array, nbytes, pages, write=True)
    before = sim.counters()
    passes_ms = tuple(
        seconds_of(sim, lambda: sim.kernel([access])) * 1e3 * _SCALE for _ in range(_PASSES)
    )
    after = sim.counters()
    return _Result(
        (after.to_device_bytes - before.to_device_bytes) * _SCALE / GIB,
        (after.to_host_bytes - before.to_host_bytes) * _SCALE / GIB,
        passes_ms,
    )


@functools.cache
def _stencil_seconds(driver: DriverSettings, *, fits: bool) -> float:
    """Return the time of all iterations of a stencil between two grids."""
    facts = published("specasync_sparse")["stencil_oversubscribed_seconds"]
    grid = int(facts["side"] ** 2 * 4 // _STENCIL_SCALE)
    device_bytes = 4 * grid if fits else int(2 * grid / facts["factor"])
    machine = scaled(load_machine(published("specasync_sparse")["machine"]), _STENCIL_SCALE)
    sim = simulator_with(machine, device_bytes, driver)
    grids = [sim.allocate_managed(grid) for _ in range(2)]
    for address in grids:
        sim.cpu_touch(address, grid)

    def iterate(count: int) -> None:
        for number in range(count):
            source, target = grids[number % 2], grids[(number + 1) % 2]
            sim.kernel([read(source, grid), written(target, grid)])

    if fits:  # the first touch is what is measured there
        return seconds_of(sim, lambda: iterate(1)) * _STENCIL_SCALE
    iterate(2)
    measured = seconds_of(sim, lambda: iterate(_STENCIL_ITERATIONS))
    return measured / _STENCIL_ITERATIONS * facts["iterations"] * _STENCIL_SCALE


def table() -> Table:
    """Run every case."""
    data = published("specasync_sparse")
    rows = []
    for memory, by_pages in data["htod_gib"].items():
        for pages, by_threshold in by_pages.items():
            for threshold in by_threshold:
                ours = _sparse(memory, int(pages), int(threshold))
                case = f"{memory}, {pages} of 512 pages, threshold {threshold}"
                htod, dtoh = by_threshold[threshold], data["dtoh_gib"][memory][pages][threshold]
                passes_ms = sum(data["passes_ms"][memory][pages][threshold])
                rows.append(Row(case, "to the device", "GiB", htod, ours.htod_gib, _ORDER))
                rows.append(
                    Row(
                        *(case, "to the host", "GiB", dtoh, ours.dtoh_gib, _ORDER),
                        by_construction=memory == "fits",  # nothing leaves
                    )
                )
                if (memory, pages, threshold) != _CALIBRATES:
                    reason = _TOGETHER if memory == "fits" else _HOST
                    rows.append(Row(case, "3 passes", "ms", passes_ms, sum(ours.passes_ms), reason))
    stencil = data["stencil_oversubscribed_seconds"]
    default = _stencil_seconds(DriverSettings(), fits=False)
    off = _stencil_seconds(DriverSettings(prefetch=False), fits=False)
    case = f"stencil, {stencil['factor']} x memory"
    rows += [
        Row(case, "driver's default", "s", stencil["default"], default, _HOST),
        Row(case, "driver's prefetch off", "s", stencil["driver prefetch off"], off, _SINGLE_PAGES),
        Row(
            *(case, "off / default", "", stencil["driver prefetch off"] / stencil["default"]),
            *(off / default, _SINGLE_PAGES),
        ),
    ]
    orders = [
        _sign(memory, pages)
        for memory in ("oversubscribed", "fits")
        for pages in (int(name) for name in data["htod_gib"][memory])
    ]
    fits_default = _stencil_seconds(DriverSettings(), fits=True)
    fits_off = _stencil_seconds(DriverSettings(prefetch=False), fits=True)
    orders += [
        Order("stencil over memory", ("default", "prefetch off"), (default, off), "s"),
        Order("stencil that fits", ("default", "prefetch off"), (fits_default, fits_off), "s"),
    ]
    machine = load_machine(data["machine"])
    return Table(
        name="specasync_sparse",
        title=data["title"],
        source=data["source"],
        machine=str(machine),
        workload="one thread a page, random blocks, random pages of each; 107,520 threads at once "
        "on 70 multiprocessors that take turns of 16, stores behind the loads of all of them; "
        f"stencil: two grids in turn, sizes / {_STENCIL_SCALE}",
        scale=_SCALE,
        rows=tuple(rows),
        orders=tuple(orders),
        left_out={
            "STREAM, SGEMM, graph search, cuFFT, T4": "whole-program times with the host's share; "
            "traces of pages are 8 byte numbers of third-party files",
            "fits, 1 of 512 pages, threshold 51, time": "the machine's fault times are derived "
            "from it",
            "GPU page faults": "counted by nsys in groups, which its documents do not define",
            "stencil that fits, 3.88 x": "whole-program time with start-up; here only its sign",
        },
    )


def _sign(memory: str, pages: int) -> Order:
    sums = {threshold: sum(_sparse(memory, pages, threshold).passes_ms) for threshold in (0, 51)}
    ranking = sorted(
        (0, 51),
        key=lambda t: sum(published("specasync_sparse")["passes_ms"][memory][str(pages)][str(t)]),
    )
    return Order(
        f"{memory}, {pages} of 512 pages",
        tuple(f"threshold {threshold}" for threshold in ranking),
        tuple(sums[threshold] for threshold in ranking),
        "ms",
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
