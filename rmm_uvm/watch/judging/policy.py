# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""From samples to findings: a pure function, with its memory passed in and out.

Covers footprint, host memory, eviction with its three explanations, amplification, what budgets
cannot hold and make programs wait for, and sources that fail. Does not cover how a finding reaches
people, see `rmm_uvm.watch.telling.delivery`.

A situation has one finding. Sustained eviction is told as `device_taken` when others hold the room,
as `prefetch` when this package's prefetches push the pages out, and as `eviction` otherwise; and
once the same bytes are known to come again and again, as `amplification` alone.

See Also
--------
rmm_uvm.watch.judging.thresholds : what the figures are compared with, and why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.recording.sample import Known
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.watch.judging import wording
from rmm_uvm.watch.judging.intervals import (
    BEGIN,
    Interval,
    SampleRow,
    all_fits,
    gone_after,
    interval_between,
    rows_of,
)
from rmm_uvm.watch.judging.thresholds import Thresholds

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Alarm", "Context", "PolicyState", "evaluate", "worth_telling"]


class Alarm(NamedTuple):
    """Whether a kind of finding is due.

    Parameters
    ----------
    armed : bool
        Goes off at the next figure above the threshold.
    last_seconds : float or None
        When it went off last; None for never.
    """

    armed: bool = True
    last_seconds: float | None = None

    def due(self, now_seconds: float, repeat_seconds: float) -> bool:
        """Return whether a figure above the threshold would be a finding now."""
        waited = self.last_seconds is None or now_seconds - self.last_seconds >= repeat_seconds
        return self.armed and waited

    def fired(self, now_seconds: float) -> Alarm:
        """Return the alarm after it went off."""
        return Alarm(armed=False, last_seconds=now_seconds)

    def rearmed(self) -> Alarm:
        """Return the alarm after the figure fell below.

        Examples
        --------
        >>> alarm = Alarm().fired(10.0).rearmed()
        >>> alarm.due(20.0, repeat_seconds=60), alarm.due(70.0, repeat_seconds=60)
        (False, True)
        """
        return self._replace(armed=True)


# Another source takes the place of these, or nothing that is found depends on them.
_DISPENSABLE = frozenset({"nvml", "rmm_chain", "own_resources", "board"})
# How a reason begins when nothing is broken: somebody wished it so, or there is nothing to see.
_NO_FAULT = ("switched off", "not asked for", "without concurrent managed access")


@dataclasses.dataclass(frozen=True)
class Context:
    """The surroundings of one device.

    Parameters
    ----------
    device : RecordedDevice
        The device.
    host_available_bytes : int or None
        What the host, or the container's limit, still allows; None when it is not known or does
        not matter, as on a simulated device.
    host_limit_source : str
        The file with the container's limit; empty when there is none.
    prefetch : {"auto", "always", "never"} or None
        How our resource on this device prefetches; None when there is none of ours.
    budget : ResidencyStatistics or None
        How the budget of our pool on this device is kept; None when it has none.
    interval_seconds : float
        Usual time between two samples. Intervals of less than half of it, as between samples taken
        where a stage begins or ends, are put together until they are as long. 0: each counts.
    unavailable : mapping of str to str
        Sources that ought to work and do not, with the reason; see `worth_telling`.
    """

    device: RecordedDevice
    host_available_bytes: int | None = None
    host_limit_source: str = ""
    prefetch: str | None = None
    budget: ResidencyStatistics | None = None
    interval_seconds: float = 0.0
    unavailable: Mapping[str, str] = dataclasses.field(default_factory=dict)


def worth_telling(sources: Mapping[str, Availability], *, simulated: bool) -> dict[str, str]:
    """Return the sources whose absence a user should hear of, with the reason.

    Not those that were switched off or never asked for (their reason begins with these words),
    that another source replaces, or that a simulated device has no need of. Of several that are
    absent for one reason, the first.

    Parameters
    ----------
    sources : mapping of str to Availability
        All sources, by name.
    simulated : bool
        Whether the device is a model.

    Examples
    --------
    >>> found = {
    ...     "kernel_counters": Availability(False, "no /dev/nvidia-uvm-tools"),
    ...     "faults": Availability(False, "not asked for"),
    ... }
    >>> worth_telling(found, simulated=False)
    {'kernel_counters': 'no /dev/nvidia-uvm-tools'}
    """
    absent = {
        name: source.reason
        for name, source in sources.items()
        if not source and name not in _DISPENSABLE and not source.reason.startswith(_NO_FAULT)
    }
    if simulated:  # there is no NVIDIA library that could know of it
        absent = {name: why for name, why in absent.items() if name == "kernel_counters"}
    first = {why: name for name, why in reversed(absent.items())}
    return {name: why for name, why in absent.items() if first[why] == name}


