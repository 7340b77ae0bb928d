# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A program for shadow cards: the same kernels round after round."""

from __future__ import annotations

from rmm_uvm.planner.trials.uses import Use
from rmm_uvm.torch.shadow.program import Program

TENSOR_BYTES = 4 << 20


def rounds_of(kernel_seconds: float, tensors: int, rounds: int) -> Program:
    """Return a program whose kernels write 4 MiB each, in the same order every round."""
    program = Program()
    allocations = [program.allocate(TENSOR_BYTES) for _ in range(tensors)]
    for number in range(rounds):
        for one in allocations:
            use = Use(one, 0, TENSOR_BYTES, writes=True, fresh=number == 0)
            program.kernel([use], kernel_seconds)
        program.mark()
    return program
