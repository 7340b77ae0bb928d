# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps what a torch program did to memory, in order, to do it again on any card.

Covers recording without a device and replaying. Does not cover the trace format, which knows no
kernels; `simulated(trace=...)` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from rmm_uvm.planner.trials.uses import Receiver, Use
from rmm_uvm.simulator import load_machine
from rmm_uvm.torch.shadow.roofline import Roofline, roofline_for

__all__ = ["Free", "Given", "Kernel", "Make", "Program", "recorded"]


@dataclass(frozen=True, slots=True)
class Make:
    """An allocation; they are numbered from 0."""

    allocation: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Free:
    """A free."""

    allocation: int


@dataclass(frozen=True, slots=True)
class Given:
    """Contents that were there before."""

    use: Use


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, and its time with everything on the card."""

    uses: tuple[Use, ...]
    compute_seconds: float


Event: TypeAlias = Make | Free | Given | Kernel


@dataclass
class Program:
    """Allocations, frees and kernels in their order; a `Receiver`.

    Attributes
    ----------
    events : list
        Of `Make`, `Free`, `Given` and `Kernel`.
    marks : list of int
        How many events there were at each `mark`.
    peak_bytes, live_bytes : int
        Allocated at most, and at the end.
    most_used_bytes, compute_seconds : int, float
        Most that one kernel uses, and what all of them compute.
    """

    events: list[Event] = field(default_factory=list, repr=False)
    marks: list[int] = field(default_factory=list, repr=False)
    peak_bytes: int = 0
    live_bytes: int = 0
    most_used_bytes: int = 0
    compute_seconds: float = 0.0
    settle: Callable[[], None] = field(default=lambda: None, repr=False)
    _sizes: list[int] = field(default_factory=list, repr=False)

    def mark(self) -> None:
        """Mark the end of an iteration; what died in it is freed in it."""
        self.settle()
        self.marks.append(len(self.events))

    def allocate(self, nbytes: int) -> int:
        """Take note of an allocation."""
        self._sizes.append(nbytes)
        self.live_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        self.events.append(Make(len(self._sizes) - 1, nbytes))
        return len(self._sizes) - 1

    def free(self, allocation: int) -> None:
        """Take note of a free."""
        self.live_bytes -= self._sizes[allocation]
        self.events.append(Free(allocation))

    def given(self, use: Use) -> None:
        """Take note of contents that were there before."""
        self.events.append(Given(use))

    def kernel(self, uses: Sequence[Use], compute_seconds: float) -> None:
        """Take note of a kernel."""
        self.most_used_bytes = max(self.most_used_bytes, sum(use.nbytes for use in uses))
        self.compute_seconds += compute_seconds
        self.events.append(Kernel(tuple(uses), compute_seconds))

    def replay(self, receiver: Receiver, first: int = 0, end: int | None = None) -> None:
        """Do all of it again, or events `first` to `end`, somewhere else.

        Allocations that were made before `first` have to be known by then: replay a program in
        order with `replayer`, if it is to be done in parts.
        """
        self.replayer(receiver)(first, end)

    def replayer(self, receiver: Receiver) -> Callable[[int, int | None], None]:
        """Return a function that replays events from one number up to another."""
        there: dict[int, int] = {}

        def placed(use: Use) -> Use:
            return use._replace(allocation=there[use.allocation])

        def replay(first: int, end: int | None) -> None:
            for event in self.events[first:end]:
                match event:
                    case Kernel(uses, compute_seconds):
                        receiver.kernel(tuple(map(placed, uses)), compute_seconds)
                    case Make(allocation, nbytes):
                        there[allocation] = receiver.allocate(nbytes)
                    case Free(allocation):
                        receiver.free(there.pop(allocation))
                    case Given(use):
                        receiver.given(placed(use))

        return replay


@contextmanager
def recorded(*, machine: str = "h200-pcie5", roofline: Roofline | None = None) -> Iterator[Program]:
    """Record what a torch program does to memory, in this thread, without any device.

    Under torch's ``FakeTensorMode`` nothing is computed and no memory taken, so that models of any
    size are recorded in seconds.

    Parameters
    ----------
    machine : str
        Machine whose rates say how long kernels take; see `rmm_uvm.simulator.load_machine`.
    roofline : Roofline, optional
        Other rates.

    Yields
    ------
    Program
        What was done until now.

    Raises
    ------
    ConfigurationError
        If there is no such machine.
    AvailabilityError
        If torch is not installed.

    Notes
    -----
    Nothing is freed at the end: what lives then is still allocated in the recording.

    Examples
    --------
    >>> import torch, rmm_uvm.torch
    >>> with rmm_uvm.torch.recorded() as program:
    ...     total = torch.ones(1 << 20).cumsum(0).sum()
    >>> program.peak_bytes >> 20, program.live_bytes
    (8, 4)
    """
    from rmm_uvm.torch.shadow.running import mode_for

    program = Program()
    mode = mode_for(program, roofline_for(roofline, load_machine(machine)))
    program.settle = mode.settle
    try:
        with mode:
            yield program
    finally:
        mode.settle()
        program.settle = lambda: None
