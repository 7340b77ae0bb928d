# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Modules of which nothing leaves as a copy: their calls go without hooks for what autograd keeps.

Such a hook takes the host's time twice for each tensor, and of most modules nothing has to leave.
What was kept by two calls in a row of which nothing was to leave tells how much the next one keeps.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import torch

from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.activations.copies import Progress
from rmm_uvm.torch.by_module import ByModule

__all__ = ["QuietModules"]

_CALLS = 2  # like each other, of which nothing was to leave


@dataclass(slots=True)
class _Record:
    """A record of a module's last calls."""

    kept: Progress  # by each of the last ones
    calls: int = 0  # that were alike, of which nothing was to leave


class QuietModules:
    """Learns which modules are quiet; to be told of calls, from hooks. Thread-safe.

    Parameters
    ----------
    copies : CopiedActivations
        What is copied.
    """

    def __init__(self, copies: CopiedActivations) -> None:
        self._copies = copies
        self._records: ByModule[_Record] = ByModule()
        self._thread = threading.local()  # .quiet: depth; .watched: depths, and the progress then

    def depth(self) -> int:
        """Return the depth of the quiet call that is under way in this thread; 0: none."""
        return getattr(self._thread, "quiet", 0)

    def is_quiet(self, module: torch.nn.Module) -> bool:
        """Whether nothing is about to leave of what a call of a module keeps."""
        record = self._records.get(module)
        return record is not None and record.calls >= _CALLS

    def begin(self, depth: int) -> None:
        """Take note that a call begins that goes without hooks."""
        self._thread.quiet = depth

    def break_off(self) -> None:
        """Take note that a quiet call ended with an interrupt."""
        self._thread.quiet = 0

    def end(self, module: torch.nn.Module) -> None:
        """Take note that a quiet call ended: it kept what the last ones did."""
        self._thread.quiet = 0
        record = self._records.get(module)
        if record is not None and _keeps():
            self._copies.pass_over(record.kept)

    def watch(self, depth: int) -> None:
        """Take note that a call begins which has hooks."""
        watched = self._watched()
        while watched and watched[-1][0] >= depth:
            watched.pop()  # it ended with an interrupt
        if _keeps():
            watched.append((depth, self._copies.progress()))

    def learn(self, module: torch.nn.Module, depth: int) -> None:
        """Take note that such a call ended."""
        watched = self._watched()
        while watched and watched[-1][0] > depth:
            watched.pop()
        if not watched or watched[-1][0] != depth:
            return
        kept = self._copies.progress().since(watched.pop()[1])
        record = self._records.get(module)
        if record is None:
            record = _Record(kept)
            self._records.put(module, record)
        alike = kept == record.kept and kept.chosen_total == 0
        record.kept, record.calls = kept, record.calls + 1 if alike else 0

    def _watched(self) -> list[tuple[int, Progress]]:
        watched: list[tuple[int, Progress]] | None = getattr(self._thread, "watched", None)
        if watched is None:
            watched = self._thread.watched = []
        return watched


def _keeps() -> bool:
    """Whether autograd keeps anything now for a backward pass that has not begun."""
    return torch.is_grad_enabled() and bool(torch._C._current_graph_task_id() == -1)
