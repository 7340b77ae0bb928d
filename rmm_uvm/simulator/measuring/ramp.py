# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How a prefetch to the device takes longer than its blocks: three constants from a few calls.

The model charges a call of n blocks ``fixed + n * (passes + block) + ramp * (1 - exp(-n / b))``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rmm_uvm.simulator.measuring.figures import Timing

__all__ = ["Ramp", "fitted_ramp"]

_FEWEST_CALLS = 3
# Candidates for b: a ramp of less than half a block is part of the fixed time, one of hundreds is
# a slope.
_LEAST_BLOCKS, _MOST_BLOCKS, _STEP = 0.5, 200.0, 1.02


class Ramp(NamedTuple):
    """Time of a block, and what a call takes more: `ramp_ns`, 63 % of it after `ramp_blocks`."""

    block_ns: float
    ramp_ns: float
    ramp_blocks: float

    def extra_ns(self, blocks: float) -> float:
        """Return what a call for so many blocks takes more than them."""
        return self.ramp_ns * (1 - math.exp(-blocks / self.ramp_blocks))


def fitted_ramp(calls: Sequence[Timing], fixed_ns: float, passes_ns: float) -> Ramp | None:
    """Fit the calls; each counts by its relative error.

    Parameters
    ----------
    calls : sequence of Timing
        Prefetches of one call each.
    fixed_ns : float
        What any call takes.
    passes_ns : float
        What each block takes besides being migrated.

    Returns
    -------
    Ramp or None
        None if there are fewer than three sizes, or none fits with times >= 0.
    """
    if len({call.nbytes for call in calls}) < _FEWEST_CALLS:
        return None
    best: tuple[float, Ramp] | None = None
    blocks = _LEAST_BLOCKS
    while blocks <= _MOST_BLOCKS:
        candidate = _fitted(calls, fixed_ns, passes_ns, blocks)
        if candidate is not None and (best is None or candidate[0] < best[0]):
            best = candidate
        blocks *= _STEP
    return best[1] if best else None


def _fitted(
    calls: Sequence[Timing], fixed_ns: float, passes_ns: float, ramp_blocks: float
) -> tuple[float, Ramp] | None:
    """Return the squared relative errors and the fit for one b; linear least squares."""
    aa = ab = bb = ay = by = 0.0
    rows = []
    for call in calls:
        total_ns = call.seconds * 1e9
        if total_ns <= 0:
            return None
        # Divided by the total, so that a call of 2 MiB weighs as much as one of 2 GiB.
        a = call.blocks / total_ns
        b = (1 - math.exp(-call.blocks / ramp_blocks)) / total_ns
        y = 1 - (fixed_ns + call.blocks * passes_ns) / total_ns
        aa, ab, bb, ay, by = aa + a * a, ab + a * b, bb + b * b, ay + a * y, by + b * y
        rows.append((a, b, y))
    determinant = aa * bb - ab * ab
    if determinant <= 1e-12 * aa * bb:
        return None
    block_ns = (ay * bb - by * ab) / determinant
    ramp_ns = (by * aa - ay * ab) / determinant
    if ramp_ns < 0:  # then there is none, and the blocks take it all
        block_ns, ramp_ns = ay / aa, 0.0
    if block_ns < 0:
        return None
    error = sum((a * block_ns + b * ramp_ns - y) ** 2 for a, b, y in rows)
    return error, Ramp(block_ns, ramp_ns, ramp_blocks)
