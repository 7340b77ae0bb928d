# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training steps of `models.py` recorded on fake tensors, and what their kernels use.

Nothing is computed and no memory taken: models of any size are recorded in seconds, without a GPU.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.residency.policy_card import MACHINE
from rmm_uvm.torch import Program, recorded

ITERATIONS = 4


def record(
    name: str,
    size: str = "full",
    *,
    batch: int | None = None,
    dtype: str = "fp32",
    iterations: int = ITERATIONS,
) -> Program:
    """Return steps of a model's training, each marked; arguments as of `make` of `models.py`."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    from benchmarks.training import models

    with FakeTensorMode():
        training = models.make(name, size, batch, dtype, device="cpu")
        with recorded(machine=MACHINE) as program:
            for _ in range(iterations):
                training.step()
                program.mark()
    return program


def used_bytes(program: Program, begin: int, end: int) -> list[int]:
    """Return what each kernel uses, of events `begin` to `end`."""
    return [
        sum(use.nbytes for use in event.uses)
        for event in program.events[begin:end]
        if hasattr(event, "uses")
    ]


def kernels_of(name: str, dtype: str, batch: int, size: str = "full") -> dict[str, Any]:
    """Return what kernels of a step use: operators, as the CPU dispatches them."""
    # The optimiser's state comes with the first step.
    program = record(name, size, batch=batch, dtype=dtype, iterations=2)
    used = used_bytes(program, *program.marks)
    return {
        **{"model": name, "dtype": dtype, "batch": batch, "kernels": len(used)},
        "median_used_bytes": statistics.median(used),
        "mean_used_bytes": statistics.mean(used),
        "most_used_bytes": max(used),
        "recorded_peak_bytes": program.peak_bytes,
    }
