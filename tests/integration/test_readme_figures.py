# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The README's figures are those of the committed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text()


def result(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        (REPOSITORY / "benchmarks" / "results" / f"{name}.json").read_text()
    )
    return loaded


def row(start: str) -> list[float]:
    """Return the numbers of the table's row that begins so."""
    line = next(line for line in README.splitlines() if line.startswith(f"| {start}"))
    return [float(cell.strip(" *")) for cell in line.strip("|").split("|")[1:]]


@pytest.mark.parametrize(
    ("start", "chain"),
    [
        ("**rmm-uvm**", "managed"),
        ("RMM: pool over", "rmm-managed"),
        ("RMM: the same with", "rmm-prefetch"),
    ],
)
def test_readme_table_shows_the_measured_ratios(start: str, chain: str) -> None:
    shown = row(start)
    measured = []
    for kind in ("steady", "first"):
        for size in ("20m", "100m"):
            seconds = result(f"cudf_pass_{size}")[f"{kind}_seconds"]
            pairs = sorted(a / b for a, b in zip(seconds[chain], seconds["cuda-pool"], strict=True))
            measured.append(pairs[len(pairs) // 2])
    assert shown == pytest.approx(measured, abs=0.0051)


def test_readme_shows_the_measured_times() -> None:
    nanoseconds = result("allocate_free")["medians"]
    seconds = result("recycled_memory")["medians"]
    for text in (
        f"{nanoseconds['ours'] / 1e3:.1f} µs from Python",
        f"against {nanoseconds['Prefetch(Pool(Managed))'] / 1e3:.1f} µs",
        f"{nanoseconds['Pool(Managed)'] / 1e3:.1f} µs with RMM's pool alone",
        f"{nanoseconds['Arena(Managed)'] / 1e3:.1f} µs with RMM's arena over managed memory",
        f"after {seconds['managed'] * 1e3:.0f} ms, against {seconds['rmm-prefetch'] * 1e3:.0f} ms",
    ):
        assert " ".join(text.split()) in " ".join(README.split())


def test_readme_has_no_speed_up_of_training_that_was_taken_back() -> None:
    assert "as fast as with page faults" not in " ".join(README.split())
    changes = " ".join((REPOSITORY / "CHANGELOG.md").read_text().split())
    assert "All that were measured before it are withdrawn" in changes
    assert 'README: "3.6 to 2.4 times as fast" for training' in changes


def test_readme_shows_the_measured_mortgage_ratios() -> None:
    verdicts = result("mortgage_pipeline")["verdicts"]
    text = " ".join(README.split())
    assert f"takes {verdicts['end_to_end']['ratio']:.2f} times as long end to end" in text
    torn_down = verdicts["prep, pool kept / torn down"]["ratio"]
    assert f"Conversion takes {torn_down:.2f} times as long as with the pool torn down" in text
    medians = result("mortgage_pipeline")["stage_median_seconds"]
    parts = ("prep", "train")
    ours, theirs = (
        sum(seconds for stage, seconds in medians[way].items() if stage not in parts)
        for way in ("managed", "cuda-pool")
    )
    loading = result("mortgage_pipeline")["stage_ratios"]["load_performance"]
    told = f"The ETL alone takes {ours / theirs:.2f} times as long"
    assert f"{told}, its stage `load_performance` {loading:.2f}," in text
    of_all = medians["cuda-pool"]["train"] / sum(medians["cuda-pool"].values())
    assert of_all == pytest.approx(2 / 3, abs=0.01)
    assert result("shadow_proof")["verdicts"]["largest_deviation"] <= 0.02


def test_readme_shows_what_watching_costs() -> None:
    cost, attached = result("watching_cost")["verdicts"], result("attach_cost")["verdicts"]
    shown = [row(start)[0] for start in ("a kernel that", "a cuDF pass", "another", "with causes")]
    assert shown == pytest.approx(
        [
            cost["fault-bound kernel, watched / none"]["ratio"],
            cost["resident cuDF pass, watched / none"]["ratio"],
            attached["foreign fault-bound kernel, attached / alone"]["ratio"],
            cost["fault-bound kernel, with attribution / none"],
        ],
        abs=0.0051,
    )


def test_what_was_counted_on_a_gpu_was_exact() -> None:
    assert result("watching_exactness")["verdicts"]["every move counted to the byte"] is True
    attached = result("attach_cost")["verdicts"]
    assert attached["counted to the byte"] is True
    assert attached["let go within a second of the exit"] is True


def test_readme_tells_of_prefetched_page_faults_as_they_were_measured() -> None:
    told = result("past_the_edge_cudf_prefetched")
    [faults] = [one for one in told["sides"] if one["side"] == "fault-driven-prefetched"]
    commit = told["environment"]["commit"][:8]
    assert f"took {faults['seconds']:.2f} s a round of that loop (H100, {commit})" in README
    assert round(faults["factor"], 2) == 1.64


def test_first_table_of_the_readme_has_the_figures_of_the_loop() -> None:
    loop, others = result("past_the_edge_cudf"), result("past_the_edge_cudf_alternatives")
    seconds = {
        one["side"]: f"{one['seconds']:.2f}"
        for told in (others, loop)  # what both have is the loop's
        for one in told["sides"]
        if "seconds" in one
    }
    rows = {
        "all in device memory, which is more than the budget": "resident",
        "**rmm-uvm, with that one line**": "default",
        (
            "by hand, with pinned memory and a pool of that size: the next frame copied in "
            "meanwhile / each before its use"
        ): "by-hand-buffered by-hand",
        "managed memory by page faults": "fault-driven",
        (
            "one run each, under a limit of RMM: pinned memory read in place / "
            "cudf-polars streaming / Dask-CUDA spilling"
        ): "pinned-behind polars-streaming dask-spilling",
    }
    for words, sides in rows.items():
        figures = " / ".join(seconds[side] for side in sides.split())
        figures = f"**{figures}**" if sides == "default" else figures
        assert f"| {words} | {figures} |" in README
    assert "| cuDF's spilling | MemoryError |" in README
    failed = {run["failed"] for run in others["runs"] if run["side"] == "cudf-spilling"}
    assert all(why.startswith("MemoryError") for why in failed)
    assert failed
    assert loop["environment"]["commit"].startswith("a89f6875")
