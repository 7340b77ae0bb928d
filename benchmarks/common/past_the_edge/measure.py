# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One process: a program of equal rounds on one memory, timed, or up to the moment of a twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.common.past_the_edge.memory import Memory
from benchmarks.common.past_the_edge.page_tables import Sampler, beyond
from benchmarks.common.past_the_edge.rounds import COUNTED_FROM, checksum, moment_name
from benchmarks.common.past_the_edge.stops import look_at_stop


class Program(Protocol):
    """What is run: the same operations in every round."""

    operations: int
    """Of one round."""

    def make(self) -> None:
        """Make the data."""

    def operation(self, number: int) -> int:
        """Do one of a round, 0 to `operations` - 1; return a whole number that depends on it."""

    def drop(self) -> None:
        """Let go of all data."""


@dataclass(frozen=True)
class Plan:
    """How it is run.

    Parameters
    ----------
    budget_bytes : int
        Of all sides that have one.
    rounds : int
        Those from the fourth on count.
    moments : sequence
        Pairs of a round, counted from 1, and of an operation: all runs wait for the device there,
        and note what has moved so far.
    stop : sequence of int or None
        The moment at which a twin ends; None for a timed run.
    sample_seconds : float
        Between looks at the page tables; 0 for none.
    """

    budget_bytes: int
    rounds: int
    moments: Sequence[Sequence[int]] = ()
    stop: Sequence[int] | None = None
    sample_seconds: float = 0.004


def measure(
    program: Program,
    memory: Memory,
    plan: Plan,
    beside: Callable[[], tuple[int | None, str]] = lambda: (0, ""),
) -> dict[str, Any]:
    """Return the row of one run, or of one twin.

    Parameters
    ----------
    beside : callable
        Called at the end: gives back all memory, and says how much of the device is taken that is
        not managed, or why it cannot be told. That counts too.
    """
    sampler = Sampler(memory.sample, plan.sample_seconds)
    sampler.start()
    try:
        row, counted_since, end = _measured(program, memory, plan, sampler)
    finally:
        sampler.stop()
    row["blind"] = memory.blind or sampler.failure
    beside_bytes, row["beside_unknown"] = beside()
    row["beside_bytes"] = beside_bytes
    if plan.stop is not None:
        return row
    # Where memory is not managed, a look at what is free has seen it already.
    among = (plan.budget_bytes, (beside_bytes or 0) if memory.managed else 0)
    row["page_tables"] = beyond(sampler.samples, counted_since, end, *among)
    row["learning_most_bytes"] = beyond(sampler.samples, 0.0, counted_since, *among)["most_bytes"]
    return row


def _measured(
    program: Program, memory: Memory, plan: Plan, sampler: Sampler
) -> tuple[dict[str, Any], float, float]:
    """Return a row, and when the rounds that count began and ended."""
    waits = {tuple(each) for each in plan.moments}
    stop = None if plan.stop is None else tuple(plan.stop)
    begin = memory.now()
    program.make()
    memory.synchronize()
    timed = getattr(program, "EACH_TIMED", False)
    row: dict[str, Any] = {"make_seconds": memory.now() - begin, "rounds": [], "moved_at": {}}
    counted_since = 0.0
    for number in range(1, plan.rounds + 1):
        counts, moved, begin = memory.counts(), memory.moved(), memory.now()
        if number == COUNTED_FROM:
            counted_since = begin
        total, took = 0, []
        for operation in range(program.operations):
            operation_begin = memory.now()
            total = checksum(total, program.operation(operation))
            if timed:
                memory.synchronize()
                took.append(memory.now() - operation_begin)
            if memory.looks_between:
                sampler.look_now()
            if (number, operation) in waits:
                memory.synchronize()
                row["moved_at"][moment_name((number, operation))] = list(memory.moved())
            if (number, operation) == stop:
                sampler.stop()
                row["stop"] = look_at_stop(memory)
                return row, counted_since, memory.now()
        memory.synchronize()
        end = memory.now()
        row["rounds"].append(
            {
                "seconds": end - begin,
                "to_device_bytes": memory.moved()[0] - moved[0],
                "to_host_bytes": memory.moved()[1] - moved[1],
                **{name: after - counts[name] for name, after in memory.counts().items()},
                "checksum": total,
                **({"operation_seconds": took} if took else {}),
            }
        )
    return row, counted_since or end, end
