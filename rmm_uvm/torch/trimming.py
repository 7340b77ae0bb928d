# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Free segments of torch's that are in the way once copies make a step fit.

What torch took before, while all lived on the device, is more than the budget. Torch goes on
putting tensors all over it: what is dead is dropped for them, again in each step, and what they
come to is made usable again. Segments that it takes anew are about as many as fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm._lib.torch_segments import TorchSegments
from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.routing import Routing

__all__ = ["Trimming", "trimming_for"]

_LEAST_FRACTION = 1 / 32  # of the budget, dropped in a step
_FIRST_PAUSE = 2  # steps until the next time
_PAUSE_GROWTH = 2  # each time
_PAUSE_GROWTH_IN_VAIN = 8  # where it did not help: it costs a step, and those after it evict
_HELPED_FRACTION = 3 / 4  # of what was dropped in a step before


class Trimming:
    """Has free segments given back after steps of optimisers, until `end`.

    Parameters
    ----------
    give_back : callable
        Does it. It takes about as long as a step.
    dropped_bytes : callable
        Returns how much dead memory was dropped until now.
    is_settled : callable
        Returns whether as much is copied as has to be.
    budget_bytes : int
        What fits on the device.
    keep_less : callable
        Has autograd keep less where that did not help; returns whether it does, or did just now.

    Attributes
    ----------
    trims_total : int
        How often they were given back.

    Examples
    --------
    >>> import itertools, torch
    >>> dropped_bytes = itertools.count(0, 100)
    >>> trimming = Trimming(lambda: None, lambda: next(dropped_bytes), lambda: True, 1600)
    >>> step = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]).step
    >>> for _ in range(5):
    ...     step()
    ...     trimming.trims_total
    1
    1
    1
    2
    2
    >>> trimming.end()
    """

    def __init__(
        self,
        give_back: Callable[[], None],
        dropped_bytes: Callable[[], int],
        is_settled: Callable[[], bool],
        budget_bytes: int,
        keep_less: Callable[[], bool] = bool,
    ) -> None:
        self._give_back, self._keep_less = give_back, keep_less
        self._dropped_bytes, self._is_settled = dropped_bytes, is_settled
        self._least_bytes = budget_bytes * _LEAST_FRACTION
        self._before = dropped_bytes()
        self._pause, self._left = _FIRST_PAUSE, 0
        self._step_bytes_before = 0  # in the step before they were given back last; 0: never
        self.trims_total = 0
        self._handle = register_optimizer_step_post_hook(self._after_step)

    def end(self) -> None:
        """Give back no more."""
        self._handle.remove()

    def _after_step(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if torch._C._current_graph_task_id() != -1:
            return  # an optimiser that steps within the backward pass: most of it is still alive
        now = self._dropped_bytes()
        step_bytes, self._before = now - self._before, now
        if self._left:
            self._left -= 1
        elif step_bytes > self._least_bytes and self._is_settled():
            vain = 0 < self._step_bytes_before * _HELPED_FRACTION < step_bytes
            if vain and self._keep_less():
                self._pause = _FIRST_PAUSE
            elif self._step_bytes_before:
                self._pause *= _PAUSE_GROWTH_IN_VAIN if vain else _PAUSE_GROWTH
            self._left, self._step_bytes_before = self._pause, step_bytes
            self.trims_total += 1
            self._give_back()


def trimming_for(
    copies: CopiedActivations,
    routing: Routing,
    managed: ManagedResidency,
    segments: TorchSegments,
    maximum_bytes: int,
    budget_bytes: int,
    keep_less: Callable[[], bool] = bool,
) -> Trimming:
    """Return what has torch give its free segments back where copies do not make a step fit.

    Parameters
    ----------
    copies, routing, managed, segments
        Of the device.
    maximum_bytes : int
        Most bytes of all segments. What is free beside live tensors is not used again until the
        next time: so nothing is given back where that might be missed.
    budget_bytes : int
        What fits on the device.
    keep_less : callable
        See `Trimming`.
    """

    def give_back() -> None:
        with routing.renewed():
            torch._C._cuda_emptyCache()
        copies.on_moved()

    def may_give_back() -> bool:
        most_bytes = segments.statistics()["segment_bytes"] + routing.allocated_bytes()
        return copies.is_settled() and most_bytes <= maximum_bytes

    def dropped_bytes() -> int:
        residency = managed.residency()
        assert residency is not None
        return residency["dropped_bytes"]

    return Trimming(give_back, dropped_bytes, may_give_back, budget_bytes, keep_less)
