# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of Rodinia and Polybench as page accesses: backprop, bfs and hotspot; fdtd.

Sizes are those of UVM Smart's list of working sets; the order of accesses follows from what the
programs compute. `host_has_outputs` says that the host has pages of buffers that only the device
writes, as in UVM Smart's simulator, which copies every page in.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from _workloads import PAGE_BYTES, Pages, at_pages, seconds_of

from rmm_uvm.simulator import Simulator

_INPUTS, _HIDDEN = 131_056, 16
_NODES, _EDGES = 261_444, 1_568_420
_GRID = 1024
_HOTSPOT_KERNELS = 4
_NODES_A_STEP = 4096
_FIELD, _FIELD_STEPS = 1200, 5
# 28 multiprocessors with 8 blocks of 256 threads each: 224 blocks of 1088 bytes of a weight matrix,
# or 2.6 rows of 86 blocks, each of 12 new rows of the grid, a page each; of fdtd 5.9 rows of 38
# blocks, each of 8 rows of 4800 bytes.
_BACKPROP_WIDTH = 60
_HOTSPOT_WIDTH = 32
_FDTD_WIDTH = 55
_TOUCHES = 2


@dataclass(frozen=True)
class Times:
    """What the kernels of a program took, and how many there were."""

    seconds: float
    kernels: int