# The window is kept in so many pieces at most, however often samples come.
_WINDOW_PIECES = 60


class EvictingStretch(NamedTuple):
    """A stretch of time in which the device evicted.

    Parameters
    ----------
    begin_seconds, end_seconds : float
        Since the monitor began.
    to_device_bytes : int
        Moved to the device meanwhile.
    used_bytes : int
        The largest footprint, but no less than a tenth of the capacity; all of the capacity where
        the footprint is not known.
    """

    begin_seconds: float
    end_seconds: float
    to_device_bytes: int
    used_bytes: int


class BudgetLook(NamedTuple):
    """The counts of a budget at one moment.

    Parameters
    ----------
    seconds : float
        When, since the monitor began.
    waited_seconds, room_seconds : float
        For how long at least one request had waited, and of that until others had left.
    came_bytes, left_bytes : int
        Brought in for a use, or ahead of it; and moved away with a copy.
    """

    seconds: float
    waited_seconds: float
    room_seconds: float
    came_bytes: int
    left_bytes: int

    @classmethod
    def of(cls, seconds: float, budget: ResidencyStatistics) -> BudgetLook:
        """Return what is counted now."""
        return cls(
            seconds,
            budget.waited_seconds,
            budget.waited_for_room_seconds,
            budget.fetched_bytes + budget.fetched_ahead_bytes,
            budget.evicted_bytes,
        )

    def since(self, before: BudgetLook) -> BudgetLook:
        """Return what came to it since another moment; `seconds` is the time between them."""
        return BudgetLook(
            self.seconds - before.seconds,
            self.waited_seconds - before.waited_seconds,
            self.room_seconds - before.room_seconds,
            self.came_bytes - before.came_bytes,
            self.left_bytes - before.left_bytes,
        )


@dataclasses.dataclass(frozen=True)
class PolicyState:
    """The memory of the policy about one device; begin with the default.

    Parameters
    ----------
    last : SampleRow
        The latest sample.
    gone_bytes : int
        Managed memory that lies on the host.
    begun : Interval or None
        What was too short to count, and counts with the next interval.
    evicting : tuple of Interval
        The latest intervals, all of them with eviction above the threshold.
    quiet_samples : int
        Samples in a row with hardly any eviction.
    moved : tuple of EvictingStretch
        The window in which amplification is looked for.
    alarms : mapping of str to Alarm
        By kind; "eviction" also stands for what takes its place.
    told : frozenset of str
        Sources whose absence was told.
    unanswered_samples : int or None
        Samples in a row without byte counters; None while they never answered.
    too_large, switched_off : int
        What was told of the budget: requests larger than it, and predictors that are off.
    budget_looks : tuple of BudgetLook
        What it had counted, in the window in which waiting is looked for.
    """

    last: SampleRow = BEGIN
    gone_bytes: int = 0
    begun: Interval | None = None
    evicting: tuple[Interval, ...] = ()
    quiet_samples: int = 0
    moved: tuple[EvictingStretch, ...] = ()
    alarms: Mapping[str, Alarm] = dataclasses.field(default_factory=dict)
    told: frozenset[str] = frozenset()
    unanswered_samples: int | None = None
    too_large: int = 0
    switched_off: int = 0
    budget_looks: tuple[BudgetLook, ...] = ()


