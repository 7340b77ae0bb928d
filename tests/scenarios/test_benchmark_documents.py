# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Documents with a part that a benchmark writes say what the committed results say."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from .residency_scripts import committed, script

PLACEMENT, POLICY, CONSOLIDATION, ENDURANCE, LOAD, OTHERS, ALTERNATIVES = map(
    script,
    (
        *("pool/placement_document", "residency/policy_document"),
        *("neighbors/consolidation_document", "endurance/document"),
        *("endurance/load_document", "common/others_figures", "past_the_edge/alternatives"),
    ),
)
WRITTEN = {
    "pool/placement": (PLACEMENT, committed("pool_placement")),
    "residency/policies": (POLICY, committed("residency_policies")),
    "neighbors/consolidation": (CONSOLIDATION, committed("neighbors_consolidation")),
    "endurance/allocations": (ENDURANCE, committed("endurance")),
    "endurance/gpu": (LOAD, committed("endurance_gpu")),
    "common/others_figures": (OTHERS, OTHERS.load()),
    "past_the_edge/alternatives": (ALTERNATIVES, ALTERNATIVES.load()),
}
WITH_DOCUMENTS = pytest.mark.parametrize(
    ("name", "document", "kept"), [(name, *both) for name, both in WRITTEN.items()], ids=WRITTEN
)


@WITH_DOCUMENTS
def test_document_says_what_the_committed_result_says(
    name: str, document: ModuleType, kept: Any
) -> None:
    text = document.DOCUMENT.read_text()
    assert document.document_with(text, kept) == text, f"run: python benchmarks/{name}.py --write"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("pool/placement", lambda kept: {"verdicts": {**kept["verdicts"], "decision": "another"}}),
        (
            "residency/policies",
            lambda kept: {"rows": [{**row, "seconds": row["seconds"] + 1} for row in kept["rows"]]},
        ),
        (
            "neighbors/consolidation",
            lambda kept: {"rows": [{**row, "speedup": 9.0} for row in kept["rows"]]},
        ),
        (
            "endurance/allocations",
            lambda kept: {"rows": [{**row, "rss_bytes": 9 << 30} for row in kept["rows"]]},
        ),
        (
            "endurance/gpu",
            lambda kept: {"rows": [{**row, "checks": 1} for row in kept["rows"]]},
        ),
        (
            "common/others_figures",
            lambda kept: {
                "tpch": {**kept["tpch"], "ratios": dict.fromkeys(kept["tpch"]["ratios"], 9.0)}
            },
        ),
        (
            "past_the_edge/alternatives",
            lambda kept: {
                name: {**told, "sides": [{**row, "seconds": 9.0} for row in told["sides"]]}
                for name, told in kept.items()
            },
        ),
    ],
)
def test_document_of_another_figure_is_another(name: str, changed: Any) -> None:
    document, kept = WRITTEN[name]
    text = document.DOCUMENT.read_text()
    assert document.document_with(text, {**kept, **changed(kept)}) != text


@WITH_DOCUMENTS
@pytest.mark.parametrize("marks", ["", "{end}", "{end}\n{begin}\n", "{begin}\n{begin}\n{end}\n"])
def test_document_without_marks_once_and_in_order_is_refused(
    name: str, document: ModuleType, kept: Any, marks: str
) -> None:
    text = marks.format(begin=document.BEGIN, end=document.END)
    assert name in document.BEGIN
    with pytest.raises(ValueError, match=f"{document.DOCUMENT.name} has no part"):
        document.document_with(text, kept)
