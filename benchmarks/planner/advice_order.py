# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether advice held, and whether ways to run came in the predicted order: pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.harness import judged, judged_at_most

ADVICE_BOUND = 1.02
TIE_FRACTION = 0.05
Row = Mapping[str, Any]


def is_tie(one_seconds: float, other_seconds: float) -> bool:
    """Return whether two times are within `TIE_FRACTION` of the smaller one."""
    least = min(one_seconds, other_seconds)
    return abs(one_seconds - other_seconds) <= TIE_FRACTION * least


def out_of_order(
    predicted: Mapping[str, float], measured: Mapping[str, float]
) -> list[tuple[str, str]]:
    """Return the pairs of ways of which the one that was to be faster took longer.

    Pairs that are a tie, predicted or measured, are in no order. Ways that only one of both has
    are passed over.
    """
    names = [name for name in predicted if name in measured]
    return [
        (one, other) if predicted[one] < predicted[other] else (other, one)
        for one, other in itertools.combinations(names, 2)
        if not is_tie(predicted[one], predicted[other])
        and not is_tie(measured[one], measured[other])
        and (predicted[one] < predicted[other]) != (measured[one] < measured[other])
    ]


def summaries(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what follows for each workload on each card, in the order of the rows.

    `advised_over_default_true` is what the measured ratio would be on a card that is as small: each
    time, by the model's ratio of the plan's prediction and that of the run as it is made.
    """
    found = []
    for workload, card in dict.fromkeys((row["workload"], row["card"]) for row in rows):
        here = [row for row in rows if (row["workload"], row["card"]) == (workload, card)]
        usual = next(row for row in here if row["way"] == "default")
        [advised] = [row for row in here if row["advised"]]
        measured = {row["way"]: row["seconds"] for row in here}
        as_run = _times(here, "predicted_as_run_seconds")
        found.append(
            {
                "workload": workload,
                "card": card,
                "advised": advised["way"],
                "advised_over_default": advised["over_default"],
                "advised_over_default_true": advised["over_default"]
                * _true_over_run(advised)
                / _true_over_run(usual),
                "spread": max(row["spread"] for row in here),
                "out_of_order": out_of_order(as_run, measured),
                "out_of_order_on_a_true_card": out_of_order(
                    _times(here, "predicted_seconds"), measured
                ),
            }
        )
    return found


def verdicts(
    rows: Sequence[Row], failures: Sequence[Any], workloads: Sequence[str]
) -> dict[str, Any]:
    """Return what has to hold."""
    found: dict[str, Any] = {
        "every workload ran on both cards": not failures
        and {(row["workload"], row["card"]) for row in rows}
        == {(name, card) for name in workloads for card in ("small", "large")},
        "contents as written": all(row["wrong_words"] == 0 for row in rows),
    }
    for one in summaries(rows):
        where = f"{one['workload']}, {one['card']} card"
        found[f"{where}: advised / default"] = judged(one["advised_over_default"], ADVICE_BOUND)
        found[f"{where}: pairs not in the predicted order"] = judged_at_most(
            len(one["out_of_order"]), 0
        )
    return found


def _true_over_run(row: Row) -> float:
    true, as_run = row["predicted_seconds"], row["predicted_as_run_seconds"]
    return 1.0 if true is None or as_run is None else float(true / as_run)


def _times(rows: Sequence[Row], name: str) -> dict[str, float]:
    return {row["way"]: row[name] for row in rows if row[name] is not None}
