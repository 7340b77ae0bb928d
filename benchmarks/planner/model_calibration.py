# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The model of an H200 against what was measured on one; needs no GPU.

    python benchmarks/planner/model_calibration.py --json benchmarks/results/model_calibration.json

Each measured figure (one H200, PCIe 5 x16, kernel driver 580.159.04, 2026-11-21; 2 GiB unless it
says otherwise) beside the model's, which must be within 15 %. The constants of the machine profile
come from the same figures, so this says that one set of constants and the driver's rules give all
of them together. What was not fitted to is marked.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmm_uvm.simulator import Access, Simulator, load_machine

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

GIB = 1 << 30
MIB = 1 << 20
SIZE_BYTES = 2 * GIB
BOUND = 0.15


@dataclass(frozen=True)
class Figure:
    """One measured figure, in `unit`; `low` and `high` are equal where there was one value."""

    name: str
    unit: str
    low: float
    high: float
    model: Callable[[], float]
    fitted: bool = True  # whether constants were fitted to it


def machine() -> Simulator:
    """Return an H200 with 8 GiB: nothing here needs to be evicted."""
    return Simulator(load_machine("h200-pcie5"), device_bytes="8GiB")


def on_device() -> tuple[Simulator, int]:
    """Return 2 GiB on the device, host pages behind them."""
    simulator = machine()
    data = simulator.allocate_managed(SIZE_BYTES)
    simulator.cpu_touch(data, SIZE_BYTES, write=True)
    simulator.prefetch(data, SIZE_BYTES)
    return simulator, data


def on_host() -> tuple[Simulator, int]:
    """Return 2 GiB on the host."""
    simulator, data = on_device()
    simulator.prefetch(data, SIZE_BYTES, gpu=None)
    return simulator, data


def milliseconds(simulator: Simulator, work: Callable[[], None]) -> float:
    """Return how long work takes until everything is done."""
    simulator.synchronize()
    begun = simulator.seconds
    work()
    simulator.synchronize()
    return (simulator.seconds - begun) * 1e3


def rate(simulator: Simulator, nbytes: int, work: Callable[[], None]) -> float:
    """Return GB/s."""
    return nbytes / milliseconds(simulator, work) / 1e6


def to_device() -> float:
    simulator, data = on_host()
    return rate(simulator, SIZE_BYTES, lambda: simulator.prefetch(data, SIZE_BYTES))


def discarded_to_host() -> float:
    simulator, data = on_device()
    simulator.prefetch(data, SIZE_BYTES, gpu=None)
    simulator.prefetch(data, SIZE_BYTES)
    simulator.discard(data, SIZE_BYTES)
    return milliseconds(simulator, lambda: simulator.prefetch(data, SIZE_BYTES, gpu=None))


def to_host() -> float:
    simulator, data = on_device()
    return rate(simulator, SIZE_BYTES, lambda: simulator.prefetch(data, SIZE_BYTES, gpu=None))


def to_host_cold() -> float:
    simulator = machine()
    data = simulator.allocate_managed(SIZE_BYTES)
    simulator.prefetch(data, SIZE_BYTES)
    return rate(simulator, SIZE_BYTES, lambda: simulator.prefetch(data, SIZE_BYTES, gpu=None))


def in_calls(call_bytes: int, gpu: int | None) -> float:
    """Return the rate of prefetches in calls of so many bytes, one after the other on a stream."""
    simulator, data = on_host() if gpu == 0 else on_device()

    def work() -> None:
        for offset in range(0, SIZE_BYTES, call_bytes):
            simulator.prefetch(data + offset, call_bytes, gpu=gpu)

    return rate(simulator, SIZE_BYTES, work)


def one_call(blocks: int) -> float:
    simulator, data = on_host()
    return 1e3 * milliseconds(simulator, lambda: simulator.prefetch(data, blocks * 2 * MIB))


def both_ways() -> float:
    """Return the rate each way when half of the data goes one way and half the other."""
    simulator, data = on_device()
    simulator.prefetch(data, GIB, gpu=None)

    def work() -> None:
        for offset in range(0, GIB, 32 * MIB):
            simulator.prefetch(data + offset, 32 * MIB, stream=1)
            simulator.prefetch(data + GIB + offset, 32 * MIB, gpu=None, stream=2)

    return rate(simulator, GIB, work)


def first_touch() -> float:
    simulator = machine()
    data = simulator.allocate_managed(SIZE_BYTES)
    return milliseconds(simulator, lambda: simulator.kernel([Access(data, SIZE_BYTES, write=True)]))


def streaming() -> tuple[float, int]:
    simulator, data = on_host()
    before = simulator.counters().gpu_faults
    spent = milliseconds(
        simulator, lambda: simulator.kernel([Access(data, SIZE_BYTES, write=True)])
    )
    return spent, simulator.counters().gpu_faults - before


def cpu_touch() -> float:
    simulator, data = on_device()
    return milliseconds(simulator, lambda: simulator.cpu_touch(data, GIB, write=True))


def zero_copy() -> float:
    simulator, data = on_host()
    simulator.advise(data, SIZE_BYTES, "preferred_location", gpu=None)
    simulator.advise(data, SIZE_BYTES, "accessed_by")
    return rate(simulator, SIZE_BYTES, lambda: simulator.kernel([Access(data, SIZE_BYTES)]))


def resident_call(nbytes: int) -> float:
    simulator, data = on_device()
    return milliseconds(simulator, lambda: simulator.prefetch(data, nbytes)) * 1e3


def discard() -> float:
    simulator, data = on_device()
    return milliseconds(simulator, lambda: simulator.discard(data, SIZE_BYTES))


def write_after_discard() -> float:
    simulator, data = on_device()
    simulator.discard(data, SIZE_BYTES)
    return milliseconds(simulator, lambda: simulator.kernel([Access(data, SIZE_BYTES, write=True)]))


