# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The GTC talk's table: training with a batch that does not fit."""

from __future__ import annotations

import functools

from _published import Order, Row, Table, published, run
from _workloads import (
    GIB,
    read,
    scaled,
    seconds_of,
    simulator_with,
    whole_blocks,
    written,
)

from rmm_uvm.simulator import load_machine

_SCALE = 8
_LAYERS = 48
_BUFFERS = _LAYERS + 2  # two gradients in turn
_ITERATIONS = 2
_LAYERS_REASON = (
    "layers are taken to be alike, and to be read once forward and once backward; sizes of real "
    "ones, work spaces and how often an operator reads its input are not published"
)


def _iteration_seconds(footprint_bytes: float, compute_seconds: float) -> float:
    """Return the time of a training step: activations are written, then read backwards."""
    machine = scaled(load_machine("v100-pcie3"), _SCALE)
    sim = simulator_with(machine, _device_bytes())
    nbytes = whole_blocks(footprint_bytes / _BUFFERS)
    activations = [sim.allocate_managed(nbytes) for _ in range(_LAYERS)]
    gradients = [sim.allocate_managed(nbytes) for _ in range(2)]
    for address in (*activations, *gradients):  # where the framework makes it
        sim.prefetch(address, nbytes)
    # The backward pass computes about twice what the forward pass does.
    forward = compute_seconds / 3 / _LAYERS
    backward = 2 * forward

    def step() -> None:
        for layer in range(_LAYERS):
            below = [read(activations[layer - 1], nbytes)] if layer else []
            sim.kernel([*below, written(activations[layer], nbytes)], compute_seconds=forward)
        for layer in reversed(range(_LAYERS)):
            sim.kernel(
                [
                    read(activations[layer], nbytes),
                    read(gradients[layer % 2], nbytes),
                    written(gradients[(layer + 1) % 2], nbytes),
                ],
                compute_seconds=backward,
            )

    step()
    return seconds_of(sim, lambda: [step() for _ in range(_ITERATIONS)]) / _ITERATIONS


def _device_bytes() -> int:
    gib: int = published("gtc_batch_sizes")["device_gib"]
    return gib * GIB // _SCALE


@functools.cache
def _memory_seconds() -> float:
    """Return what a step that just fits takes without any computing."""
    return _iteration_seconds(_device_bytes() * _FILL, 0.0)


_FILL = 0.96  # of the memory, that the largest batch which fits takes: whole layers and blocks


def _samples_per_second(fits: list[float], batch: int) -> float:
    per_second, fitting_batch = fits
    # Scaled like the sizes: a step with a batch takes batch / rate seconds, of which some are
    # accesses to memory that the model adds itself.
    compute = batch * (1 / per_second / _SCALE - _memory_seconds() / fitting_batch)
    seconds = _iteration_seconds(_device_bytes() * _FILL * batch / fitting_batch, max(compute, 0))
    return batch / (seconds * _SCALE)


def table() -> Table:
    """Run every case."""
    data = published("gtc_batch_sizes")
    rows = []
    orders = []
    for precision, models in data["samples_per_second_and_batch"].items():
        for model, rates in models.items():
            fits, (theirs, batch) = rates["fits"], rates["oversubscribed"]
            ours = _samples_per_second(fits, batch)
            case = f"{model}, {precision}, batch {fits[1]} -> {batch}"
            rows.append(Row(case, "samples a second", "1/s", theirs, ours, _LAYERS_REASON))
            # A step computes for as long as it takes in the column that fits: it cannot be faster.
            orders.append(
                Order(
                    *(case, ("oversubscribed", "fits"), (ours, fits[0]), "samples a second"),
                    by_construction=True,
                )
            )
    machine = load_machine(data["machine"])
    return Table(
        name="gtc_batch_sizes",
        title=data["title"],
        source=data["source"],
        machine=str(machine),
        workload=f"{_LAYERS} layers alike: activations written forward, read backward with two "
        "gradients in turn; the batch that fits fills the memory; time of computing from the "
        "column that fits",
        scale=_SCALE,
        rows=tuple(rows),
        orders=tuple(orders),
        left_out={
            "prefetch before each kernel, up to 1.6 x": "a maximum over models that are not named",
            "threshold 5, up to 20 %": "likewise",
        },
    )


if __name__ == "__main__":
    raise SystemExit(run(table))
