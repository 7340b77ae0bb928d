# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Rounds, moments between their operations, and checksums."""

from __future__ import annotations

import random
from collections.abc import Sequence

COUNTED_FROM = 4  # the first rounds learn: they are told, and do not count
_MOST_CHECKSUM = 2**61 - 1


def moments(seed: int, rounds: Sequence[int], operations: int, count: int) -> list[list[int]]:
    """Return moments at random: pairs of a round and of an operation that ended there.

    Parameters
    ----------
    seed : int
        The same moments come from the same seed.
    rounds : sequence of int
        That are measured.
    operations : int
        Of one round.
    count : int
        How many, all different. More of them begin with those of fewer.
    """
    everywhere = [[each, number] for each in rounds for number in range(operations)]
    random.Random(seed).shuffle(everywhere)
    return everywhere[:count]


def moment_name(moment: Sequence[int]) -> str:
    """Return how a row names a moment."""
    return f"{moment[0]}.{moment[1]}"


def checksum(total: int, value: int) -> int:
    """Return a checksum with one more number in it."""
    return (total * 1_000_003 + value) % _MOST_CHECKSUM
