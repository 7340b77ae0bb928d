# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Timing the stages of a run, and telling how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rmm_uvm_mortgage.result import StageTiming


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """How far a run is: stages begun, of how many, and the one that runs now."""

    stages_begun: int
    stages_total: int
    stage: str
    part: str | None


class StageClock:
    """Observes stages: adds up their time, and remembers which one ran last.

    Parameters
    ----------
    stages_total : int
        Number of stages expected.
    progress : callable or None
        Called at the begin of every stage.
    """

    def __init__(
        self, stages_total: int, progress: Callable[[PipelineProgress], None] | None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self.runs: dict[str, int] = {}
        self.stage = ""
        self.part: str | None = None
        self._stages_total = stages_total
        self._progress = progress
        self._begun_seconds = 0.0

    def begin(self, name: str) -> None:
        """Start the clock."""
        self.stage = name
        self.runs[name] = self.runs.get(name, 0) + 1
        if self._progress is not None:
            begun = sum(self.runs.values())
            total = max(self._stages_total, begun)
            self._progress(PipelineProgress(begun, total, name, self.part))
        self._begun_seconds = time.perf_counter()

    def end(self, name: str) -> None:
        """Stop the clock."""
        spent = time.perf_counter() - self._begun_seconds
        self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def results(self) -> tuple[StageTiming, ...]:
        """Return all stages in the order of their first run."""
        return tuple(StageTiming(n, s, self.runs[n]) for n, s in self.seconds.items())
