# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What lives in a round between two looks, learnt from what is evicted.

Temporary tensors of a loss are such: autograd keeps none of them, so that nothing looks then.
"""

from __future__ import annotations

from collections import deque

__all__ = ["UnseenDemand"]

_ROUNDS = 8  # that are looked at
_RECURRING_ROUNDS = 3  # of those: what is evicted in fewer is a change, and soon over
_MOST_FRACTION = 1 / 4  # of the budget
_LEAST_FRACTION = 1 / 64  # of the budget: as one block at a time it would take hundreds of rounds
_FIRST_WAIT, _LONGEST_WAIT = 64, 4096  # rounds until less is tried


class UnseenDemand:
    """How much more has to leave than is seen. Not thread-safe.

    It grows by what is evicted again and again. After some rounds half of that is tried, or none
    where what is seen fits. If that is not enough, the next trial comes after twice as many.

    Parameters
    ----------
    budget_bytes : int
        What fits; > 0.

    Attributes
    ----------
    unseen_bytes : int
        At most a quarter of the budget.

    Examples
    --------
    >>> unseen = UnseenDemand(1600)
    >>> for evicted_bytes in (0, 130, 0, 150, 170):
    ...     unseen.look(evicted_bytes, fits=False)
    >>> unseen.unseen_bytes
    130
    """

    def __init__(self, budget_bytes: int) -> None:
        self._most_bytes = int(budget_bytes * _MOST_FRACTION)
        self._least_bytes = int(budget_bytes * _LEAST_FRACTION)
        self._evicted: deque[int] = deque(maxlen=_ROUNDS)  # in each round since it changed last
        self._rounds = 0  # since then
        self._before_trial = 0  # what it was; 0: there is none
        self._wait = _FIRST_WAIT
        self.unseen_bytes = 0

    def look(self, evicted_bytes: int, *, fits: bool) -> None:
        """Take note of a round of which it was known what had to leave.

        Parameters
        ----------
        evicted_bytes : int
            Live memory that left all the same while autograd kept something.
        fits : bool
            Whether what was seen lately fits.
        """
        self._evicted.append(evicted_bytes)
        self._rounds += 1
        recurring = sorted(self._evicted, reverse=True)[_RECURRING_ROUNDS - 1 : _RECURRING_ROUNDS]
        if self._before_trial and evicted_bytes:
            self._wait = min(2 * self._wait, _LONGEST_WAIT)
            self._become(self._before_trial)
        elif any(recurring):
            more_bytes = max(recurring[0], self._least_bytes)
            self._become(min(self.unseen_bytes + more_bytes, self._most_bytes))
        elif self.unseen_bytes and self._rounds >= self._wait:
            before = self.unseen_bytes
            half = before // 2
            self._become(0 if fits or half < self._least_bytes else half)
            self._before_trial = before
        elif self._before_trial and self._rounds >= _ROUNDS:  # it was enough
            self._before_trial, self._wait = 0, _FIRST_WAIT

    def _become(self, unseen_bytes: int) -> None:
        self.unseen_bytes = unseen_bytes
        self._evicted.clear()
        self._rounds = self._before_trial = 0
