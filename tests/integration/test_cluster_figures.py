# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the documents say of the cluster is what the committed results say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ..scenarios.residency_scripts import script

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results"
CLUSTER_RESULTS = (
    *("dask_results", "dask_shuffle", "mortgage_cluster"),
    *("ipc_copy", "ipc_exhaustion", "worker_killed"),
)


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    return script("cluster/figures")


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Results as the benchmarks write them, made up."""
    speeds = {"1 GiB": 66.125, "64 MiB": 30.0, "16 MiB": 9.5, "1 MiB": 0.4567}
    made_up: dict[str, dict[str, Any]] = {
        "dask_results": {"client_gb_per_second": {"ours": speeds, "stock-cuda": speeds}},
        "dask_shuffle": {"seconds": {"ours": [2.0, 0.5, 0.75], "stock-managed": [123.4]}},
        "mortgage_cluster": {"seconds": {"end to end": {"ours": [16.0, 14.5, 15.0]}}},
        "ipc_exhaustion": {"verdicts": {"GB/s": {"value": 25.04}}},
        "worker_killed": {
            "outcomes": {
                "sender": {"recovery_seconds": 1.26, "whole_again_after_seconds": 4.0},
                "receiver": {"recovery_seconds": 0.5, "whole_again_after_seconds": 5.14},
            }
        },
    }
    for name, result in made_up.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    return tmp_path


def test_every_document_with_a_place_shows_the_committed_results(figures: ModuleType) -> None:
    texts = {
        name: (REPOSITORY / name).read_text()
        for name in figures.DOCUMENTS
        if (REPOSITORY / name).exists()
    }

    with_place = [name for name, text in texts.items() if figures.PLACE.search(text)]

    assert {"README.md", "benchmarks/README.md"} <= set(with_place)
    stale = [name for name in with_place if texts[name] != figures.filled(texts[name])]
    assert stale == [], "run: python benchmarks/cluster/figures.py --write"


def test_document_with_other_figures_than_the_results_is_noticed(
    figures: ModuleType, measured: Path
) -> None:
    text = f"before\n<!-- cluster figures -->\n{figures.table(measured)}<!-- end -->\nafter\n"
    assert figures.filled(text, measured) == text

    tampered = text.replace("66.1", "70.1")

    assert tampered != text
    assert figures.filled(tampered, measured) == text


def test_table_of_results_has_speeds_medians_and_the_worst_of_both_kills(
    figures: ModuleType, measured: Path
) -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in figures.table(measured).splitlines()[2:]
    ]

    assert rows[0] == ["a result of 1 GiB", "66.1 GB/s", "66.1 GB/s", "not measured"]
    assert rows[3][1] == "0.457 GB/s"
    assert rows[4][1:] == ["0.75 s", "not measured", "123 s"]
    assert rows[5][1:] == ["15 s", "not measured", "not measured"]
    assert rows[6][1] == "25 GB/s, and a warning"
    assert rows[7][1] == "the right result after 1.3 s, all memory back 5.1 s later"


def test_sentence_of_results_names_the_three_speeds(figures: ModuleType, measured: Path) -> None:
    text = " ".join(figures.sentence(measured).split())

    assert "1 GiB travels at 66.1 GB/s; between stock workers at 66.1 GB/s on cudaMalloc" in text


def test_table_without_results_says_that_nothing_was_measured(
    figures: ModuleType, tmp_path: Path
) -> None:
    body = "".join(figures.table(tmp_path).splitlines()[2:])

    assert body.count("not measured") == 20
    assert "GB/s" not in body + figures.sentence(tmp_path)


@pytest.mark.parametrize("name", CLUSTER_RESULTS)
def test_committed_result_was_measured_on_gpus(name: str) -> None:
    """Until a benchmark has run there is no file, and the documents say "not measured"."""
    path = RESULTS / f"{name}.json"
    if path.exists():
        result = json.loads(path.read_text())
        assert result["environment"]["simulated"] is False
