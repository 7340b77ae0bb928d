# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How long a prefetch to the device takes: three constants from a few calls of different sizes.

As the model has it: the driver's thread works on block after block, copies run behind it on their
engine, a second pass goes over the range, and the end of all that is followed by a ramp of
``ramp * (1 - exp(-blocks / ramp_blocks))``. Calls that follow one another without a wait have that
ramp; whether a call on an idle stream has it, `RAMP_ONLY_WHEN_QUEUED` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rmm_uvm.simulator.measuring.figures import Timing

__all__ = ["RAMP_ONLY_WHEN_QUEUED", "Call", "PrefetchCost", "Ramp", "fitted_ramp"]

RAMP_ONLY_WHEN_QUEUED = True
"""As the model in C++ has it (``uvm_commands.cpp``)."""

_FEWEST_SIZES = 3
# Candidates for the blocks of the ramp: less than half a block is no ramp, hundreds are a slope.
_LEAST_BLOCKS, _MOST_BLOCKS = 0.5, 200.0
# A grid of so many steps each way, laid again and again around its best point.
_STEPS, _GRIDS = 24, 6


class Ramp(NamedTuple):
    """The driver's time for a block, and what a call takes more: `ramp_ns`, 63 % after so many."""

    block_ns: float
    ramp_ns: float
    ramp_blocks: float


class Call(NamedTuple):
    """A prefetch, and whether it has a ramp."""

    timing: Timing
    has_ramp: bool


@dataclass(frozen=True)
class PrefetchCost:
    """What is known of a prefetch before its ramp is.

    Attributes
    ----------
    call_ns, pass_ns : float
        The call; each block in each of two passes, unless it is a lone one.
    copy_ns : float
        Copy of a block, on an idle engine.
    """

    call_ns: float
    pass_ns: float
    copy_ns: float

    def without_ramp_ns(self, blocks: float, block_ns: float) -> float:
        """Return what a call takes up to its ramp."""
        pass_ns = self.pass_ns if blocks > 1 else 0.0
        worked_ns = blocks * (block_ns + pass_ns)
        copied_ns = max(worked_ns + self.copy_ns, block_ns + pass_ns + blocks * self.copy_ns)
        return self.call_ns + max(worked_ns + blocks * pass_ns, copied_ns)

    def total_ns(self, blocks: float, ramp: Ramp) -> float:
        """Return what a call with a ramp takes."""
        return self.without_ramp_ns(blocks, ramp.block_ns) + ramp.ramp_ns * _rise(
            blocks, ramp.ramp_blocks
        )


def fitted_ramp(calls: Sequence[Call], cost: PrefetchCost) -> Ramp | None:
    """Fit the calls; each counts by its relative error.

    Parameters
    ----------
    calls : sequence of Call
        Prefetches.
    cost : PrefetchCost
        The rest of what they take.

    Returns
    -------
    Ramp or None
        None if there are fewer than three sizes with a ramp, or one took no time.
    """
    if len({call.timing.nbytes for call in calls if call.has_ramp}) < _FEWEST_SIZES:
        return None
    if min(call.timing.seconds for call in calls) <= 0:
        return None
    fewest_ns, most_ns = 0.0, min(call.timing.block_ns for call in calls)
    fewest_log, most_log = math.log(_LEAST_BLOCKS), math.log(_MOST_BLOCKS)
    best = (math.inf, Ramp(0.0, 0.0, _LEAST_BLOCKS))
    for _ in range(_GRIDS):
        step_ns, step_log = (most_ns - fewest_ns) / _STEPS, (most_log - fewest_log) / _STEPS
        for column in range(_STEPS + 1):
            blocks = math.exp(fewest_log + column * step_log)
            rises = [_rise(call.timing.blocks, blocks) if call.has_ramp else 0.0 for call in calls]
            for row in range(_STEPS + 1):
                block_ns = fewest_ns + row * step_ns
                error, ramp_ns = _fitted(calls, cost, block_ns, rises)
                if error < best[0]:
                    best = (error, Ramp(block_ns, ramp_ns, blocks))
        block_ns, log = best[1].block_ns, math.log(best[1].ramp_blocks)
        fewest_ns, most_ns = max(block_ns - 2 * step_ns, 0.0), block_ns + 2 * step_ns
        fewest_log, most_log = log - 2 * step_log, log + 2 * step_log
    return best[1]


def _rise(blocks: float, ramp_blocks: float) -> float:
    """Return how much of a ramp so many blocks have, 0 to 1."""
    return 1 - math.exp(-blocks / ramp_blocks)


def _fitted(
    calls: Sequence[Call], cost: PrefetchCost, block_ns: float, rises: Sequence[float]
) -> tuple[float, float]:
    """Return the squared relative errors and the ramp that makes them least, >= 0."""
    xx = xy = yy = 0.0
    for call, rise in zip(calls, rises, strict=True):
        total_ns = call.timing.seconds * 1e9
        # Divided by the total, so that a call of 2 MiB weighs as much as one of 2 GiB.
        x = rise / total_ns
        y = 1 - cost.without_ramp_ns(call.timing.blocks, block_ns) / total_ns
        xx, xy, yy = xx + x * x, xy + x * y, yy + y * y
    ramp_ns = max(xy / xx, 0.0)
    return yy - 2 * ramp_ns * xy + ramp_ns * ramp_ns * xx, ramp_ns