def _advance(
    sim: Simulator,
    buffers: list[tuple[int, int, str]],
    width_pages: int,
    compute_seconds: float,
    seed: int,
) -> None:
    """Run a kernel whose thread blocks go through all buffers together, each at its own rate.

    Buffers are address, bytes and "r", "w" or "rw". `width_pages` of the largest are in the hands
    of thread blocks that run at once: they load, compute, and then store; they touch pages in no
    order, several touch each, and what is in flight advances by half of its width at a time.
    """
    most = max(-(-nbytes // PAGE_BYTES) for _, nbytes, _ in buffers)
    fronts = -(-most // max(width_pages // 2, 1))
    for number in range(fronts):
        loads, stores = [], []
        for which, (address, nbytes, how) in enumerate(buffers):
            pages = -(-nbytes // PAGE_BYTES)
            low = number * pages // fronts
            high = min(max((number + 2) * pages // fronts, low + 1), pages)
            random = np.random.default_rng((seed, number, which))
            order = random.permutation(np.repeat(np.arange(low, high), _TOUCHES))
            if "r" in how:
                loads.append(at_pages(address, nbytes, order, write=False))
            if "w" in how:
                stores.append(at_pages(address, nbytes, order, write=True))
        sim.kernel(loads, compute_seconds=compute_seconds / fronts)
        sim.kernel(stores)


def backprop(sim: Simulator, compute_seconds: float, *, host_has_outputs: bool) -> Times:
    """Train one layer: forward over one weight matrix, then adjust two others, row by row."""
    weights_bytes = (_INPUTS + 1) * (_HIDDEN + 1) * 4
    units, weights, sums, delta, weights2, previous = (
        sim.allocate_managed(nbytes)
        for nbytes in (
            *((_INPUTS + 1) * 4, weights_bytes, _INPUTS * 4, (_HIDDEN + 1) * 4),
            *(weights_bytes, weights_bytes),
        )
    )
    for address, nbytes in (
        *((units, (_INPUTS + 1) * 4), (weights, weights_bytes), (delta, (_HIDDEN + 1) * 4)),
        *((weights2, weights_bytes), (previous, weights_bytes)),
    ):
        sim.cpu_touch(address, nbytes)
    if host_has_outputs:
        sim.cpu_touch(sums, _INPUTS * 4)

    def forward() -> None:
        _advance(
            sim,
            [
                (units, (_INPUTS + 1) * 4, "r"),
                (weights, weights_bytes, "rw"),
                (sums, _INPUTS * 4, "w"),
            ],
            *(_BACKPROP_WIDTH, compute_seconds / 2, 1),
        )

    def adjust() -> None:
        _advance(
            sim,
            [
                (delta, (_HIDDEN + 1) * 4, "r"),
                (units, (_INPUTS + 1) * 4, "r"),
                (weights2, weights_bytes, "rw"),
                (previous, weights_bytes, "rw"),
            ],
            *(_BACKPROP_WIDTH, compute_seconds / 2, 2),
        )

    seconds = seconds_of(sim, forward)
    # The host sums the partial sums up between the kernels; UVM Smart's simulator brings all that
    # the first kernel wrote to the host there.
    sim.cpu_touch(sums, _INPUTS * 4, write=False)
    if host_has_outputs:
        sim.prefetch(weights, weights_bytes, gpu=None)
        sim.synchronize()
    seconds += seconds_of(sim, adjust)
    sim.cpu_touch(units, (_INPUTS + 1) * 4, write=False)
    sim.cpu_touch(weights2, weights_bytes, write=False)
    return Times(seconds, 2)


def hotspot(sim: Simulator, compute_seconds: float, *, host_has_outputs: bool) -> Times:
    """Step a stencil four times, between two grids, with a third that is only read."""
    nbytes = _GRID * _GRID * 4
    first, second, power = (sim.allocate_managed(nbytes) for _ in range(3))
    sim.cpu_touch(first, nbytes)
    sim.cpu_touch(power, nbytes)
    if host_has_outputs:
        sim.cpu_touch(second, nbytes)
    grids = (first, second)

    def steps() -> None:
        for number in range(_HOTSPOT_KERNELS):
            source, target = grids[number % 2], grids[(number + 1) % 2]
            _advance(
                sim,
                [(power, nbytes, "r"), (source, nbytes, "r"), (target, nbytes, "w")],
                *(_HOTSPOT_WIDTH, compute_seconds / _HOTSPOT_KERNELS, number),
            )

    seconds = seconds_of(sim, steps)
    sim.cpu_touch(grids[_HOTSPOT_KERNELS % 2], nbytes, write=False)
    return Times(seconds, _HOTSPOT_KERNELS)


def fdtd(sim: Simulator, compute_seconds: float, *, host_has_outputs: bool) -> Times:
    """Step three fields five times: two from the third, and then that from them."""
    del host_has_outputs  # the host writes every buffer first
    sizes = {
        "source": _FIELD_STEPS * 4,
        "ex": _FIELD * (_FIELD + 1) * 4,
        "ey": (_FIELD + 1) * _FIELD * 4,
        "hz": _FIELD * _FIELD * 4,
    }
    buffers = {name: sim.allocate_managed(nbytes) for name, nbytes in sizes.items()}
    for name, nbytes in sizes.items():
        sim.cpu_touch(buffers[name], nbytes)
    kernels = (
        {"source": "r", "ey": "rw", "hz": "r"},
        {"ex": "rw", "hz": "r"},
        {"hz": "rw", "ex": "r", "ey": "r"},
    )
    count = _FIELD_STEPS * len(kernels)

    def steps() -> None:
        for number in range(count):
            uses = kernels[number % len(kernels)]
            _advance(
                sim,
                [(buffers[name], sizes[name], how) for name, how in uses.items()],
                *(_FDTD_WIDTH, compute_seconds / count, number),
            )

    seconds = seconds_of(sim, steps)
    sim.cpu_touch(buffers["hz"], sizes["hz"], write=False)
    return Times(seconds, count)


@dataclass(frozen=True)
class _Graph:
    begin: Pages  # of each node's edges, with the end of the last
    targets: Pages


@functools.cache
def _graph() -> _Graph:
    """Return a random graph of the published size: 2 to 10 edges a node, anywhere."""
    random = np.random.default_rng(2019)
    degrees = random.integers(2, 11, _NODES)
    while (surplus := int(degrees.sum()) - _EDGES) != 0:
        some = random.integers(0, _NODES, abs(surplus))
        degrees[some] += -1 if surplus > 0 else 1
        degrees = np.clip(degrees, 2, 10)
    begin = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return _Graph(begin, random.integers(0, _NODES, _EDGES).astype(np.int64))


@functools.cache
def _levels() -> tuple[tuple[Pages, Pages], ...]:
    """Return the nodes of each level, and those that it finds first."""
    graph = _graph()
    seen = np.zeros(_NODES, bool)
    seen[0] = True
    frontier = np.zeros(1, np.int64)
    levels = []
    while len(frontier):
        targets = graph.targets[_edges_of(graph, frontier)]
        found = np.unique(targets[~seen[targets]])
        seen[found] = True
        levels.append((frontier, found))
        frontier = found
    return tuple(levels)


def _edges_of(graph: _Graph, nodes: Pages) -> Pages:
    counts = graph.begin[nodes + 1] - graph.begin[nodes]
    starts = np.repeat(graph.begin[nodes] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(int(counts.sum()))


def _page(indices: Pages, item_bytes: int) -> Pages:
    """Return the pages of items, each once, in the order of their first access."""
    pages = indices * item_bytes // PAGE_BYTES
    _, first = np.unique(pages, return_index=True)
    return pages[np.sort(first)]


def bfs(sim: Simulator, compute_seconds: float, *, host_has_outputs: bool) -> Times:
    """Search a random graph breadth first: two kernels a level, one thread a node."""
    del host_has_outputs  # the host writes every buffer first
    sizes = {
        "nodes": _NODES * 8,
        "mask": _NODES,
        "updating": _NODES,
        "visited": _NODES,
        "edges": _EDGES * 4,
        "cost": _NODES * 4,
    }
    buffers = {name: sim.allocate_managed(nbytes) for name, nbytes in sizes.items()}
    for name, nbytes in sizes.items():
        sim.cpu_touch(buffers[name], nbytes)
    graph = _graph()
    levels = _levels()
    steps = -(-_NODES // _NODES_A_STEP)

    def access(name: str, pages: Pages, *, write: bool = False) -> list[object]:
        return [at_pages(buffers[name], sizes[name], pages, write=write)] if len(pages) else []

    def search() -> None:
        for frontier, found in levels:
            is_found = np.zeros(_NODES, bool)
            is_found[found] = True
            for step in range(steps):
                low, high = step * _NODES_A_STEP, min((step + 1) * _NODES_A_STEP, _NODES)
                active = frontier[np.searchsorted(frontier, low) : np.searchsorted(frontier, high)]
                mask = _page(np.arange(low, high), 1)
                if not len(active):
                    if low % PAGE_BYTES == 0:  # the mask is read by every thread
                        sim.kernel(access("mask", mask))
                    continue
                edges = _edges_of(graph, active)
                targets = graph.targets[edges]
                first = targets[is_found[targets]]
                accesses = [
                    *access("mask", mask, write=True),
                    *access("nodes", _page(active, 8)),
                    *access("edges", _page(edges, 4)),
                    *access("visited", _page(targets, 1)),
                    *access("cost", _page(active, 4)),
                    *access("cost", _page(first, 4), write=True),
                    *access("updating", _page(first, 1), write=True),
                ]
                sim.kernel(accesses)
            sim.kernel(
                [
                    *access("updating", _page(np.arange(_NODES), 1), write=True),
                    *access("mask", _page(found, 1), write=True),
                    *access("visited", _page(found, 1), write=True),
                ],
                compute_seconds=compute_seconds / len(levels),
            )

    seconds = seconds_of(sim, search)
    sim.cpu_touch(buffers["cost"], sizes["cost"], write=False)
    return Times(seconds, 2 * len(levels))


PROGRAMS = {"backprop": backprop, "bfs": bfs, "hotspot": hotspot, "fdtd": fdtd}
