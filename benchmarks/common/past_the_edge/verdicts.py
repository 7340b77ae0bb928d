# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Decides which runs are results, and says why the others are not.

Figures of rows are bytes; a budget's are the bytes of the budget. Each rule has its bound here.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.common.past_the_edge.rounds import COUNTED_FROM, moment_name

MOST_BEYOND = 0.02  # of the budget
SAME_BYTES = 0.05  # a run and its twin, each way
SAME_BYTES_FLOOR = 0.01  # of the budget: smaller differences are a few blocks that are under way
JUDGES_AGREE = 0.02  # of the budget
LEAST_REPETITIONS = 5
LEAST_STOPS = 5
IN_TURN_SECONDS = 600  # between the beginnings of the runs of one repetition
_JUDGES = {"stops": "the driver's counter", "page_tables": "the page tables"}
_OTHERS_JUDGE = {"device": "the device's free memory"}  # where memory is not managed


@dataclass(frozen=True)
class Verdict:
    """Whether a row is a result.

    Parameters
    ----------
    reasons : sequence of str
        Why it is none; empty where it is one.
    said : sequence of str
        What else has to be known of it.
    """

    reasons: Sequence[str] = ()
    said: Sequence[str] = field(default=())

    @property
    def result(self) -> bool:
        """Whether it is."""
        return not self.reasons

    def as_row(self) -> dict[str, Any]:
        """Return it as a row has it."""
        return {"result": self.result, "reasons": list(self.reasons), "said": list(self.said)}


