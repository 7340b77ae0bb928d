# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much of what autograd keeps does not fit, learnt from the rounds before.

A round is a forward pass and its backward pass; a step of an optimiser may have several.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["MARGIN_FRACTION", "ActivationDemand"]

MARGIN_FRACTION = 1 / 16  # of the budget: what lives between two looks, and what comes back early
_ROUNDS = 8  # that count: they may differ
_RECURRING_ROUNDS = 3  # in a row: what is evicted in fewer is a change, and soon over
_MOST_MISSED_FRACTION = 1 / 4  # of the budget
_CLEAN_ROUNDS = 64  # until less is tried
_LOOK_FRACTION = 1 / 64  # of the budget, kept or needed between two looks: a quarter of the margin


class ActivationDemand:
    """What a round needs past a budget.

    Parameters
    ----------
    budget_bytes : int
        What fits.
    evicted_bytes : callable, optional
        See below.

    Attributes
    ----------
    needed_bytes : int or None
        What has to leave in the round that began last; None: not known yet.
    evicted_bytes : callable
        Returns how much live memory left all the same until now. What lives between two looks, as
        temporary tensors of a loss do, is seen by that alone: so what is evicted in each of some
        rounds counts as missing from then on, until many have passed without.
    was_enough : bool
        Whether it was known what has to leave in the round that ended last, and nothing else left.

    Examples
    --------
    >>> demand = ActivationDemand(1600)
    >>> demand.needed_bytes is None  # unknown: everything
    True
    >>> for _ in range(2):
    ...     _ = demand.on_keep(1000)
    ...     _ = demand.on_keep(2000)
    ...     demand.on_need(2100)
    >>> demand.needed_bytes
    600
    """

    def __init__(self, budget_bytes: int, evicted_bytes: Callable[[], int] = int) -> None:
        self._budget_bytes = budget_bytes
        self.evicted_bytes, self._evicted_before = evicted_bytes, 0
        self._evicted: deque[int] = deque(maxlen=_RECURRING_ROUNDS)  # in each round
        self._missed_bytes = self._clean_rounds = 0
        self._margin_bytes = int(budget_bytes * MARGIN_FRACTION)
        self._rounds: deque[int] = deque(maxlen=_ROUNDS)  # the most of each
        self._most_bytes = 0
        self._backward: bool | None = None  # neither has begun
        self._looked_at = 0
        self.needed_bytes: int | None = None
        self.was_enough = False

    def is_worth_a_look(self, position: int, *, backward: bool) -> bool:
        """Whether what lives on the device may have changed by much since the last look.

        To ask torch takes tens of microseconds, and autograd keeps thousands of tensors.

        Parameters
        ----------
        position : int
            Bytes that autograd kept before what it keeps, or needs, now.
        backward : bool
            Whether it needs it.
        """
        moved_bytes = abs(position - self._looked_at)
        if backward is self._backward and moved_bytes < self._budget_bytes * _LOOK_FRACTION:
            return False
        self._looked_at = position
        return True

    def on_keep(self, demand_bytes: int) -> bool:
        """Take note that a forward pass keeps something; return whether a round begins by it.

        Parameters
        ----------
        demand_bytes : int
            What would live on the device now if nothing were away.
        """
        begins = self._backward is True
        if begins:
            self._look_at_evicted()
            self._rounds.append(self._most_bytes)
            self._most_bytes = 0
            excess_bytes = max(self._rounds) + self._missed_bytes - self._budget_bytes
            needed_bytes = excess_bytes + self._margin_bytes if excess_bytes > 0 else 0
            # A little less is as good: what torch put where stays right if the same leaves again.
            before_bytes = self.needed_bytes or 0
            if not 0 < needed_bytes <= before_bytes < needed_bytes + self._margin_bytes:
                self.needed_bytes = needed_bytes
        self._backward = False
        self._most_bytes = max(self._most_bytes, demand_bytes)
        return begins

    def _look_at_evicted(self) -> None:
        """Learn what is missing from what was evicted in the round that ended."""
        now = self.evicted_bytes()
        round_bytes, self._evicted_before = now - self._evicted_before, now
        if self.needed_bytes is None:
            return  # it was not known what was to leave
        self.was_enough = round_bytes == 0
        self._clean_rounds = self._clean_rounds + 1 if self.was_enough else 0
        if self._clean_rounds == _CLEAN_ROUNDS:
            self._clean_rounds, self._missed_bytes = 0, self._missed_bytes // 2
        self._evicted.append(round_bytes)
        if len(self._evicted) == _RECURRING_ROUNDS and min(self._evicted):
            most_bytes = int(self._budget_bytes * _MOST_MISSED_FRACTION)
            self._missed_bytes = min(self._missed_bytes + min(self._evicted), most_bytes)
            self._evicted.clear()

    def on_need(self, demand_bytes: int) -> None:
        """Take note that a backward pass needs something; as `on_keep`."""
        self._backward = True
        self._most_bytes = max(self._most_bytes, demand_bytes)
