# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much of what autograd keeps does not fit, learnt from the rounds before.

A round is a forward pass and its backward pass; a step of an optimiser may have several.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable

__all__ = ["MARGIN_FRACTION", "ActivationDemand"]

MARGIN_FRACTION = 1 / 16  # of the budget: what comes between two looks, and what comes back early
_ROUNDS = 8  # that count: they may differ
_MOST_CLEAN_ROUNDS = 64  # until it counts as enough
_FREE_FRACTION = 1 / 8  # of the budget
_SETTLED_MARGINS = 2  # that most may fall by, where it was enough
_MOVED_ROUNDS = 2  # after everything got another place, in which evictions say little
_SHORT_ROUNDS = 8  # for which it was enough: hardly worth it
_LOOK_FRACTION = 1 / 64  # of the budget, kept or needed between two looks: a quarter of the margin


class ActivationDemand:
    """The demand of a round past a budget.

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
        Returns how much live memory was evicted until now.
    was_short : bool
        Whether live memory was evicted in the last round, and not only since all got other places.
    was_enough : bool
        Whether nothing was evicted in the last rounds, in which it was known what has to leave: at
        first in one, in twice as many each time that it was not so for long, at most in 64.

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
        self.evicted_bytes = evicted_bytes
        self._evicted_before = 0  # as the round began
        self._clean_rounds, self._clean_rounds_needed = 0, 1
        self._moved_rounds = 0  # to come, and the one that began last
        self._margin_bytes = int(budget_bytes * MARGIN_FRACTION)
        # The most of each, and how far into it that began to come.
        self._rounds: deque[tuple[int, int]] = deque(maxlen=_ROUNDS)
        self._is_first_known = False  # whether it is the first round with something known
        self._most_bytes = self._most_from = 0
        self._left_bytes = 0  # for its backward pass, in the round that began last
        self._peak_bytes = 0  # of the rounds that count, or a little more
        self._backward: bool | None = None  # neither has begun
        self._looked_at = 0
        self._round_begin = 0
        self._kept_before = 0  # where the forward pass was looked at last, before this look
        self.needed_bytes: int | None = None
        self.was_enough = False
        self.was_short = False

    @property
    def room_bytes(self) -> int:
        """The bytes that may live on the device at a look."""
        return self._budget_bytes - self._margin_bytes

    @property
    def excess_bytes(self) -> int:
        """The bytes that are to be computed again, so that an eighth of the budget is free.

        Torch puts things where there is room for each of them: more than what lives is in use in
        turn, and what does not fit of that is dropped and put there anew in each round.
        """
        if not self.needed_bytes:
            return 0
        return self.needed_bytes - self._margin_bytes + int(self._budget_bytes * _FREE_FRACTION)

    def is_first_look(self, *, backward: bool) -> bool:
        """Whether a look is the first one in a round, which begins with a forward pass."""
        return self._backward is not False and not backward

    def is_worth_a_look(self, position: int, *, backward: bool) -> bool:
        """Whether what lives on the device may have changed by much since the last look.

        To look takes tens of microseconds, and autograd keeps thousands of tensors.

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
        if self.is_first_look(backward=backward):
            self._round_begin = self._kept_before = position
        elif self._backward is False:
            self._kept_before = self._looked_at
        self._looked_at = position
        return True

    def is_at_peak(self, position: int) -> bool:
        """Whether most of a round may live before the next look: then all has to have left.

        Parameters
        ----------
        position : int
            As for `is_worth_a_look`.
        """
        first = min((begin for _, begin in self._rounds), default=sys.maxsize)
        return position - self._round_begin >= first

    def ahead_bytes(self, position: int, left_bytes: int) -> int:
        """Return how much may come back early: the margin, less at the peak what could not leave.

        Parameters
        ----------
        position : int
            As for `is_worth_a_look`, in a backward pass.
        left_bytes : int
            That are away, or came back early; the most of a round counts.
        """
        self._left_bytes = max(self._left_bytes, left_bytes)
        missing_bytes = (self.needed_bytes or 0) - self._left_bytes
        if missing_bytes <= 0 or not self.is_at_peak(position):
            return self._margin_bytes
        return max(self._margin_bytes - missing_bytes, 0)

    def on_moved(self) -> None:
        """Take note that what comes next gets other places than before, between two rounds.

        What is evicted until each has its own is no sign that too little left.
        """
        self._moved_rounds = _MOVED_ROUNDS + 1

    def on_keep(self, demand_bytes: int) -> bool:
        """Take note that a forward pass keeps something; return whether a round begins by it.

        Parameters
        ----------
        demand_bytes : int
            What would have lived on the device since the last look, at most, if nothing were away.
        """
        begins = self._backward is True
        if begins:
            if self._is_first_known:  # the one before, of which all left, was unlike those to come
                self._rounds.clear()
                self._peak_bytes = 0
            self._is_first_known = self.needed_bytes is None
            self._rounds.append((self._most_bytes, self._most_from))
            self._most_bytes = self._left_bytes = 0
            self._look_at_evicted()
            self.needed_bytes = self._needed_bytes()
        self._backward = False
        self._note(demand_bytes)
        return begins

    def on_need(self, demand_bytes: int) -> None:
        """Take note that a backward pass needs something; as `on_keep`."""
        self._backward = True
        self._note(demand_bytes)

    def on_less(self, nbytes: int) -> None:
        """Take note that rounds keep so much less from now on, as it is computed again."""
        self._rounds = deque(
            ((max(most - nbytes, 0), begin) for most, begin in self._rounds), maxlen=_ROUNDS
        )
        self._peak_bytes = max(self._peak_bytes - nbytes, 0)
        self._most_bytes = max(self._most_bytes - nbytes, 0)
        if self.needed_bytes is not None:
            self.needed_bytes = max(self.needed_bytes - nbytes, 0)

    def _note(self, demand_bytes: int) -> None:
        if demand_bytes > self._most_bytes:
            self._most_bytes = demand_bytes
            self._most_from = self._kept_before - self._round_begin

    def _needed_bytes(self) -> int:
        peak_bytes = max(most_bytes for most_bytes, _ in self._rounds)
        # A little less is as good: what torch put where stays right if the same leaves again. While
        # that is right for all, twice as much is little: it took rounds to come to it.
        near_bytes = self._margin_bytes * (_SETTLED_MARGINS if self.was_enough else 1)
        is_near = peak_bytes <= self._peak_bytes < peak_bytes + near_bytes
        if peak_bytes <= self._budget_bytes or not is_near:
            self._peak_bytes = peak_bytes
        excess_bytes = self._peak_bytes - self._budget_bytes
        return excess_bytes + self._margin_bytes if excess_bytes > 0 else 0

    def _look_at_evicted(self) -> None:
        """Learn from what was evicted in the round that ended."""
        now, before = self.evicted_bytes(), self._evicted_before
        self._evicted_before = now
        is_moved = 0 < self._moved_rounds <= _MOVED_ROUNDS
        self.was_short = now > before and not is_moved
        self._moved_rounds = max(self._moved_rounds - 1, 0)
        if self.needed_bytes is None or (is_moved and now > before):
            return  # it was not known what was to leave, or where
        needed, lasted = self._clean_rounds_needed, self._clean_rounds - self._clean_rounds_needed
        if now > before and self.was_enough:
            longer = min(2 * needed, _MOST_CLEAN_ROUNDS)
            self._clean_rounds_needed = longer if lasted < _SHORT_ROUNDS else max(needed // 2, 1)
        self._clean_rounds = 0 if now > before else self._clean_rounds + 1
        self.was_enough = self._clean_rounds >= self._clean_rounds_needed