def counted(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rounds of a run that count."""
    return list(run.get("rounds", ()))[COUNTED_FROM - 1 :]


def moved_alike(run: Mapping[str, Any], twin: Mapping[str, Any], budget_bytes: int) -> bool:
    """Whether a run had moved the same bytes as its twin when that stopped."""
    if "stop" not in twin or "moved_at" not in run:
        return False
    then = run["moved_at"].get(moment_name(twin["moment"]))
    if then is None:
        return False
    return _same_bytes(then, twin["stop"]["moved_bytes"], budget_bytes)


def _same_bytes(moved: Sequence[float], other: Sequence[float], budget_bytes: int) -> bool:
    return all(
        abs(a - b) <= max(SAME_BYTES * max(a, b), SAME_BYTES_FLOOR * budget_bytes)
        for a, b in zip(moved, other, strict=True)
    )


def watched_alike(run: Mapping[str, Any], watched: Mapping[str, Any], budget_bytes: int) -> bool:
    """Whether a run moved the same bytes as the watched one: to each moment, and in what counts."""
    return (
        run.get("moved_at", {}).keys() == watched.get("moved_at", {}).keys()
        and all(
            _same_bytes(moved, watched["moved_at"][moment], budget_bytes)
            for moment, moved in run.get("moved_at", {}).items()
        )
        and _same_bytes(_moved_in_a_round(run), _moved_in_a_round(watched), budget_bytes)
    )


def _moved_in_a_round(run: Mapping[str, Any]) -> list[float]:
    """Return the bytes of a middle round of those that count, to the device and to the host."""
    ways = ("to_device_bytes", "to_host_bytes")
    return [statistics.median(each.get(way, 0) for each in counted(run)) for way in ways]


def side_row(
    side: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    watched: Sequence[Mapping[str, Any]],
    twins: Sequence[Mapping[str, Any]],
    budget_bytes: int,
) -> dict[str, Any]:
    """Return what is known of a side: its figures, what lay beyond the budget, and the verdict.

    Parameters
    ----------
    side : mapping
        ``name``, ``budgeted``, ``fault_driven``.
    runs, watched, twins : sequence of mapping
        Rows of `measure`, with ``repetition``: timed; with a sampler beside, which looked at the
        page tables in place of those of the same repetition; and stopped at a ``moment``. Where
        nothing was watched, timed runs have ``page_tables`` of their own.
    """
    budgeted = bool(side["budgeted"])
    reasons: list[str] = []
    said: list[str] = []
    failures = Counter(each["failed"] for each in (*runs, *watched, *twins) if "failed" in each)
    reasons += [f"{count} processes failed: {why}" for why, count in failures.items()]
    well = [run for run in runs if counted(run)]
    good_twins = [twin for twin in twins if "stop" in twin]
    if budgeted and watched:
        well, differ = _with_page_tables(well, watched, budget_bytes)
        said += differ
    if budgeted:
        twin_of = {twin["repetition"]: twin for twin in good_twins}
        pairs = [(run, twin_of[run["repetition"]]) for run in well if run["repetition"] in twin_of]
        alike = [pair for pair in pairs if moved_alike(*pair, budget_bytes)]
        if len(alike) < len(pairs):
            said.append(
                f"{len(pairs) - len(alike)} of {len(pairs)} runs moved other bytes than their "
                "twins: neither counts"
            )
        well, good_twins = [run for run, _ in alike], [twin for _, twin in alike]
        if len(good_twins) < LEAST_STOPS:
            reasons.append(f"{len(good_twins)} stops count, of at least {LEAST_STOPS}")
    if len(well) < LEAST_REPETITIONS:
        reasons.append(f"{len(well)} repetitions count, of at least {LEAST_REPETITIONS}")
    row: dict[str, Any] = {
        "side": side["name"],
        "repetitions": len(well),
        "counts_of": sorted(run["repetition"] for run in well),
        **_figures(well),
    }
    peaks = [run["page_tables"]["live_peak_bytes"] for run in well if run.get("page_tables")]
    row["factor"] = round(max(filter(None, peaks), default=0) / budget_bytes, 3) or None
    computed = [*well, *(each for each in watched if counted(each))]
    if len({_checksums(run) for run in computed}) > 1:
        reasons.append("checksums of its runs differ")
    if well:
        row["checksums"] = list(_checksums(well[0]))
    if budgeted:
        row["beyond"] = _beyond(well, good_twins, budget_bytes)
        row["counts"] = "average" if side["fault_driven"] else "most"
        reasons += beyond_reasons(row, budget_bytes)
        said += _disagreements(good_twins, well, budget_bytes)
    elif watched:
        row["beyond"] = {"device": _taken_beyond(watched)}
        row["counts"] = "most"
        reasons += beyond_reasons(row, budget_bytes)
    elif side.get("instead"):
        reasons.append("nobody looked at its device memory")
    return {**row, "budgeted": budgeted, **Verdict(reasons, said).as_row()}


def ratio_row(
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    seconds: Mapping[str, Mapping[int, float]],
    budget_bytes: int,
    begun: Mapping[str, Mapping[int, float]],
    by_operation: Mapping[str, Mapping[int, Sequence[float]]] | None = None,
) -> dict[str, Any]:
    """Return the row of a ratio of two sides: the median of the ratios of pairs of a repetition.

    Parameters
    ----------
    one, other : mapping
        Rows of `side_row`.
    seconds : mapping
        By side and repetition, the median of the rounds that count.
    begun : mapping
        By side and repetition, when the run began, in seconds: what was not measured in turn is no
        pair.
    by_operation : mapping, optional
        By side and repetition, the medians of each operation, where these were timed: then the row
        has the geometric means of their ratios, too.
    """
    reasons = [f"{each['side']}: {why}" for each in (one, other) for why in each["reasons"]]
    said = [f"{each['side']}: {what}" for each in (one, other) for what in each["said"]]
    mine, theirs = seconds[one["side"]], seconds[other["side"]]
    both = sorted(set(mine) & set(theirs) & set(one["counts_of"]) & set(other["counts_of"]))
    apart = {each: abs(begun[one["side"]][each] - begun[other["side"]][each]) for each in both}
    if out_of_turn := [each for each in both if apart[each] > IN_TURN_SECONDS]:
        said.append(f"{len(out_of_turn)} pairs were not measured in turn, and do not count")
        both = [each for each in both if each not in out_of_turn]
    computed = [each["checksums"] for each in (one, other) if "checksums" in each]
    if len(computed) == 2 and computed[0] != computed[1]:
        reasons.append("the checksums of both sides differ")
    if len(both) < LEAST_REPETITIONS:
        reasons.append(f"{len(both)} pairs count, of at least {LEAST_REPETITIONS}")
    sides = [each for each in (one, other) if each["budgeted"]]
    if not sides:
        reasons.append("neither side has a budget")
    ratios = [mine[each] / theirs[each] for each in both]
    row: dict[str, Any] = {
        "of": one["side"],
        "over": other["side"],
        "factor": min((each["factor"] for each in sides if each["factor"]), default=None),
        "budget_bytes": budget_bytes,
        "seconds_ratio": round(statistics.median(ratios), 4) if ratios else None,
        "ratios": [round(each, 4) for each in ratios],
        **_of_operations(by_operation or {}, one["side"], other["side"], both),
        "beyond": {
            each["side"]: {"counts": each["counts"], **each["beyond"]}
            for each in (one, other)
            if "beyond" in each
        },
    }
    return {**row, **Verdict(reasons, said).as_row()}


def _of_operations(
    seconds: Mapping[str, Mapping[int, Sequence[float]]],
    one: str,
    other: str,
    repetitions: Sequence[int],
) -> dict[str, Any]:
    """Return the geometric means of what operations of one side take over the same of another."""
    mine, theirs = seconds.get(one, {}), seconds.get(other, {})
    means = [
        statistics.geometric_mean(a / b for a, b in zip(mine[each], theirs[each], strict=True))
        for each in repetitions
        if mine.get(each) and theirs.get(each)
    ]
    if not means:
        return {}
    return {
        "operations_ratio": round(statistics.median(means), 4),
        "operations_ratios": [round(each, 4) for each in means],
    }


def beyond_reasons(row: Mapping[str, Any], budget_bytes: int) -> list[str]:
    """Return why a side held too much, or cannot be said not to have.

    Parameters
    ----------
    row : mapping
        ``beyond``, by judge ``{"most_bytes": ..., "average_bytes": ...}``, and ``counts``: which of
        the two.
    """
    which = f"{row['counts']}_bytes"
    judges = _OTHERS_JUDGE if _OTHERS_JUDGE.keys() & row["beyond"].keys() else _JUDGES
    found = []
    for judge, name in judges.items():
        told = (row["beyond"].get(judge) or {}).get(which)
        if told is None:
            found.append(f"{name} told nothing")
        elif told > MOST_BEYOND * budget_bytes:
            found.append(
                f"{told / budget_bytes:.1%} of the budget lay beyond it, by {name}: "
                f"at most {MOST_BEYOND:.0%} may"
            )
    return found


def _taken_beyond(watched: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what lay beyond where memory is not managed: of the device's free memory."""
    seen = [run["page_tables"]["most_bytes"] for run in watched if run.get("page_tables")]
    return {"most_bytes": max((each for each in seen if each is not None), default=None)}


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """Return whether a row of any benchmark is a result past the edge, and why not.

    Rows of `ratio_row` and `side_row` are judged again by the figures in them. A row of another
    benchmark has at most a manager's own figure of what lay beyond its budget: that can refute it,
    and cannot confirm it. A row whose factor is at most 1, or that has no budget, is not past the
    edge, and nothing speaks against it here.
    """
    if "result" in row:
        reasons = list(row.get("reasons", ()))
        if not reasons and not row["result"]:
            reasons.append("it was recorded as none")
        budget = row.get("budget_bytes")
        sides = row.get("beyond")
        if budget and isinstance(sides, Mapping):
            for name, told in sides.items():
                again = beyond_reasons({"beyond": told, "counts": told["counts"]}, budget)
                texts = [f"{name}: {why}" for why in again]
                reasons += [text for text in texts if text not in reasons]
        return Verdict(reasons, list(row.get("said", ())))
    kept = row.get("residency") or {}
    budget = kept.get("budget_bytes") or row.get("budget_bytes")
    factor = row.get("factor")
    if (factor is not None and factor <= 1) or (factor is None and not budget):
        return Verdict()
    overshoot = kept.get("peak_overshoot_bytes")
    if budget and overshoot is not None and overshoot > MOST_BEYOND * budget:
        return Verdict([f"{overshoot / budget:.1%} of the budget lay beyond it, by its own ledger"])
    return Verdict(["no judge looked at what lay beyond the budget"])


def is_result(row: Mapping[str, Any]) -> bool:
    """Whether a row of a benchmark may be told as a result; `verdict_of` says why not."""
    return verdict_of(row).result


def _with_page_tables(
    runs: Sequence[Mapping[str, Any]], watched: Sequence[Mapping[str, Any]], budget_bytes: int
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the timed runs with what was seen beside their watched ones, and what is to be said.

    A run without a watched one that moved the same bytes does not count.
    """
    of = {each["repetition"]: each for each in watched if counted(each)}
    pairs = [(run, of[run["repetition"]]) for run in runs if run["repetition"] in of]
    alike = [pair for pair in pairs if watched_alike(*pair, budget_bytes)]
    said = []
    if len(pairs) < len(runs):
        said.append(f"{len(runs) - len(pairs)} of {len(runs)} runs have no watched one")
    if len(alike) < len(pairs):
        said.append(
            f"{len(pairs) - len(alike)} of {len(pairs)} runs moved other bytes than their watched "
            "ones: neither counts"
        )
    return [_joined(run, other) for run, other in alike], said


def _joined(run: Mapping[str, Any], watched: Mapping[str, Any]) -> dict[str, Any]:
    """Return a timed run with what was seen beside the watched one, and the larger rest beside."""
    told = {name: watched[name] for name in ("page_tables", "blind") if name in watched}
    here, there = (each.get("beside_bytes") or 0 for each in (run, watched))
    if here <= there:
        return {**run, **told, "beside_bytes": there or run.get("beside_bytes")}
    pages = told["page_tables"]  # beside what there was
    more = {
        name: pages[name] + here - there
        for name in ("most_bytes", "most_bytes_seen", "average_bytes")
        if pages[name] is not None
    }
    return {**run, **told, "page_tables": {**pages, **more}}


def _checksums(run: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(each["checksum"] for each in run["rounds"])


def _figures(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return medians over runs of the medians of their rounds that count."""
    names = {name for run in runs for each in counted(run) for name in each}
    names -= {"checksum", "operation_seconds"}
    return {
        name: statistics.median(
            statistics.median(each[name] for each in counted(run)) for run in runs
        )
        for name in sorted(names)
    }


def _beyond(
    runs: Sequence[Mapping[str, Any]], twins: Sequence[Mapping[str, Any]], budget_bytes: int
) -> dict[str, Any]:
    """Return what lay beyond the budget by each judge, with what is not managed."""
    beside = max((run.get("beside_bytes") or 0 for run in runs), default=0)
    stops = [
        max(
            0,
            twin["stop"]["live_resident_bytes"]
            + twin["stop"]["dead_resident_bytes"]
            + beside
            - budget_bytes,
        )
        for twin in twins
    ]
    seen = [run["page_tables"] for run in runs if run.get("page_tables")]
    seen = [each for each in seen if each["most_bytes"] is not None]
    return {
        "beside_bytes": beside,
        "stops": {
            "most_bytes": max(stops, default=None),
            "average_bytes": round(statistics.mean(stops)) if stops else None,
        },
        "page_tables": {
            "most_bytes": max((each["most_bytes"] for each in seen), default=None),
            "most_bytes_seen": max((each["most_bytes_seen"] for each in seen), default=None),
            "average_bytes": max((each["average_bytes"] for each in seen), default=None),
        },
    }


def _disagreements(
    twins: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]], budget_bytes: int
) -> list[str]:
    """Return what has to be said of the judges: where they differ, and what they cannot tell."""
    said = []
    for twin in twins:
        told = twin["stop"]
        other = told["live_resident_by_page_tables_bytes"]
        if other is None:
            continue
        apart = abs(told["live_resident_bytes"] - other) / budget_bytes
        if apart > JUDGES_AGREE:
            said.append(
                f"the judges are {apart:.1%} of the budget apart at {moment_name(twin['moment'])}"
            )
    unknown = {run["beside_unknown"] for run in runs if run.get("beside_unknown")}
    said += [f"device memory that is not managed is not counted: {why}" for why in sorted(unknown)]
    return said
