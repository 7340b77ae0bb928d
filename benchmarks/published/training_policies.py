# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Prefetching what the next kernel uses, or the whole allocation it is in, or nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable

from _published import Order, Row, Table, published, run
from _workloads import GIB, read, scaled, seconds_of, simulator_with, whole_blocks, written

from rmm_uvm.simulator import Simulator, load_machine

_SCALE = 16
_DEVICE_BYTES = 8 * GIB // _SCALE
_TENSORS = 96
_TENSORS_PER_ALLOCATION = 12  # a caching allocator's segment holds several tensors
_COMPUTE_FRACTION = 0.25  # of the time that copying a tensor in takes
_LOOP = (
    "one training-like loop stands for their models: sizes of tensors, how many share an "
    "allocation, and time of computing are assumed"
)


def _prefetch_nothing(sim: Simulator, tensors: list[int], nbytes: int, number: int) -> None:
    del sim, tensors, nbytes, number


def _prefetch_tensor(sim: Simulator, tensors: list[int], nbytes: int, number: int) -> None:
    sim.prefetch(tensors[number], nbytes)


def _prefetch_object(sim: Simulator, tensors: list[int], nbytes: int, number: int) -> None:
    first = number // _TENSORS_PER_ALLOCATION * _TENSORS_PER_ALLOCATION
    sim.prefetch(tensors[first], nbytes * _TENSORS_PER_ALLOCATION)


_POLICIES: dict[str, Callable[[Simulator, list[int], int, int], None]] = {
    "driver": _prefetch_nothing,
    "tensor": _prefetch_tensor,
    "object": _prefetch_object,
}


@functools.cache
def _seconds(policy: str, factor: float) -> float:
    """Return the time of a step of training, forward and backward, from the host at first."""
    machine = scaled(load_machine(published("training_policies")["machine"]), _SCALE)
    sim = simulator_with(machine, _DEVICE_BYTES)
    nbytes = whole_blocks(_DEVICE_BYTES * factor / _TENSORS)
    segments = [
        sim.allocate_managed(nbytes * _TENSORS_PER_ALLOCATION)
        for _ in range(_TENSORS // _TENSORS_PER_ALLOCATION)
    ]
    tensors = [
        segment + number * nbytes
        for segment in segments
        for number in range(_TENSORS_PER_ALLOCATION)
    ]
    for segment in segments:
        sim.cpu_touch(segment, nbytes * _TENSORS_PER_ALLOCATION)
    compute = nbytes / machine.to_device_bytes_per_ns / 1e9 * _COMPUTE_FRACTION

    def step() -> None:
        # Forward in order, backward in the opposite one; neighbours in time are not neighbours
        # in memory, since a caching allocator gives out what it has.
        order = [number * 37 % _TENSORS for number in range(_TENSORS)]
        for before, number in zip([order[0], *order], order, strict=False):
            _POLICIES[policy](sim, tensors, nbytes, number)
            sim.kernel(
                [read(tensors[before], nbytes), written(tensors[number], nbytes)],
                compute_seconds=compute,
            )
        for number in reversed(order):
            _POLICIES[policy](sim, tensors, nbytes, number)
            sim.kernel([written(tensors[number], nbytes)], compute_seconds=2 * compute)

    first = seconds_of(sim, step)
    return first if factor <= 1 else seconds_of(sim, step)


def table() -> Table:
    """Run every case."""
    data = published("training_policies")
    fits = {policy: _seconds(policy, 0.7) for policy in _POLICIES}
    over = {policy: _seconds(policy, 3.0) for policy in _POLICIES}
    rows = [
        Row(
            *(
                "fits",
                f"{policy}: faster than the driver alone",
                "x",
                1 + data["fits_gain"][policy],
            ),
            *(fits["driver"] / fits[policy], _LOOP),
        )
        for policy in ("object", "tensor")
    ]
    rows.append(
        Row(
            *("3 x memory", "object: slower than the driver alone", "x"),
            *(data["three_times_object_slower"], over["object"] / over["driver"], _LOOP),
        )
    )
    return Table(
        name="training_policies",
        title=data["title"],
        source=data["source"],
        machine=str(load_machine(data["machine"])),
        workload=f"{_TENSORS} tensors, {_TENSORS_PER_ALLOCATION} an allocation, forward and "
        "backward, in an order that is not that of the addresses",
        scale=_SCALE,
        rows=tuple(rows),
        orders=(
            Order("fits", ("tensor", "driver"), (fits["tensor"], fits["driver"]), "s"),
            Order(
                "fits, whole allocations",
                ("object", "driver"),
                (fits["object"], fits["driver"]),
                "s",
            ),
            Order("3 x memory", ("driver", "object"), (over["driver"], over["object"]), "s"),
            Order(
                "3 x memory, what is used against whole allocations",
                ("tensor", "object"),
                (over["tensor"], over["object"]),
                "s",
            ),
        ),
        left_out=data["not_reproduced"],
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
