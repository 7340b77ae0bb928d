# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The table of a plan for a terminal of 80 columns: a row for each card and way to run."""

from __future__ import annotations

from rmm_uvm.planner.outcome import Card, PlanFigures, Variant
from rmm_uvm.planner.request import options_text
from rmm_uvm.report.words import clock_text
from rmm_uvm.support.units import format_bytes

__all__ = ["short_size", "table"]

_HEADERS = (
    ("", "", "working", "", "times", "to", "to", "", "host"),
    ("card", "factor", "set", "time", "fitting", "device", "host", "evicted", "memory"),
)
_OF_THE_CARD = 3  # cells at the begin that are the same for all ways to run
_ADVISED, _OTHER = "* ", "  "
_MORE = "    "  # before what a name continues with


def table(plan: PlanFigures) -> list[str]:
    """Return the lines; what is advised has a star, and the defaults stand beside the card."""
    many = any(len(card.variants) > 1 for card in plan.cards)
    rows: list[tuple[str, ...]] = list(_HEADERS)
    names = [""] * len(rows)
    for card in plan.cards:
        for variant in card.variants:
            # Where everything runs out of memory nothing is advised.
            chosen = variant is card.advised and variant.slowdown is not None
            mark = (_ADVISED if chosen else _OTHER) if many else ""
            first = variant is card.defaults
            rows.append(_row(card, variant, plan.workers, mark if first else None))
            names.append("" if first else mark + options_text(variant.options))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    head_width = sum(widths[:_OF_THE_CARD]) + _OF_THE_CARD - 1
    lines = []
    for row, name in zip(rows, names, strict=True):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        begin, *others = _broken(name, head_width)
        if name:
            cells = [begin.ljust(head_width), *cells[_OF_THE_CARD:]]
        lines += [" ".join(cells).rstrip(), *others]
    if many:
        lines.append("* advised. Beside a card: with the default settings; below: in other ways.")
    return lines


def short_size(nbytes: int) -> str:
    """Return a size of 8 characters at most, with three digits or four.

    Examples
    --------
    >>> short_size(0), short_size(704 << 20), short_size(1413 << 20), short_size(1023 << 30)
    ('0 B', '704 MiB', '1.38 GiB', '1023 GiB')
    """
    number, _, unit = format_bytes(nbytes).partition(" ")
    if "." not in number or abs(float(number)) < 10:
        return f"{number} {unit}"
    return f"{float(number):.{1 if abs(float(number)) < 99.95 else 0}f} {unit}"


def _row(card: Card, variant: Variant, workers: int, mark: str | None) -> tuple[str, ...]:
    result = variant.result
    head = ("",) * _OF_THE_CARD
    if mark is not None:
        head = (
            mark + format_bytes(card.device_bytes).rjust(10),
            _factor(card.oversubscription_factor),
            _factor(card.working_set_factor),
        )
    time = ("out of", "memory")
    if variant.predicted_seconds is not None and variant.slowdown is not None:
        time = (clock_text(variant.predicted_seconds), _factor(variant.slowdown))
    moved = (
        result.to_device_bytes,
        result.to_host_bytes,
        result.evicted_bytes,
        result.host_page_bytes * workers,
    )
    return (*head, *time, *map(short_size, moved))


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 1000 else f"{value:.0f}"


def _broken(name: str, width: int) -> list[str]:
    """Return a name in lines of that many characters, broken between its options alone."""
    first, *others = name.split(", ")
    lines = [first]
    for part in others:
        if len(lines[-1]) + len(part) + 3 <= width:  # a comma, a space, and maybe a comma more
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(_MORE + part)
    return lines