def discard_and_prefetch(where: Callable[[], tuple[Simulator, int]]) -> float:
    simulator, data = where()
    return milliseconds(simulator, lambda: simulator.discard_and_prefetch(data, SIZE_BYTES))


def between_gpus() -> float:
    simulator = Simulator(load_machine("h200-pcie5"), device_bytes="8GiB", gpus=2)
    data = simulator.allocate_managed(SIZE_BYTES)
    simulator.prefetch(data, SIZE_BYTES)
    return rate(simulator, SIZE_BYTES, lambda: simulator.prefetch(data, SIZE_BYTES, gpu=1))


FIGURES = (
    Figure("prefetch to the device, one call", "GB/s", 51, 51, to_device),
    Figure("prefetch to the host, host pages warm", "GB/s", 24, 24, to_host),
    Figure("prefetch to the host, host pages cold", "GB/s", 4.6, 4.6, to_host_cold),
    *(
        Figure(f"prefetch of {blocks} blocks to the device, stream idle", "us", us, us, model)
        for blocks, us, model in (
            (1, 71, lambda: one_call(1)),
            (8, 347, lambda: one_call(8)),
            (64, 2636, lambda: one_call(64)),
        )
    ),
    *(
        Figure(f"prefetch to the device in calls of {size} MiB", "GB/s", measured, measured, model)
        for size, measured, model in (
            (2, 18.7, lambda: in_calls(2 * MIB, 0)),
            (16, 26.7, lambda: in_calls(16 * MIB, 0)),
            (64, 39.9, lambda: in_calls(64 * MIB, 0)),
        )
    ),
    *(
        Figure(
            f"prefetch to the host in calls of {size} MiB",
            "GB/s",
            measured,
            measured,
            model,
            fitted=False,
        )
        for size, measured, model in (
            (2, 15.9, lambda: in_calls(2 * MIB, None)),
            (16, 23.5, lambda: in_calls(16 * MIB, None)),
            (64, 23.2, lambda: in_calls(64 * MIB, None)),
        )
    ),
    Figure("both ways at once, each way", "GB/s", 16, 16, both_ways, fitted=False),
    Figure("first touch by a kernel", "ms", 107, 107, first_touch),
    Figure("kernel streaming from the host", "ms", 157, 173, lambda: streaming()[0]),
    Figure("its page faults", "faults", 312_000, 312_000, lambda: float(streaming()[1])),
    Figure("CPU touching 1 GiB of the device", "ms", 171, 171, cpu_touch),
    Figure("kernel reading the host's memory through a mapping", "GB/s", 51, 51, zero_copy),
    Figure(
        "prefetch of 64 MiB that are there",
        "us",
        30,
        30,
        lambda: resident_call(64 * MIB),
        fitted=False,
    ),
    Figure("prefetch of 1 GiB that is there", "us", 450, 450, lambda: resident_call(GIB)),
    Figure("discard", "ms", 6.4, 6.4, discard),
    Figure("prefetch to the host after a discard", "ms", 71, 71, discarded_to_host),
    Figure("kernel writing after a discard", "ms", 7771, 7771, write_after_discard),
    Figure(
        "discard and prefetch, on the device",
        "ms",
        3.1,
        3.1,
        lambda: discard_and_prefetch(on_device),
    ),
    Figure(
        "discard and prefetch, on the host", "ms", 9.9, 9.9, lambda: discard_and_prefetch(on_host)
    ),
    Figure("prefetch from one GPU to another", "GB/s", 205, 213, between_gpus),
)


def compared() -> list[dict[str, Any]]:
    """Return every figure: measured, modelled, ratio to the nearest measured value, verdict."""
    rows: list[dict[str, Any]] = []
    for figure in FIGURES:
        value = figure.model()
        nearest = min(max(value, figure.low), figure.high)
        rows.append(
            {
                "figure": figure.name,
                "unit": figure.unit,
                "measured": [figure.low, figure.high],
                "model": round(value, 3),
                "ratio": round(value / nearest, 4),
                "fitted": figure.fitted,
                "reached": abs(value / nearest - 1) <= BOUND,
            }
        )
    return rows


DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "measure" / "simulator-accuracy.md"
PLACE = re.compile(
    r"(<!-- begin: model_calibration.py --write -->\n).*?(<!-- end: model_calibration -->)",
    re.DOTALL,
)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the comparison as Markdown."""
    lines = ["| figure | measured | model | ratio | fitted to |\n", "|---|--:|--:|--:|---|\n"]
    for row in rows:
        low, high = row["measured"]
        measured = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        lines.append(
            f"| {row['figure']} | {measured} {row['unit']} | {row['model']:.4g} | "
            f"{row['ratio']:.2f} | {'yes' if row['fitted'] else 'no'} |\n"
        )
    return "".join(lines)


def filled(text: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the document with the table in its place."""
    return PLACE.sub(lambda found: found[1] + table(rows) + found[2], text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", action="store_true", help="put the table into the document")
    arguments = parser.parse_args()
    rows = compared()
    for row in rows:
        low, high = row["measured"]
        measured = f"{low:g}" if low == high else f"{low:g}-{high:g}"
        print(
            f"{row['figure']:52} {measured:>12} {row['model']:>12g} {row['unit']:6} "
            f"x{row['ratio']:.3f}{'' if row['reached'] else '  TOO FAR OFF'}"
        )
    if arguments.write:
        DOCUMENT.write_text(filled(DOCUMENT.read_text(), rows))
    if arguments.json:
        harness.write_json(
            arguments.json,
            "model_calibration",
            {"machine": "h200-pcie5", "must_be_within": BOUND, "figures": rows},
        )
    return 0 if all(row["reached"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
