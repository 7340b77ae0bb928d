# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured of budgets on a GPU: the committed figures, and what they have to reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from .residency_scripts import committed, script

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DOCUMENT = Path(__file__).parents[2] / "docs" / "measure" / "past-the-edge.md"

SIDES = {
    "everything resident, cudaMalloc": "resident",
    "the default": "default",
    "by hand": "by-hand",
    "by hand, double-buffered": "by-hand-buffered",
    "fault-driven, as a card of that size": "fault-driven",
}
RATIOS = {
    "of everything resident": "resident",
    "of by hand": "by-hand",
    "of double-buffered": "by-hand-buffered",
    "of fault-driven": "fault-driven",
}


@pytest.mark.parametrize(
    ("name", "of_resident"), [("past_the_edge_cudf", 1.35), ("past_the_edge_cudf_three_budgets", 2)]
)
def test_loop_without_hints_reaches_its_bounds_by_the_protocol(
    name: str, of_resident: float
) -> None:
    told = committed(name)
    ratios = {one["over"]: one for one in told["ratios"] if one["of"] == "default"}
    is_result = script("common/past_the_edge").is_result
    assert all(is_result(one) for one in ratios.values())
    assert ratios["resident"]["seconds_ratio"] <= of_resident
    assert ratios["by-hand"]["seconds_ratio"] < 1
    if "fault-driven" in ratios:
        assert ratios["fault-driven"]["seconds_ratio"] <= 0.5
    checksums = [one["checksums"] for one in told["sides"]]
    assert all(each == checksums[0] for each in checksums)


@pytest.mark.parametrize(
    ("name", "column"), [("past_the_edge_cudf", 1), ("past_the_edge_cudf_three_budgets", 2)]
)
def test_document_has_the_figures_of_the_loop(name: str, column: int) -> None:
    told = committed(name)
    ratios = {one["over"]: one for one in told["ratios"] if one["of"] == "default"}
    sides = {one["side"]: one for one in told["sides"]}
    document = DOCUMENT.read_text()
    rows = [line.strip("| ").split(" | ") for line in document.splitlines() if "|" in line]
    cells = {row[0].strip("*"): row for row in rows if row[0].startswith(("**the", "the", "by"))}
    cells |= {row[0]: row for row in rows if row[0].startswith(("everything", "fault-driven"))}
    for words, side in SIDES.items():
        if side in sides:
            assert cells[words][column] == f"{sides[side]['seconds']:.2f}"
    for words, over in RATIOS.items():
        if over in ratios:
            ratio = ratios[over]
            low, high = min(ratio["ratios"]), max(ratio["ratios"])
            said = f"{ratio['seconds_ratio']:.2f} ({low:.2f} to {high:.2f})"
            assert cells[f"the default, {words}"][column] == said
    budget_bytes = told["settings"]["budget_bytes"]
    factor = f"at {sides['default']['factor']:.2f} budgets"
    [header] = [row for row in rows if row[0] == "seconds a round" and len(row) == 3]
    assert header[column] == factor
    beyond = [judge for judge in sides["default"]["beyond"].values() if isinstance(judge, dict)]
    assert max(judge["most_bytes"] for judge in beyond) <= 0.001 * budget_bytes
    if "fault-driven" in sides:
        held = sides["fault-driven"]["beyond"]["page_tables"]["average_bytes"] / budget_bytes
        most = sides["fault-driven"]["beyond"]["page_tables"]["most_bytes"] / budget_bytes
        said = f"page faults took {held * 100:.1f} % on average ({most * 100:.1f} % at most)"
        assert said in " ".join(document.split())
        readme = " ".join((RESULTS.parents[1] / "README.md").read_text().split())
        low, high = min(ratios["by-hand"]["ratios"]), max(ratios["by-hand"]["ratios"])
        assert f"{ratios['by-hand']['seconds_ratio']:.2f} ({low:.2f} to {high:.2f}) of" in readme
        assert f"takes {ratios['resident']['seconds_ratio']:.2f} times as long" in readme
        assert f"{held * 100:.1f} % on average by page faults" in readme


def test_first_table_of_the_readme_has_the_figures_of_the_loop() -> None:
    loop, others = committed("past_the_edge_cudf"), committed("past_the_edge_cudf_alternatives")
    seconds = {
        one["side"]: f"{one['seconds']:.2f}"
        for told in (others, loop)  # what both have is the loop's
        for one in told["sides"]
        if "seconds" in one
    }
    readme = (RESULTS.parents[1] / "README.md").read_text()
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
        assert f"| {words} | {figures} |" in readme
    assert "| cuDF's spilling | MemoryError |" in readme
    failed = {run["failed"] for run in others["runs"] if run["side"] == "cudf-spilling"}
    assert all(why.startswith("MemoryError") for why in failed)
    assert failed
    assert loop["environment"]["commit"].startswith("a89f6875")


def test_loop_comes_ahead_of_its_use() -> None:
    for name in ("past_the_edge_cudf", "past_the_edge_cudf_three_budgets"):
        [default] = [one for one in committed(name)["sides"] if one["side"] == "default"]
        assert default["fetched_bytes"] < 0.015 * default["to_device_bytes"]


