# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Two result files of one benchmark side by side: which figures differ, and by how much."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

# A figure is a time or a rate by its name, or that of what holds it. The others are not judged
# where clocks decide: counts, sizes and settings.
_RATE = re.compile(r"per_second|throughput|_rate$|rates$")
_TIME = re.compile(r"second|_ns$|^ns_|nanosecond|_us$|_ms$|(real|cpu)_time$|medians$")
# What tells rows apart that may come in any order, beside their words.
_SETTINGS = (
    *("factor", "capacity_bytes", "device_bytes", "card_gib", "size_bytes", "bytes", "parts"),
    *("gpus", "threads", "blocks", "ledger_gib", "budget_gib", "half_budgets_gib", "readers"),
)
_ORIGIN = frozenset({"commit", "device"})  # of a row that was measured in a call of its own
_SPREADS = frozenset({"stddev", "cv", "mean"})  # Google Benchmark has the median beside them
_NOT_FIGURES = frozenset({"environment", "context", "benchmark"})

Value = float | str | bool | None


@dataclass
class Comparison:
    """What two files of one benchmark have in common, and what not.

    Attributes
    ----------
    compared : int
        Figures in both.
    ratios : dict
        By figure, how many times as slow it is now: of times and rates.
    different : dict
        By figure that has to be equal, or that is a time and there no more, what was recorded and
        what is there now; `None` where there is none.
    judged : int
        Bounds of the record that were judged again.
    """

    compared: int = 0
    judged: int = 0
    ratios: dict[str, float] = field(default_factory=dict)
    different: dict[str, tuple[Value, Value]] = field(default_factory=dict)

    @property
    def median_ratio(self) -> float | None:
        """The median of `ratios`; None without any."""
        return statistics.median(self.ratios.values()) if self.ratios else None

    @property
    def worst(self) -> tuple[str, float] | None:
        """The figure that became slowest, and its ratio; None without any."""
        return max(self.ratios.items(), key=lambda one: one[1]) if self.ratios else None

    @property
    def farthest(self) -> tuple[str, float] | None:
        """Of `different`, the figure that changed most, and what it is over what it was."""
        changes = {
            name: now / was
            for name, (was, now) in self.different.items()
            if _is_positive(was) and _is_positive(now)
        }
        if not changes:
            return None
        return max(changes.items(), key=lambda one: max(one[1], 1 / one[1]))

    def slower(self, allowance: float) -> dict[str, float]:
        """Return the figures that are more than `allowance` times as slow."""
        return {name: ratio for name, ratio in self.ratios.items() if ratio > allowance}


def compared(
    recorded: Mapping[str, Any],
    now: Mapping[str, Any],
    *,
    clocked: bool,
    clocked_parts: Sequence[str] = (),
) -> Comparison:
    """Compare two result files.

    Parameters
    ----------
    recorded, now
        What the files hold. Their environments are not compared.
    clocked
        Whether figures are times, which are compared by ratios; otherwise they have to be equal.
    clocked_parts
        Top-level parts of which that holds although the rest has to be equal.
    """
    result = Comparison()
    for part in sorted({*recorded, *now} - _NOT_FIGURES):
        if clocked or part in clocked_parts:
            _compare_times(part, recorded.get(part), now.get(part), result)
        else:
            _compare_exactly(part, recorded.get(part), now.get(part), result)
    return result


def missed(result: Mapping[str, Any]) -> set[str]:
    """Return the names of the bounds that a result file says are missed."""
    verdicts = result.get("verdicts", {})
    if not isinstance(verdicts, Mapping):
        return set()
    return {
        name
        for name, verdict in verdicts.items()
        if verdict is False or (isinstance(verdict, Mapping) and verdict.get("reached") is False)
    }


def _is_positive(value: Value) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _compare_exactly(part: str, recorded: Any, now: Any, result: Comparison) -> None:
    before, after = (dict(_leaves(part, value)) for value in (recorded, now))
    for name in sorted({*before, *after}):
        result.compared += 1
        was, is_now = before.get(name), after.get(name)
        if name not in before or name not in after or was != is_now:
            result.different[name] = (was, is_now)


def _compare_times(part: str, recorded: Any, now: Any, result: Comparison) -> None:
    if part == "verdicts":  # made of the other figures; the script judges them itself
        _compare_judged(recorded, now, result)
        return
    before, after = (dict(_leaves(part, _medians(value))) for value in (recorded, now))
    for name, was in sorted(before.items()):
        is_now = after.get(name)
        words = name.split("/")
        a_rate = any(map(_RATE.search, words))
        if not (a_rate or any(map(_TIME.search, words))) or not _is_positive(was):
            continue
        if _is_positive(is_now):
            result.compared += 1
            result.ratios[name] = was / is_now if a_rate else is_now / was
        elif name not in after or is_now is None:
            result.different[name] = (was, None)


def _compare_judged(recorded: Any, now: Any, result: Comparison) -> None:
    """Find bounds that are judged no more; of those that are, `missed` says what came of them."""
    before, after = (
        set(value) if isinstance(value, Mapping) else set() for value in (recorded, now)
    )
    result.judged += len(before & after)
    for name in sorted(before - after):
        result.different[f"verdicts/{name}"] = ("judged", None)


def _medians(value: Any) -> Any:
    """Return `value` with lists of numbers, which are repeated measurements, as their medians."""
    if isinstance(value, Mapping):
        return {name: _medians(one) for name, one in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(one, int | float) for one in value):
            return statistics.median(value)
        return [_medians(one) for one in value]
    return value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Value]]:
    """Yield names and values of all that is not made of others; rows are named."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(f"{name}/{key}", one)
    elif isinstance(value, list):
        for label, one in _labelled(value):
            yield from _leaves(f"{name}/{label}", one)
    else:
        yield name, value


def _labelled(rows: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield rows with what tells them apart: words and settings; a number where that fails."""
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        words: list[str] = []
        if isinstance(row, Mapping):
            if row.get("aggregate_name") in _SPREADS:
                continue
            words = [one for key, one in row.items() if isinstance(one, str) and key not in _ORIGIN]
            words += [f"{key} {row[key]}" for key in _SETTINGS if key in row]
        label = " ".join(words).replace("/", "|") if words else str(number)
        seen[label] = seen.get(label, 0) + 1
        yield label if seen[label] == 1 else f"{label} {seen[label]}", row
