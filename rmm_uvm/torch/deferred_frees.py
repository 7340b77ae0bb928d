# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that `record_stream` was told of: torch defers its frees while a pool is routed.

So torch is made to look at them, after a step of an optimiser once they are worth it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

__all__ = ["DeferredFrees"]

_LEAST_FRACTION = 1 / 16  # of torch's segments: looking waits for the device


class DeferredFrees:
    """Has deferred frees looked at after steps of optimisers, until `end`.

    Parameters
    ----------
    reclaim : callable
        Does it: see `rmm_uvm.torch.routing.Routing.reclaim`.
    deferred_bytes : callable
        Returns how much was freed and is not used again yet.
    segment_bytes : callable
        Returns how much torch holds in all.

    Attributes
    ----------
    looks_total : int
        How often they were looked at.

    Examples
    --------
    >>> import torch
    >>> deferred_bytes = iter([0, 50, 100])
    >>> frees = DeferredFrees(lambda: None, lambda: next(deferred_bytes), lambda: 1600)
    >>> step = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]).step
    >>> for _ in range(3):
    ...     step()
    ...     frees.looks_total
    0
    0
    1
    >>> frees.end()
    """

    def __init__(
        self,
        reclaim: Callable[[], None],
        deferred_bytes: Callable[[], int],
        segment_bytes: Callable[[], int],
    ) -> None:
        self._reclaim = reclaim
        self._deferred_bytes = deferred_bytes
        self._segment_bytes = segment_bytes
        self._handle = register_optimizer_step_post_hook(self._after_step)
        self.looks_total = 0

    def end(self) -> None:
        """Look no more."""
        self._handle.remove()

    def _after_step(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if torch._C._current_graph_task_id() != -1:
            return  # an optimiser that steps within the backward pass: more waits after it
        deferred_bytes = self._deferred_bytes()
        if deferred_bytes == 0 or deferred_bytes < _LEAST_FRACTION * self._segment_bytes():
            return
        self.looks_total += 1
        self._reclaim()
