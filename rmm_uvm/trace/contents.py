# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What was read of a trace, as one frozen value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmm_uvm.recording.recorded import Recording, Stage
from rmm_uvm.trace.events import EventKind
from rmm_uvm.trace.facts import as_seconds, as_texts, devices_of, sources_of
from rmm_uvm.trace.footprint import footprint_samples

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Trace"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """What a program allocated, freed and was known to touch, with its stages and samples.

    Parameters
    ----------
    events : ndarray, shape (n_events,), dtype `rmm_uvm.trace.EVENT_DTYPE`
        In order of time.
    samples : ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        What a monitor recorded meanwhile; empty if none did.
    stages : tuple of Stage
        In order of their begin; times in seconds since the trace began.
    annotations : tuple of (float, str)
        Seconds since the trace began, and text.
    facts : mapping
        What the writer knew about the run. From a file, so believe none of it.
    truncated : bool
        The end is missing: the program still ran, or was killed.
    damaged : str
        What is wrong and where; what came before is here. Empty: nothing.
    dropped : int
        Events that the writer could not record.
    """

    events: np.ndarray[Any, np.dtype[np.void]]
    samples: np.ndarray[Any, np.dtype[np.void]]
    stages: tuple[Stage, ...] = ()
    annotations: tuple[tuple[float, str], ...] = ()
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    truncated: bool = False
    damaged: str = ""
    dropped: int = 0

    @property
    def duration_seconds(self) -> float:
        """Time from the begin to the last event or sample."""
        latest = [rows["time_ns"].max() for rows in (self.events, self.samples) if len(rows)]
        return float(max(latest, default=0)) / 1e9

    def of(self, *kinds: EventKind) -> np.ndarray[Any, np.dtype[np.void]]:
        """Return the events of some kinds, in order of time."""
        wanted = self.events["kind"] == kinds[0]
        for kind in kinds[1:]:
            wanted |= self.events["kind"] == kind
        found: np.ndarray[Any, np.dtype[np.void]] = self.events[wanted]
        return found

    def recording(self) -> Recording:
        """Return what reports work on.

        Without samples, the footprint over time is made from allocations and frees. Capacities are
        0 where the writer did not tell them.
        """
        samples = self.samples
        if len(samples) == 0:
            samples = footprint_samples(self.events)
        return Recording(
            samples=samples[samples["time_ns"].argsort(kind="stable")],
            devices=devices_of(self.facts, self.events, samples),
            stages=self.stages,
            sources=sources_of(self.facts),
            began=str(self.facts.get("began", "")),
            interval_seconds=as_seconds(self.facts.get("interval_seconds")),
            settings=as_texts(self.facts.get("settings")),
            versions=as_texts(self.facts.get("versions")),
        )

    def __repr__(self) -> str:
        state = ", cut off" if self.truncated else ""
        state += f", damaged: {self.damaged}" if self.damaged else ""
        return (
            f"<Trace: {len(self.events)} events, {len(self.samples)} samples, "
            f"{len(self.stages)} stages in {self.duration_seconds:.1f} s{state}>"
        )