def evaluate(
    state: PolicyState,
    samples: np.ndarray[Any, np.dtype[np.void]],
    context: Context,
    thresholds: Thresholds,
) -> tuple[PolicyState, tuple[Finding, ...]]:
    """Return the new state, and what the samples show.

    Parameters
    ----------
    state : PolicyState
        As returned by the call before.
    samples : ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        Of one device, in order of time, none seen before. How they are cut into calls makes no
        difference but for `budget`, which is of now and belongs to the last of them.
    context : Context
        The device's surroundings now.
    thresholds : Thresholds
        What is too much.

    Examples
    --------
    >>> import numpy as np
    >>> from rmm_uvm.recording.recorded import RecordedDevice
    >>> from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
    >>> sample = np.zeros(1, SAMPLE_DTYPE)
    >>> sample["time_ns"], sample["known"], sample["footprint_bytes"] = 10**9, Known.FOOTPRINT, 300
    >>> device = RecordedDevice(0, "model", "", total_bytes=200, capacity_bytes=200)
    >>> _, findings = evaluate(PolicyState(), sample, Context(device), Thresholds())
    >>> findings[0].kind, findings[0].value
    ('footprint', 1.5)
    """
    findings: list[Finding] = []
    rows = rows_of(samples)
    for row in rows:
        step = _Step(state, row, context, thresholds, findings)
        step.run(newest=row is rows[-1])
        state = step.state
    return state, tuple(findings)


