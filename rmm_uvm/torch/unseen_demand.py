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

    It grows by what is evicted again and again, unless as much is evicted all the same: then it was
    something else, which copies cannot help. After some rounds half of it is tried, or none where
    what is seen fits. What was in vain is tried again after twice as many rounds.

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
        self._grown_for_bytes = self._before_growth = 0  # what was evicted, and what it was; 0: no
        self._wait, self._pause = _FIRST_WAIT, 0  # rounds until less, and until more, is tried
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
            self._wait_longer()
            self._become(self._before_trial)
        elif any(recurring) and self._rounds > self._pause:
            self._grow(recurring[0])
        elif self.unseen_bytes and self._rounds >= self._wait:
            before, half = self.unseen_bytes, self.unseen_bytes // 2
            self._become(0 if fits or half < self._least_bytes else half)
            self._before_trial = before
        elif self._before_trial and self._rounds >= _ROUNDS:  # it was enough
            self._before_trial, self._wait = 0, _FIRST_WAIT

    def _grow(self, recurring_bytes: int) -> None:
        is_soon = self._rounds <= _ROUNDS  # later it is something new: until then it helped
        if is_soon and 0 < self._grown_for_bytes <= recurring_bytes:
            self._become(self._before_growth)
            self._pause = self._wait
            self._wait_longer()
            return
        before = self.unseen_bytes
        more_bytes = max(recurring_bytes, self._least_bytes)
        self._become(min(before + more_bytes, self._most_bytes))
        self._grown_for_bytes, self._before_growth = recurring_bytes, before

    def _wait_longer(self) -> None:
        self._wait = min(2 * self._wait, _LONGEST_WAIT)

    def _become(self, unseen_bytes: int) -> None:
        self.unseen_bytes = unseen_bytes
        self._evicted.clear()
        self._rounds = self._before_trial = self._grown_for_bytes = self._pause = 0
