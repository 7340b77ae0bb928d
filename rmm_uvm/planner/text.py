# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plan as text for a terminal: cards in a table, then answers and settings for each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rmm_uvm.planner.headline import helps_text
from rmm_uvm.planner.outcome import Card, Plan, Settings, Variant
from rmm_uvm.planner.request import options_text
from rmm_uvm.report import words
from rmm_uvm.units import format_bytes

__all__ = [
    "called",
    "evicting_stages",
    "opening",
    "setting_rows",
    "text",
]

_WIDTH = 100
_MOST_STAGES = 3
_HEADERS = (
    "card", "factor", "working set", "time", "x fitting", "to device", "to host", "evicted",
    "host memory",
)  # fmt: skip


def text(plan: Plan) -> str:
    """Return the text; its first line says that all of it is simulated, and on which machine."""
    parts = [
        *opening(plan),
        "",
        *_table(plan),
        "",
        *_wrapped(helps_text(plan)),
        *_evictions(plan),
    ]
    for card in plan.cards:
        parts += ["", *_card(card)]
    return "\n".join([*parts, "", "How to read this", *(_bullet(note) for note in plan.notes)])


def opening(plan: Plan) -> tuple[str, ...]:
    """Return the lines with which every form of a plan begins."""
    workload, machine = plan.workload, plan.machine
    where = words.plain_name(workload.device_name, 60) if workload.device_name else "unknown"
    each = f" by each of {plan.workers} workers" if plan.workers > 1 else ""
    return (
        f"Simulated on {words.plain_name(str(machine))}. Nothing of this ran on a GPU.",
        f"machine: {words.plain_name(machine.gpu, 60)}, {words.plain_name(machine.link, 60)}",
        f"{words.plain_name(str(workload.source), 200)}",
        f"{workload.allocations:,} allocations in {words.clock_text(workload.seconds)}{each}, "
        f"recorded on: {where}",
        f"peak {format_bytes(workload.peak_live_bytes)}, working set "
        f"{format_bytes(plan.working_set.nbytes)} in "
        f"{words.clock_text(plan.working_set.window_seconds)}; with room for everything "
        f"{words.clock_text(plan.fitting_seconds)}",
    )


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


def _table(plan: Plan) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEADERS]
    names = [""]
    for card in plan.cards:
        for variant in card.variants:
            first = variant is card.defaults
            rows.append(_row(card, variant, plan.workers, first=first))
            chosen = " <- advised" if variant is card.advised else ""
            names.append(options_text(variant.options) + chosen if len(card.variants) > 1 else "")
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row, name in zip(rows, names, strict=True):
        cells = "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"{cells}  {name}".rstrip())
    return lines


def _row(card: Card, variant: Variant, workers: int, *, first: bool) -> tuple[str, ...]:
    result = variant.result
    head = ("", "", "")
    if first:
        head = (
            _size(card),
            f"{card.oversubscription_factor:.2f}",
            f"{card.working_set_factor:.2f}",
        )
    time = ("no memory", "-")
    if variant.predicted_seconds is not None and variant.slowdown is not None:
        time = (words.clock_text(variant.predicted_seconds), f"{variant.slowdown:.2f}")
    return (
        *head,
        *time,
        format_bytes(result.to_device_bytes),
        format_bytes(result.to_host_bytes),
        format_bytes(result.evicted_bytes),
        format_bytes(result.host_page_bytes * workers),
    )


def _evictions(plan: Plan) -> list[str]:
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
        lines += _wrapped(f"Evicted on {_size(card)}, by {kind}: {', '.join(shown)}{more}")
    return lines


def _card(card: Card) -> Iterable[str]:
    yield f"On {_size(card)}"
    for answer in (card.splitting, card.more_data):
        yield from _wrapped(f"{answer.question} {answer.text}", "  ")
    yield f"  {called(card.settings)}"
    for name, value, reason in setting_rows(card.settings):
        yield from _wrapped(f"{name} {value}: {reason}", "    ")


def _readable(settings: Settings) -> Iterable[tuple[str, object]]:
    """Yield keywords with sizes as people write them, where that is exact."""
    for name, value in settings.keywords().items():
        if name.endswith("_size") and value % (1 << 20) == 0:
            yield name, f"{value >> 20}MiB"
        else:
            yield name, value


def _wrapped(line: str, indent: str = "") -> Sequence[str]:
    # Names may hold spaces, but a hyphen in them is no place to break.
    return textwrap.wrap(
        line,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _bullet(note: str) -> str:
    return "\n".join(_wrapped(f"- {note}"))


def _size(card: Card) -> str:
    return format_bytes(card.device_bytes)
