# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/training.md that is computed from what caching.py measured."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part
from benchmarks.training.caching_file import LABELS, labels_of
from benchmarks.training.caching_verdicts import (
    CASES,
    FACTORS,
    FITS,
    NATIVE,
    OFF,
    ON,
    OURS,
    Case,
    case_of,
    not_measured,
    not_seen,
    ratios_of,
    step_seconds,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"
RESULT = Path(__file__).parents[1] / "results" / "torch_caching.json"
BEGIN = "<!-- begin: written by benchmarks/training/caching.py --write -->"
END = "<!-- end -->"
_MIB, _GIB = 1 << 20, 1 << 30
_MANY = 100  # ratios from there on have no decimals
_WAYS = (ON, OURS, OFF)
_LABEL_WORDS = {name: name.replace("_", " ") for name in LABELS} | {"device": "card"}
Row = Mapping[str, Any]
Rows = Mapping[tuple[str, str, float, str], Row]  # by model, dtype, factor and way


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return means over the cases, what is missing, and tables with a line for each case."""
    rows = [row for row in result["rows"] if "failed" not in row]
    failed = [row for row in result["rows"] if "failed" in row]
    at = {(*case_of(row), row["factor"], row["way"]): row for row in rows}
    parts = [_summary(at), _counts(at), _as_published(result["rows"]), _missing(result["rows"])]
    if failed:
        missing = [f"{row['model']} {row['dtype']}, {row['way']}" for row in failed]
        parts.append(f"Not measured to the end: {'; '.join(missing)}.")
    parts += [_calls(rows, result.get("environment", {})), _sizes(at, result["kernels"])]
    parts += [_table(at, title, figure) for title, figure in _FIGURES.items()]
    return "\n\n".join(part for part in parts if part)


def _faults(row: Row) -> int | None:
    return None if row["gpu_faults"] is None else max(row["gpu_faults"], 1)


def _moved_bytes(row: Row) -> float:
    return max(float(row["to_device_bytes"] + row["to_host_bytes"]), 1.0)


def _summary(at: Rows) -> str:
    lines = [
        "Geometric means over the cases, each a model in one type:",
        "",
        "| peak / budget | cases | faults, off / on | bytes moved, on / off | time, off / on "
        "| time, on / ours |",
        "|--:|--:|--:|--:|--:|--:|",
    ]

    def mean(factor: float, figure: Callable[[Row], Any], way: str, other: str) -> str:
        pairs = [
            (figure(row), figure(at[*case, factor, other]))
            for (*case, of_row, of_way), row in at.items()
            if (of_row, of_way) == (factor, way) and (*case, factor, other) in at
        ]
        known = [(max(a, 1e-9), max(b, 1e-9)) for a, b in pairs if None not in (a, b)]
        if not known:
            return "not known"
        found = statistics.geometric_mean(a / b for a, b in known)
        return f"{found:.2f}" if found < _MANY else f"{found:,.0f}"

    for factor in sorted({of_row for _, _, of_row, _ in at}):
        compared = {
            (model, dtype)
            for model, dtype, of_row, way in at
            if (of_row, way) == (factor, ON) and (model, dtype, factor, OFF) in at
        }
        columns = [
            str(len(compared)),
            mean(factor, _faults, OFF, ON),
            # What fits does not move.
            mean(factor, _moved_bytes, ON, OFF) if factor else "",
            mean(factor, step_seconds, OFF, ON),
            mean(factor, step_seconds, ON, OURS),
        ]
        lines.append(f"| {_factor(factor)} | {' | '.join(columns)} |")
    return "\n".join(lines)


def _counts(at: Rows) -> str:
    """Return where a ratio of faults is a count of them."""
    without = Counter(
        factor
        for (*case, factor, way), row in at.items()
        if way == ON and row["gpu_faults"] == 0 and (*case, factor, OFF) in at
    )
    if not without:
        return ""
    told = ", ".join(f"{count} {_at(factor)}" for factor, count in sorted(without.items()))
    return (
        f"Cases without a page fault with caching: {told}. None counts as one there, so that the "
        "ratio of such a case is the number of its faults without caching."
    )


def _as_published(rows: Sequence[Row]) -> str:
    """Return in how many cases it is not, and which."""
    ratios = ratios_of(rows)
    if not ratios:
        return ""
    count = sum(len(one) for one in ratios.values())
    others: dict[tuple[str, float], list[str]] = {}
    for one in not_seen(rows):
        ratio = ratios[*case_of(one), one["factor"]][one["what"]]
        told = f"{one['model']} {one['dtype']} ({ratio:.2f})"
        others.setdefault((one["what"], one["factor"]), []).append(told)
    words = {"faults": "faults, off / on,", "bytes": "bytes, on / off,"}
    found = [
        f"{words[what]} {_at(at)}: {', '.join(others[what, at])}" for what, at in sorted(others)
    ]
    number = sum(len(there) for there in others.values())
    told = f"{number} {'is' if number == 1 else 'are'} not, {'; '.join(found)}"
    return (
        f"More faults without caching, and more bytes with it past the edge, are published: of "
        f"{count} comparisons here {told if number else 'all are as published'}."
    )


def _missing(rows: Sequence[Row]) -> str:
    """Return which cases are not measured yet, by the factors, and the one way, that they lack."""
    there = {(*case_of(row), row["way"], row["factor"]) for row in rows if "failed" not in row}
    lacking: dict[tuple[tuple[float, ...], str], list[Case]] = {}
    for case, factors in not_measured(rows).items():
        ways = [way for way in _WAYS if any((*case, way, one) not in there for one in factors)]
        one_way = f', the way "{ways[0]}"' if len(ways) == 1 else ""
        lacking.setdefault((tuple(factors), one_way), []).append(case)
    if not lacking:
        return f"All {len(CASES)} cases are measured in every way at each factor."
    told = [
        f"{'at all' if factors == FACTORS else _all_at(factors)}{one_way}: {_names(cases)}"
        for (factors, one_way), cases in lacking.items()
    ]
    return f"Not measured yet {'; '.join(told)}."


def _names(cases: Iterable[Case]) -> str:
    """Return cases by model, with the types of each."""
    dtypes: dict[str, list[str]] = {}
    for model, dtype in cases:
        dtypes.setdefault(model, []).append(dtype)
    return ", ".join(f"{model} {' and '.join(there)}" for model, there in dtypes.items())


def _calls(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """Return what was measured together, by commit and by what else differs of its machine."""
    own = labels_of(machine)
    calls: dict[tuple[str, ...], dict[Case, set[float]]] = {}
    for row in rows:
        call = (row.get("commit", ""), *(row.get(name, own[name]) for name in LABELS))
        calls.setdefault(call, {}).setdefault(case_of(row), set()).add(row["factor"])
    if len(calls) < 2:
        return ""
    count = Counter(case for cases in calls.values() for case in cases)
    _, *differ = [len(set(values)) > 1 for values in zip(*calls, strict=True)]
    told = []
    for (commit, *values), cases in calls.items():
        words = zip(LABELS, values, differ, strict=True)
        machine_words = [
            f"{_LABEL_WORDS[name]} {value or 'not known'}"
            for name, value, told_of in words
            if told_of
        ]
        # Of a case that several calls measured, which factors this one did.
        parts: dict[tuple[float, ...], list[Case]] = {}
        for case, factors in cases.items():
            parts.setdefault(tuple(sorted(factors)) if count[case] > 1 else (), []).append(case)
        names = [
            f"{_names(them)}{f' ({_all_at(factors)})' if factors else ''}"
            for factors, them in parts.items()
        ]
        where = f" ({', '.join(machine_words)})" if machine_words else ""
        told.append(f"at {commit}{where} {', '.join(names)}")
    return f"Measured in several calls, perhaps on other hosts, by commit: {'; '.join(told)}."


def _sizes(at: Rows, kernels: Sequence[Row]) -> str:
    """Return what a kernel uses of each case, beside its footprint."""
    used = {(*case_of(one), one["batch"]): one for one in kernels}
    batches = {case_of(one): one["batch"] for one in kernels}
    batches |= {(model, dtype): row["batch"] for (model, dtype, *_), row in at.items()}
    lines = [
        "What one kernel of a step uses, beside the footprint: the most memory that tensors take, "
        "as recorded and as measured; held is what the allocator took where everything fits, "
        "torch's own / on / off:",
        "",
        "| model | batch | kernels | one uses, median, MiB | mean, MiB | at most, MiB "
        "| at most / footprint | footprint recorded, GiB | measured, GiB | held, GiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for case in _in_order(batches):
        one = used.get((*case, batches[case]))
        columns = [""] * 6
        if one is not None:
            recorded_bytes = one["recorded_peak_bytes"]
            sizes = ("median_used_bytes", "mean_used_bytes", "most_used_bytes")
            columns = [
                str(one["kernels"]),
                *(_mib(one[name]) for name in sizes),
                f"{one['most_used_bytes'] / recorded_bytes:.0%}",
                f"{recorded_bytes / _GIB:.2f}",
            ]
        native = at.get((*case, FITS, NATIVE))
        measured = "" if native is None else f"{native['peak_bytes'] / _GIB:.2f}"
        held = _cell(at, case, FITS, (NATIVE, ON, OFF), lambda row: _gib(row["reserved_bytes"]))
        columns = [str(batches[case]), *columns, measured, held]
        lines.append(f"| {' '.join(case)} | {' | '.join(columns)} |")
    return "\n".join(lines)


def _table(at: Rows, title: str, figure: Callable[[Row], str]) -> str:
    """Return a line for each measured case, on / ours / off at each factor."""
    factors = sorted({factor for _, _, factor, _ in at})
    if title in _PAST_THE_EDGE:
        factors = [factor for factor in factors if factor != FITS]
    own = ["torch's own memory"] if title == _TIME else []
    lines = [
        f"{title}: on / ours / off:",
        "",
        f"| model | {' | '.join([*own, *map(_factor, factors)])} |",
        f"|---|{'--:|' * len(own)}{'---|' * len(factors)}",
    ]
    for case in _in_order((model, dtype) for model, dtype, *_ in at):
        cells = [_cell(at, case, FITS, [NATIVE], figure) for _ in own]
        cells += [_cell(at, case, factor, _WAYS, figure) for factor in factors]
        lines.append(f"| {' '.join(case)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(
    at: Rows, case: Case, factor: float, ways: Sequence[str], figure: Callable[[Row], str]
) -> str:
    """Return a figure in each way; nothing where none is measured."""
    rows = [at.get((*case, factor, way)) for way in ways]
    if not any(rows):
        return ""
    return " / ".join("-" if row is None else figure(row) for row in rows)


def _in_order(cases: Iterable[Case]) -> list[Case]:
    """Return cases once each: as the models are listed, and what is not a model of ours last."""
    order = {case: number for number, case in enumerate(CASES)}
    return sorted(dict.fromkeys(cases), key=lambda case: order.get(case, len(order)))


def _at(factor: float) -> str:
    return f"at {factor:g}" if factor else "where everything fits"


def _all_at(factors: Iterable[float]) -> str:
    return " and ".join(map(_at, factors))


def _factor(factor: float) -> str:
    return f"{factor:g}" if factor else "fits"


def _mib(nbytes: float) -> str:
    return f"{nbytes / _MIB:.1f}" if nbytes < 10 * _MIB else f"{nbytes / _MIB:.0f}"


def _gib(nbytes: float) -> str:
    return f"{nbytes / _GIB:.2f}"


_BYTES = "MiB that a step moves, to the device and to the host together"
_EVICTIONS = "Evictions in a step"
_TIME = "Milliseconds a step"
_FIGURES: dict[str, Callable[[Row], str]] = {
    _TIME: lambda row: f"{step_seconds(row) * 1e3:.0f}",
    "Page faults of a step": lambda row: (
        "not known" if row["gpu_faults"] is None else f"{row['gpu_faults']:,}"
    ),
    _BYTES: lambda row: f"{(row['to_device_bytes'] + row['to_host_bytes']) / _MIB:.0f}",
    _EVICTIONS: lambda row: f"{row['evictions']:.0f}",
}
_PAST_THE_EDGE = (_BYTES, _EVICTIONS)