def test_discards_in_the_order_that_is_relied_on_lost_nothing_and_others_did() -> None:
    result = committed("deferred_discards")
    assert all(result["verdicts"].values())
    lost = result["lost_rounds"]
    assert all(lost[name] == 0 for name in result["verdicts"])
    assert lost["discard behind a busy stream, device synchronized after it"] > 0
    assert lost["discard-and-prefetch behind a busy stream, written by the CPU meanwhile"] > 0


def test_what_a_budget_that_fits_costs_is_in_the_document() -> None:
    result = committed("residency_fits")
    assert result["residency"]["evicted_bytes"] == 0
    least = result["least_seconds"]
    ratio = least["budget"] / min(least["plain"], least["plain again"])
    of_neighbours = result["median_ratios"]["budget"]
    document = " ".join(DOCUMENT.read_text().split())
    assert f"shortest of {result['rounds']} iterations takes {ratio:.2f} of the time" in document
    assert f"in the median an iteration takes {of_neighbours:.2f} of its" in document
    plain = sorted((least["plain"], least["plain again"]))
    assert f"without a budget differ by {(plain[1] / plain[0] - 1) * 100:.1f} %." in document
    bounds = [one["must_be_at_most"] for one in result["verdicts"].values() if one is not True]
    assert bounds == [1.01, 1.01]
    assert max(ratio, of_neighbours) <= 1.01
    assert "shows no cost of a budget that is never reached" in document


@pytest.mark.parametrize(
    "name",
    [
        *("past_the_edge_cudf", "past_the_edge_cudf_prefetched", "residency_fits"),
        *("undiscarded", "deferred_discards"),
        *("migration_threads", "neighbors_interference", "neighbors_paths"),
        *("torch_copies", "torch_fits"),
    ],
)
def test_result_of_a_gpu_was_measured_on_one(name: str) -> None:
    environment = committed(name)["environment"]
    assert environment["simulated"] is False
    assert "NVIDIA" in environment["device"]


BY_PROGRAM = {
    "cudf_pandas": "cudf.pandas:",
    "pds_h": "PDS-H,",
    "xgboost": "XGBoost on cuDF",
    "cupy": "CuPy, arrays",
    "swin_b": "Swin-B,",
    "graphsage": "GraphSAGE training,",
    "merge_and_sort": "one merge of two frames,",
    "mortgage": "mortgage ETL",
    "training": '"training", a loop',
}


@pytest.mark.parametrize("program", BY_PROGRAM)
def test_program_keeps_to_its_budget_and_the_document_has_its_figures(program: str) -> None:
    told = committed(f"past_the_edge_{program}")
    sides = {one["side"]: one for one in told["sides"]}
    ours = "announced" if program == "training" else "default"
    [ratio] = [one for one in told["ratios"] if (one["of"], one["over"]) == (ours, "resident")]
    default, budget_bytes = sides[ours], told["settings"]["budget_bytes"]
    judges = [one for one in default["beyond"].values() if isinstance(one, dict)]
    most = max(one["most_bytes"] for one in judges) / budget_bytes
    faulted = (
        f"{default['faulted_bytes'] / 2**30:.2f} GiB" if default["faulted_bytes"] else "nothing"
    )

    assert script("common/past_the_edge").is_result(ratio)
    assert most <= 0.02
    cells = (
        f"{budget_bytes >> 30} GiB | {default['factor']:.2f} | {sides['resident']['seconds']:.2f}, "
        f"{default['seconds']:.2f} | {ratio['seconds_ratio']:.2f} "
        f"({min(ratio['ratios']):.2f} to {max(ratio['ratios']):.2f}) | "
        f"{default['to_host_bytes'] / 2**30:.2f} GiB | {faulted} | {most * 100:.1f} % |"
    )
    document = DOCUMENT.read_text()
    [row] = [line for line in document.splitlines() if line.startswith(f"| {BY_PROGRAM[program]}")]
    assert row.endswith(cells)


def test_what_page_faults_take_is_in_the_document() -> None:
    document = " ".join(DOCUMENT.read_text().split())
    [ratio] = committed("past_the_edge_cudf_prefetched")["ratios"]
    assert ratio["result"]
    least, most = min(ratio["ratios"]), max(ratio["ratios"])
    assert f"{ratio['seconds_ratio']:.2f} ({least:.2f} to {most:.2f})" in document
    judges = ratio["beyond"][ratio["over"]]
    beyond = max(judges[name]["average_bytes"] for name in ("stops", "page_tables"))
    assert f"{beyond / ratio['budget_bytes'] * 100:.1f} % of the budget beyond it" in document


def test_merge_and_sort_reaches_its_bound() -> None:
    [ratio] = committed("past_the_edge_merge_and_sort")["ratios"]
    assert (ratio["of"], ratio["over"], ratio["result"]) == ("default", "resident", True)
    assert ratio["factor"] >= 2.3
    assert ratio["seconds_ratio"] <= 3


def test_loop_that_only_reads_copies_nothing_to_the_host() -> None:
    for name in ("past_the_edge_cudf", "past_the_edge_cudf_three_budgets"):
        [default] = [one for one in committed(name)["sides"] if one["side"] == "default"]
        assert default["to_host_bytes"] == 0


def test_seeing_costs_next_to_nothing_while_all_fits() -> None:
    told = committed("seeing_cost")
    assert {row["program"] for row in told["rows"]} == {"cudf", "pds-h"}
    assert all(row["fraction"] <= 0.005 for row in told["rows"])