class _Step:
    """One sample: `run` leaves the new state in `state` and appends to `findings`."""

    def __init__(
        self,
        state: PolicyState,
        row: SampleRow,
        context: Context,
        thresholds: Thresholds,
        findings: list[Finding],
    ) -> None:
        self.state = state
        self.findings = findings
        self._row = row
        self._context = context
        self._device = context.device
        self._limits = thresholds
        self._alarms = dict(state.alarms)

    def run(self, *, newest: bool) -> None:
        """Look at everything; at what the context counts in the newest sample only.

        The context is of now: what it counts may have happened after all samples before.
        """
        self._look_at_sources()
        if newest:
            self._look_at_budget()
            self._look_at_waiting()
        self._change(gone_bytes=gone_after(self.state.gone_bytes, self.state.last, self._row))
        if self._row.knows(Known.FOOTPRINT) and self._device.capacity_bytes:
            self._look_at_footprint()
            self._look_at_host_memory()
        interval = self._whole_interval()
        if interval is not None and self._device.capacity_bytes:
            self._look_at_traffic(interval)
        self._change(last=self._row, alarms=self._alarms)

    def _look_at_sources(self) -> None:
        told = self.state.told
        if self._row.knows(Known.COUNTERS):
            self._change(unanswered_samples=0)
        elif self.state.unanswered_samples is not None:
            unanswered = self.state.unanswered_samples + 1
            self._change(unanswered_samples=unanswered)
            # One sample may be missed while a device is reset; then they come back.
            if self._limits.monitor and unanswered == self._limits.eviction_samples:
                self.findings.append(wording.counters_lost(self._row, unanswered))
        if self._limits.monitor:
            for name, reason in self._context.unavailable.items():
                if name not in told:
                    self.findings.append(wording.source_unavailable(self._row, name, reason))
            self._change(told=told | self._context.unavailable.keys())

    def _look_at_budget(self) -> None:
        budget = self._context.budget
        if budget is None or not self._limits.budget:
            return
        # Each once for a pool: another one counts from 0.
        if budget.too_large and not 0 < self.state.too_large <= budget.too_large:
            self.findings.append(wording.too_large_found(self._row, self._device, budget))
        if budget.switched_off and not 0 < self.state.switched_off <= budget.switched_off:
            self.findings.append(wording.prediction_found(self._row, budget))
        self._change(too_large=budget.too_large, switched_off=budget.switched_off)

    def _look_at_waiting(self) -> None:
        """Find that a budget's own traffic has the program wait.

        The kernel driver's counters do not tell: what moves ahead of need is no reason to worry.
        """
        budget, threshold = self._context.budget, self._limits.waiting_fraction
        if budget is None or threshold is None:
            self._change(budget_looks=())
            return
        window = self._limits.waiting_window_seconds
        look = BudgetLook.of(self._row.seconds, budget)
        looks = list(self.state.budget_looks)
        if looks and min(look.since(looks[-1])) < 0:
            looks = []  # another pool
        # The last one from before the window is what the others are compared with.
        while len(looks) > 1 and looks[1].seconds <= look.seconds - window:
            del looks[0]
        if len(looks) < 2 or look.seconds - looks[-2].seconds > window / _WINDOW_PIECES:
            looks.append(look)
        else:
            looks[-1] = look
        self._change(budget_looks=tuple(looks))
        lately = look.since(looks[0])
        # Looks may be further apart than the window.
        fraction = lately.waited_seconds / max(window, lately.seconds)
        if fraction < self._limits.waiting_rearm_fraction:
            self._rearm("waiting")
        if fraction > threshold and lately.came_bytes + lately.left_bytes > 0:
            used_bytes = self._row.footprint_bytes if self._row.knows(Known.FOOTPRINT) else 0
            found = wording.waiting_found(
                self._row, budget, lately, used_bytes, fraction, threshold
            )
            self._fire("waiting", found)

    def _look_at_footprint(self) -> None:
        threshold = self._limits.footprint_factor
        if threshold is None:
            return
        fits_bytes = self._fits_bytes()
        factor = self._row.footprint_bytes / fits_bytes
        if factor > threshold:
            if threshold >= 1.0 and all_fits(self._row, self._device.total_bytes):
                return  # others held memory when the monitor began, and do no longer
            found = wording.footprint_found(
                self._row, fits_bytes, factor, threshold, self._remedies
            )
            self._fire("footprint", found)
        elif factor < self._limits.footprint_rearm_factor:
            self._rearm("footprint")

    def _look_at_host_memory(self) -> None:
        threshold = self._limits.host_memory_fraction
        available_bytes = self._context.host_available_bytes
        if threshold is None:
            return
        # What must still go for the footprint to be held at all: not what lies there already.
        excess_bytes = self._row.footprint_bytes - self._device.capacity_bytes
        needed_bytes = excess_bytes - self.state.gone_bytes
        if needed_bytes <= 0:
            self._rearm("host_memory")
            return
        if available_bytes is None:
            return
        if needed_bytes > threshold * available_bytes:
            found = wording.host_memory_found(
                self._row,
                self._device,
                needed_bytes,
                available_bytes,
                self._context.host_limit_source,
                threshold,
            )
            self._fire("host_memory", found)
        elif needed_bytes <= self._limits.host_memory_rearm_fraction * available_bytes:
            self._rearm("host_memory")

    def _whole_interval(self) -> Interval | None:
        """Return what happened since the last sample that counted; None if this one does not.

        Samples are also taken where a stage begins or ends, and when somebody asks: several within
        one burst are no reason to call it sustained.
        """
        interval = interval_between(self.state.last, self._row, self._device.total_bytes)
        if interval is None:
            return None
        if self.state.begun is not None:
            interval = self.state.begun.followed_by(interval)
        # Samples may bear the same time; what moved between them counts with the next.
        counts = interval.seconds > 0 and (interval.seconds >= self._context.interval_seconds / 2)
        self._change(begun=None if counts else interval)
        return interval if counts else None

    def _look_at_traffic(self, interval: Interval) -> None:
        self._remember(interval)
        taken = self._taken_by_others()
        # Whoever empties the device causes the amplification too, and is the one to look at.
        amplified = None if taken else self._amplification()
        sustained = self._sustained()
        if amplified is not None:
            if self._fire("amplification", amplified):
                self._alarms["eviction"] = self._alarm("eviction").fired(self._row.seconds)
        elif sustained is not None:
            self._fire("eviction", sustained)

    def _remember(self, interval: Interval) -> None:
        """Enter an interval into the latest ones and into the window."""
        capacity_bytes = self._device.capacity_bytes
        rate = interval.evicted_bytes / interval.seconds / capacity_bytes
        most = self._limits.eviction_samples
        threshold = self._limits.eviction_fraction_per_second
        above = threshold is not None and rate > threshold
        quiet = 0
        if rate < self._limits.eviction_rearm_fraction_per_second:
            quiet = min(self.state.quiet_samples + 1, most)
            if quiet == most:
                self._rearm("eviction")
        # A few pages that leave are no reason why as many come.
        evicts = interval.evicted_bytes > 0 and (threshold is None or above)
        self._change(
            evicting=(*self.state.evicting, interval)[-most:] if above else (),
            quiet_samples=quiet,
            moved=self._window(interval if evicts else None),
        )

    def _window(self, evicting: Interval | None) -> tuple[EvictingStretch, ...]:
        now = self._row.seconds
        length = self._limits.amplification_window_seconds
        pieces = [piece for piece in self.state.moved if piece.end_seconds > now - length]
        if evicting is None:
            return tuple(pieces)
        used_bytes = self._device.capacity_bytes
        if self._row.knows(Known.FOOTPRINT):
            # Some pages of a small program that come and go are no traffic to speak of.
            used_bytes = max(self._row.footprint_bytes, used_bytes // 10)
        new = EvictingStretch(now - evicting.seconds, now, evicting.to_device_bytes, used_bytes)
        if pieces and now - pieces[-1].begin_seconds <= length / _WINDOW_PIECES:
            old = pieces.pop()
            new = EvictingStretch(
                old.begin_seconds,
                now,
                old.to_device_bytes + new.to_device_bytes,
                max(old.used_bytes, used_bytes),
            )
        return (*pieces, new)

    def _amplification(self) -> Finding | None:
        threshold = self._limits.amplification_factor
        if threshold is None:
            return None
        pieces = self.state.moved
        moved_bytes = sum(piece.to_device_bytes for piece in pieces)
        factor = moved_bytes / max([1, *(piece.used_bytes for piece in pieces)])
        if factor < self._limits.amplification_rearm_factor:
            self._rearm("amplification")
        if factor <= threshold:
            return None
        seconds = self._row.seconds - pieces[0].begin_seconds
        return wording.amplification_found(
            self._row, moved_bytes, seconds, factor, threshold, self._remedies
        )

    def _sustained(self) -> Finding | None:
        """Return the finding that explains why pages leave sample after sample."""
        intervals, limits = self.state.evicting, self._limits
        if limits.eviction_fraction_per_second is None:
            return None
        if len(intervals) < limits.eviction_samples:
            return None
        evicted_bytes = sum(interval.evicted_bytes for interval in intervals)
        rate = evicted_bytes / sum(interval.seconds for interval in intervals)
        if self._taken_by_others():
            return wording.device_taken_found(self._row, self._device, rate)
        if limits.prefetch_fraction is not None and self._context.prefetch in ("auto", "always"):
            # What is evicted makes room for what comes, also for pages that hold nothing yet.
            incoming_bytes = max(sum(i.to_device_bytes for i in intervals), evicted_bytes)
            own = sum(interval.own_bytes for interval in intervals) / incoming_bytes
            if own > limits.prefetch_fraction:
                return wording.prefetch_found(
                    self._row, self._context.prefetch, own, limits.prefetch_fraction
                )
        threshold = limits.eviction_fraction_per_second * self._device.capacity_bytes
        return wording.eviction_found(self._row, self._device, rate, threshold, self._remedies)

    def _fits_bytes(self) -> int:
        """Return what fits on the device, of which a budget knows what others hold by now."""
        budget, device = self._context.budget, self._device
        if budget is None:
            return device.capacity_bytes
        others_bytes = (budget.unmanaged_bytes or 0) + budget.hidden_bytes
        return max(min(device.capacity_bytes, device.total_bytes - others_bytes), 1)

    @property
    def _remedies(self) -> str:
        context = self._context
        return wording.own_remedies(
            ours=context.prefetch is not None, budgeted=context.budget is not None
        )

    def _taken_by_others(self) -> bool:
        """Return whether managed memory would fit, if others did not hold what they hold."""
        row, device, fraction = self._row, self._device, self._limits.device_taken_fraction
        if fraction is None or not row.knows(Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT):
            return False
        if not 0 < row.managed_bytes <= device.capacity_bytes:
            return False
        others_bytes = row.device_used_bytes - row.resident_bytes
        room_bytes = device.total_bytes - row.managed_bytes
        return others_bytes > room_bytes and others_bytes > fraction * device.total_bytes

    def _alarm(self, name: str) -> Alarm:
        return self._alarms.get(name, Alarm())

    def _rearm(self, name: str) -> None:
        self._alarms[name] = self._alarm(name).rearmed()

    def _fire(self, name: str, finding: Finding) -> bool:
        """Enter a finding if its alarm is due; return whether it was."""
        alarm = self._alarm(name)
        if not alarm.due(self._row.seconds, self._limits.repeat_seconds):
            return False
        self._alarms[name] = alarm.fired(self._row.seconds)
        self.findings.append(finding)
        return True

    def _change(self, **values: Any) -> None:
        self.state = dataclasses.replace(self.state, **values)
