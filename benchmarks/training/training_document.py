# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/training.md that is computed from the result file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part
from benchmarks.training.training_verdicts import (
    BY_HAND,
    FITS_BOUND,
    LINK_BOUND,
    LINK_FACTORS,
    SPEED_UPS,
    TRANSFORMERS,
    Case,
    Row,
    Table,
    all_verdicts,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"
RESULT = Path(__file__).parents[1] / "results" / "torch_training.json"
BEGIN = "<!-- begin: written by benchmarks/training/past_the_edge.py --write -->"
END = "<!-- end: torch_training -->"
_GIB = 1 << 30


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return what it comes to, a line for each model and type, and what was missed."""
    table = Table(result["rows"])
    parts = [
        _means(table),
        _times(table),
        _fits(Table(result.get("fits", []))),
        _copies(table),
        _bounds(table),
        _by_hand(table),
        _losses(result["losses"]),
        _missed(all_verdicts(result)),
    ]
    return "\n\n".join(part for part in parts if part)


def _means(table: Table) -> str:
    lines = [
        f"| {factor:g} | {len(there)} | {statistics.geometric_mean(there):.1f} "
        f"| {_bound(SPEED_UPS.get(factor))} |"
        for factor in table.factors
        if (there := table.speed_ups(factor))
    ]
    *most, last = table.ours_there
    title = (
        f"Fault-driven over the {_best(table)} of {', '.join(most)} and {last}, geometric mean of "
        "models and types:"
    )
    return _table(title, "peak / budget | how many | mean | at least", lines)


def _times(table: Table) -> str:
    """Return milliseconds of a step in each way, and how many times as fast ours is."""
    factors = table.factors
    title = (
        f"Milliseconds a step, {' / '.join(('fault-driven', *table.ours_there))}, and in brackets "
        f"fault-driven over the {_best(table)} one. "
        "Computing is a step with torch's own allocator, fits the shortest step on managed "
        "memory that fits over the shortest of that:"
    )
    head = ["model", "type", "batch", "peak, GiB", "computing, ms", "fits"]
    lines = []
    for case in table.cases:
        native = table.row(case, 0.0, "native")
        facts = ["-"] * 4
        if native is not None:
            facts = [
                str(native["batch"]),
                f"{native['peak_bytes'] / _GIB:.2f}",
                _milliseconds(native),
                _ratio(table.fits(case)),
            ]
        cells = (_cell(table, case, factor) for factor in factors)
        lines.append(f"| {' | '.join((*case, *facts, *cells))} |")
    return _table(title, " | ".join([*head, *(f"{factor:g}" for factor in factors)]), lines, 2)


def _fits(table: Table) -> str:
    """Return what managed memory costs where the device sets the pace."""
    lines = []
    for case in table.cases:
        native, managed = (table.row(case, 0.0, way) for way in ("native", "managed"))
        if native is None or managed is None:
            continue
        shortest = (f"{row['least_seconds'] * 1e3:.1f}" for row in (native, managed))
        size = f"{native['batch']} | {native['peak_bytes'] / _GIB:.2f}"
        lines.append(
            f"| {' | '.join(case)} | {size} | {' | '.join(shortest)} | {_ratio(table.fits(case))} |"
        )
    title = (
        "Everything fits, at the full batch: the shortest step with torch's own allocator and on "
        f"managed memory. Their ratio has to be at most {FITS_BOUND:g}. In the table above the "
        "host's launches set the pace of short steps, which differs by more:"
    )
    head = "model | type | batch | peak, GiB | torch's own, ms | managed, ms | ratio"
    return _table(title, head, lines, 2)


def _cell(table: Table, case: Case, factor: float) -> str:
    ways = ("fault-driven", *table.ours_there)
    times = " / ".join(_milliseconds(table.row(case, factor, way)) for way in ways)
    return f"{times} ({_ratio(table.speed_up(case, factor), 1)})"


def _copies(table: Table) -> str:
    """Return what copies take over lazy, which migrates what they copy."""
    lines = []
    for factor in table.factors:
        ratios = table.copies_over_lazy(factor)
        if not ratios:
            continue
        least, most = (which(ratios, key=ratios.__getitem__) for which in (min, max))
        cells = [
            f"{sum(ratio < 1 for ratio in ratios.values())} of {len(ratios)}",
            f"{statistics.geometric_mean(ratios.values()):.2f}",
            *(f"{ratios[case]:.2f} ({' '.join(case)})" for case in (least, most)),
        ]
        lines.append(f"| {factor:g} | {' | '.join(cells)} |")
    title = (
        "Copy over lazy: how many of models and types are faster with copies, and ratios of time:"
    )
    return _table(title, "peak / budget | faster | geometric mean | least | most", lines)


def _bounds(table: Table) -> str:
    """Return ours beside computing and what the link needs, for transformers."""
    lines = []
    for case in table.cases:
        for factor in LINK_FACTORS if case[0] in TRANSFORMERS else ():
            row, ours = table.row(case, factor, "lazy"), table.ours(case, factor)
            if row is None or ours is None:
                continue
            compute, link = row["compute_seconds"], row["link_seconds"]
            lines.append(
                f"| {' | '.join(case)} | {factor:g} | {ours * 1e3:.0f} | {compute * 1e3:.0f} "
                f"| {link * 1e3:.0f} | {ours / max(compute, link):.2f} |"
            )
    title = (
        "Transformers against the larger of two times: computing, and the link, for what of the "
        "peak does not fit, at its rate while pieces go both ways. Dead memory need not move, so "
        f"less is possible. Ours over the larger one has to be at most {LINK_BOUND:g}:"
    )
    head = "model | type | peak / budget | ours, ms | computing, ms | link, ms | ours / the larger"
    return _table(title, head, lines, 2)


def _by_hand(table: Table) -> str:
    """Return what programs do by hand instead, and ours in the memory that this needed."""
    lines = []
    for case in table.cases:
        for way in BY_HAND:
            row, ours = table.row(case, 0.0, way), table.in_memory_of(case, way)
            if row is None:
                continue
            share = None if ours is None else ours / row["seconds"]
            ours_text = "-" if ours is None else f"{ours * 1e3:.0f}"
            lines.append(
                f"| {' | '.join(case)} | {way} | {_milliseconds(row)} "
                f"| {row['peak_bytes'] / _GIB:.2f} | {ours_text} | {_ratio(share)} |"
            )
    title = (
        "What a program does by hand, with torch's own allocator, and ours with as much "
        "memory as that needed. Against `save_on_cpu` it has to be at most 1:"
    )
    head = "model | type | by hand | ms | peak, GiB | ours, ms | ours / by hand"
    return _table(title, head, lines, 3)


def _losses(losses: Sequence[Row]) -> str:
    lines = [
        f"| {row['model']} | {row['dtype']} | {row['batch']} | {row['steps']} "
        f"| {row['equal_steps']} | {row.get('equal_steps_of_two_that_fit', '-')} "
        f"| {', '.join(row.get('operators', []))} |"
        for row in sorted(losses, key=lambda row: (row["model"], row["dtype"]))
    ]
    factors = sorted({row["factor"] for row in losses})
    title = (
        f"Losses of steps at {', '.join(f'{factor:g}' for factor in factors)} times the budget, "
        "with deterministic kernels. Equal: from the first step on and to the bit, ours and a run "
        "that fits; and two runs that fit. Where an operator has no deterministic kernel, theirs "
        "may differ, too, and ours have to be equal for as long as theirs:"
    )
    head = "model | type | batch | steps | equal | two that fit | no deterministic kernel"
    return _table(title, head, lines, 2)


def _missed(verdicts: Mapping[str, Any]) -> str:
    missed = [f"- {name}: {_found(one)}" for name, one in verdicts.items() if not one["reached"]]
    return "\n".join(["Missed:", "", *missed]) if missed else "Every bound is reached."


def _found(verdict: Mapping[str, Any]) -> str:
    """Return what was found beside its bound; of what failed, the reason."""
    value = verdict.get("ratio", verdict.get("value"))
    if isinstance(value, str):
        return f"no, {value}"
    at_most, at_least = verdict.get("must_be_at_most"), verdict.get("must_be_at_least")
    bound = f"at most {at_most:g}" if at_most is not None else f"at least {at_least:g}"
    return f"{value:.3g}, to be {bound}"


def _table(title: str, head: str, lines: Sequence[str], names: int = 0) -> str:
    """Return a table under its title, or nothing where it has no lines; names come first."""
    if not lines:
        return ""
    columns = head.count("|") + 1
    rule = "|".join(["---"] * names + ["--:"] * (columns - names))
    return "\n".join([title, "", f"| {head} |", f"|{rule}|", *lines])


def _best(table: Table) -> str:
    return "better" if len(table.ours_there) == 2 else "best"


def _milliseconds(row: Row | None) -> str:
    return "-" if row is None else f"{row['seconds'] * 1e3:.0f}"


def _ratio(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _bound(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
