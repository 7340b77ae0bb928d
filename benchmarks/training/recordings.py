# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training steps of `models.py` recorded on fake tensors, and what their kernels use.

Nothing is computed and no memory taken: models of any size are recorded in seconds, without a GPU.
"""

from __future__ import annotations

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
