# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as text for a terminal: cards in a table, then answers and settings for each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rmm_uvm.planner.outcome import Card, PlanFigures, Settings, Variant
from rmm_uvm.planner.views.headline import helps_text
from rmm_uvm.planner.views.table import table
from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.report import words
from rmm_uvm.report.text import WIDTH
from rmm_uvm.support.units import format_bytes

__all__ = [
    "called",
    "evicting_stages",
    "opening",
    "setting_rows",
    "text",
]

_MOST_STAGES = 3
_TRAILING_SECONDS = 0.1  # less after the last event is the end of watching


def text(plan: PlanFigures, width: int = WIDTH) -> str:
    """Return the text; its first line says that all of it is simulated, and on which machine.

    Parameters
    ----------
    plan : PlanFigures
        What to show.
    width : int
        Columns of the terminal; tables keep theirs.
    """
    parts = [
        *(line for part in opening(plan) for line in _opening_lines(plan, part, width)),
        "",
        *table(plan),
        "",
        *_wrapped(helps_text(plan), width),
        *_evictions(plan, width),
    ]
    for card in plan.cards:
        parts += ["", *_card(card, width)]
    return "\n".join(
        [*parts, "", "How to read this", *(_bullet(note, width) for note in plan.notes)]
    )


def opening(plan: PlanFigures) -> tuple[str, ...]:
    """Return the lines with which every form of a plan begins."""
    workload, machine = plan.workload, plan.machine
    where = words.plain_name(workload.device_name, 60) if workload.device_name else "unknown"
    allocations = "allocation" if workload.allocations == 1 else "allocations"
    each = f" by each of {plan.workers} workers" if plan.workers > 1 else ""
    return (
        f"Simulated on {words.plain_name(str(machine))}. Nothing of this ran on a GPU.",
        f"machine: {words.plain_name(machine.gpu, 60)}, {words.plain_name(machine.link, 60)}",
        _source(plan),
        *_ends_early(plan),
        f"{workload.allocations:,} {allocations} in {_duration(workload)}{each}, "
        f"recorded on: {where}",
        f"peak {format_bytes(workload.peak_live_bytes)}, working set "
        f"{format_bytes(plan.working_set.nbytes)} in "
        f"{words.clock_text(plan.working_set.window_seconds)}; with room for everything "
        f"{words.clock_text(plan.fitting_seconds)}",
    )


def _duration(workload: Workload) -> str:
    """Return how long it took, and of how long a recording where that went on.

    Predicted times rest on the first: what comes after the last event may be waiting.
    """
    told = words.clock_text(workload.seconds)
    whole = words.clock_text(workload.whole_seconds)
    if workload.trailing_seconds < _TRAILING_SECONDS or whole == told:
        return told
    return f"{told} of a recording of {whole}"


def _opening_lines(plan: PlanFigures, part: str, width: int) -> Sequence[str]:
    # A path stays as it is, with all its spaces.
    return [part] if part == _source(plan) else _wrapped(part, width)


def _source(plan: PlanFigures) -> str:
    return words.plain_name(str(plan.workload.source), 200)


def _ends_early(plan: PlanFigures) -> Iterable[str]:
    if plan.workload.cut_off:
        yield f"The recording ends early: {words.plain_name(plan.workload.cut_off, 200)}."


def called(settings: Settings) -> str:
    """Return the call that makes the settings, as Python."""
    keywords = ", ".join(f"{name}={value!r}" for name, value in _readable(settings))
    return f"rmm_uvm.reinitialize({keywords})"


def setting_rows(settings: Settings) -> list[tuple[str, str, str]]:
    """Return name, value and reason of every setting."""
    values = {
        "pool sizes": "left out",
        "initial_pool_size": format_bytes(settings.initial_pool_bytes or 0),
        "maximum_pool_size": format_bytes(settings.maximum_pool_bytes or 0),
        "prefetch": settings.prefetch,
        "eviction": settings.eviction or "",
        "device budget": format_bytes(settings.device_budget_bytes),
        "ipc_pool_size": format_bytes(settings.ipc_pool_bytes),
        "host_sharers": str(settings.host_sharers),
        "uvm_perf_prefetch_threshold": f"{settings.driver_prefetch_threshold} %",
        "parts": str(settings.parts),
    }
    return [(name, values[name], reason) for name, reason in settings.reasons]


def evicting_stages(variant: Variant) -> list[tuple[str, int]]:
    """Return stages, or size classes, and what they evicted, the most first."""
    found = [(one.name, one.evicted_bytes) for one in variant.result.stages if one.evicted_bytes]
    return sorted(found, key=lambda row: -row[1])


def _evictions(plan: PlanFigures, width: int) -> list[str]:
    kind = "size of allocation" if plan.by_size_class else "stage"
    lines: list[str] = []
    for card in plan.cards:
        stages = evicting_stages(card.defaults)
        if not stages:
            continue
        shown = [
            f"{words.plain_name(name, 40) if name else 'outside any'} {format_bytes(nbytes)}"
            for name, nbytes in stages[:_MOST_STAGES]
        ]
        more = f" and {len(stages) - _MOST_STAGES} more" if len(stages) > _MOST_STAGES else ""
        lines += _wrapped(f"Evicted on {_size(card)}, by {kind}: {', '.join(shown)}{more}", width)
    return lines


def _card(card: Card, width: int) -> Iterable[str]:
    yield f"On {_size(card)}"
    for answer in (card.splitting, card.more_data):
        yield from _wrapped(f"{answer.question} {answer.text}", width, "  ")
    yield from _call_lines(card.settings, width)
    for name, value, reason in setting_rows(card.settings):
        yield from _wrapped(f"{name} {value}: {reason}", width, "    ")


def _call_lines(settings: Settings, width: int) -> Iterable[str]:
    """Yield the call, in several lines where one is too long; Python reads them all the same."""
    line = f"  {called(settings)}"
    if len(line) <= width:
        yield line
        return
    yield "  rmm_uvm.reinitialize("
    yield from (f"      {name}={value!r}," for name, value in _readable(settings))
    yield "  )"


def _readable(settings: Settings) -> Iterable[tuple[str, object]]:
    """Yield keywords with sizes as people write them, where that is exact."""
    for name, value in settings.keywords().items():
        if name.endswith(("_size", "_budget")) and value % (1 << 20) == 0:
            yield name, f"{value >> 20}MiB"
        else:
            yield name, value


def _wrapped(line: str, width: int, indent: str = "") -> Sequence[str]:
    # Names may hold spaces, but a hyphen in them is no place to break.
    return textwrap.wrap(
        line,
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _bullet(note: str, width: int) -> str:
    return "\n".join(_wrapped(f"- {note}", width))


def _size(card: Card) -> str:
    return format_bytes(card.device_bytes)
