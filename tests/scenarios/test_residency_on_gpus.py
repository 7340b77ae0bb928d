# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured of budgets on a GPU: the committed figures, and what they have to reach."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from .residency_scripts import committed, script

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
FACTORS = (1.25, 1.5, 2.0)


LOOPS = committed("residency")
BY_PROTOCOL = committed("past_the_edge_cudf")


def row(program: str, factor: float, mode: str) -> dict[str, Any]:
    [found] = [
        one
        for one in LOOPS["rows"]
        if (one["program"], one["factor"], one["mode"]) == (program, factor, mode)
    ]
    return found  # type: ignore[no-any-return]


def protocol_ratio(of: str, over: str) -> dict[str, Any]:
    [found] = [one for one in BY_PROTOCOL["ratios"] if (one["of"], one["over"]) == (of, over)]
    return found  # type: ignore[no-any-return]


def test_loop_without_hints_reaches_its_bounds_by_the_protocol() -> None:
    to_resident = protocol_ratio("default", "resident")
    to_faults = protocol_ratio("default", "fault-driven")
    is_result = script("common/past_the_edge").is_result
    assert is_result(to_resident)
    assert is_result(to_faults)
    assert to_resident["seconds_ratio"] <= 2.5
    assert to_faults["seconds_ratio"] <= 0.5


def test_document_has_the_figures_of_the_loop() -> None:
    sides = {one["side"]: one for one in BY_PROTOCOL["sides"]}
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    budget_bytes = BY_PROTOCOL["settings"]["budget_bytes"]

    def cells(side: str, figure: str) -> str:
        one = sides[side]
        beyond = max(judge[figure] for judge in one["beyond"].values() if isinstance(judge, dict))
        faulted = f"{one['faulted_bytes'] / 2**30:.2f} GiB" if one["faulted_bytes"] else "nothing"
        return (
            f"| {one['seconds']:.2f} | {one['to_host_bytes'] / 2**30:.2f} GiB | {faulted} | "
            f"{beyond / budget_bytes * 100:.1f} %"
        )

    assert f"cudaMalloc | {sides['resident']['seconds']:.2f} |" in document
    assert f"| the default {cells('default', 'most_bytes')} |" in document
    assert f"of that size {cells('fault-driven', 'average_bytes')} on average |" in document
    text = " ".join(document.split())
    resident = protocol_ratio("default", "resident")["seconds_ratio"]
    faults = protocol_ratio("default", "fault-driven")["seconds_ratio"]
    assert f"takes {resident:.2f} times as long as everything resident, and {faults:.2f} of" in text
    assert f"they take {sides['default']['factor']:.2f} times the budget of 4 GiB" in text


@pytest.mark.parametrize("program", ["etl", "training"])
def test_data_that_fit_cost_nothing_with_a_budget(program: str) -> None:
    resident, fitting = row(program, 0.0, "resident"), row(program, 0.8, "repeat")
    assert fitting["least_seconds"] <= 1.01 * resident["least_seconds"]
    assert fitting["to_host_bytes"] == fitting["to_device_bytes"] == 0


@pytest.mark.parametrize("program", ["etl", "training"])
@pytest.mark.parametrize("factor", [1.25, 1.5, 2.0])
def test_default_takes_at_most_half_of_what_faults_take(program: str, factor: float) -> None:
    ours, theirs = row(program, factor, "repeat"), row(program, factor, "fault-driven")
    assert ours["seconds"] <= 0.5 * theirs["seconds"]
    assert ours["to_host_bytes"] < theirs["to_host_bytes"]
    lru = row(program, factor, "lru")
    assert ours["to_host_bytes"] <= lru["to_host_bytes"]
    # Where neither moves anything, they differ by what runs differ by.
    assert ours["seconds"] <= lru["seconds"] or lru["to_host_bytes"] == 0
    assert ours["residency"]["peak_resident_bytes"] <= ours["residency"]["budget_bytes"]
    assert ours["residency"]["failed_calls"] == 0


def test_dead_data_are_a_fraction_of_what_faults_move_where_little_is_lacking() -> None:
    for program in ("etl", "training"):
        ours, theirs = row(program, 1.25, "repeat"), row(program, 1.25, "fault-driven")
        assert ours["to_host_bytes"] <= 0.35 * theirs["to_host_bytes"]


def test_mortgage_has_the_same_features_however_little_memory_there_is() -> None:
    result = committed("residency_mortgage")
    assert {one["digest"] for one in result["rows"]} == {result["rows"][0]["digest"]}
    modes = {(one["factor"], one["mode"]): one for one in result["rows"]}
    for factor in (1.25, 1.5, 2.0):
        ours, theirs = modes[factor, "repeat"], modes[factor, "fault-driven"]
        assert ours["seconds"] < theirs["seconds"]
        assert ours["to_host_bytes"] < 0.5 * theirs["to_host_bytes"]


def test_discards_in_the_order_that_is_relied_on_lost_nothing_and_others_did() -> None:
    result = committed("deferred_discards")
    assert all(result["verdicts"].values())
    lost = result["lost_rounds"]
    assert all(lost[name] == 0 for name in result["verdicts"])
    assert lost["discard behind a busy stream, device synchronized after it"] > 0
    assert lost["discard-and-prefetch behind a busy stream, written by the CPU meanwhile"] > 0


def test_document_says_what_was_measured() -> None:
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    rows = LOOPS["rows"] + committed("residency_mortgage")["rows"]
    at = {(one["program"], one["factor"], one["mode"]): one for one in rows}
    for program in ("etl", "training", "mortgage"):
        for factor in (1.25, 1.5, 2.0):
            ours, theirs = at[program, factor, "repeat"], at[program, factor, "fault-driven"]
            resident_seconds = at[program, 0.0, "resident"]["seconds"]
            figures = (
                ours["seconds"] / theirs["seconds"],
                ours["to_host_bytes"] / theirs["to_host_bytes"],
                ours["seconds"] / resident_seconds,
                ours["link_seconds"] / resident_seconds,
            )
            line = " | ".join(f"{figure:.2f}" for figure in figures)
            assert f"| {program} | {factor:g} | {line} |" in document


def test_launches_beside_direct_migrations_hardly_wait() -> None:
    rows = {(row["kernel"], row["pieces"]): row for row in committed("residency_launches")["rows"]}
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    for (kernel, pieces), row in rows.items():
        if kernel == "1 ms":
            assert row["ratio"] <= 1.05
        if pieces != "pieces of 2 MiB":
            assert f"{row['ratio']:.2f}" in document
        assert row["to_host_bytes_per_second"] > 1e9


def test_discards_of_the_paper_are_reached_and_in_the_document() -> None:
    result = committed("residency_discards_gpu")
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    assert {(row["program"], row["factor"]) for row in result["rows"]} == {
        (program, factor) for program in ("fir", "hash join") for factor in (2, 3, 4)
    }
    for row in result["rows"]:
        assert row["against_fetching"] <= row["published"]
        assert row["to_host_against_fetching"] <= row["published_to_host"]
        figures = (row["against_fetching"], row["published"])
        figures += (row["to_host_against_fetching"], row["published_to_host"])
        line = " | ".join(f"{figure:.2f}" for figure in figures)
        assert f"| {row['program']} | {row['factor']} | {line} |" in document


def test_kernels_fault_in_at_most_a_tenth_of_a_budget_beside_it() -> None:
    for name in ("residency", "residency_mortgage"):
        for row in committed(name)["rows"]:
            if row["mode"] == "repeat" and row["factor"] > 1:
                figures = row["residency"]
                assert figures["peak_overshoot_bytes"] <= 0.1 * figures["budget_bytes"]


def test_mortgage_loop_takes_half_of_what_faults_take_and_is_hardly_slowed_down() -> None:
    rows = {(row["factor"], row["mode"]): row for row in committed("residency_mortgage")["rows"]}
    resident = rows[0.0, "resident"]
    ours, theirs = rows[1.5, "repeat"], rows[1.5, "fault-driven"]
    assert ours["seconds"] <= 0.5 * theirs["seconds"]
    assert ours["to_host_bytes"] <= 0.35 * theirs["to_host_bytes"]
    assert ours["seconds"] <= 2 * resident["seconds"]
    assert rows[1.25, "repeat"]["seconds"] <= 1.3 * resident["seconds"]
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    assert f"takes {resident['seconds'] / theirs['seconds']:.2f} of the fault-driven" in document


def mortgage(name: str) -> tuple[dict[tuple[float, str], dict[str, Any]], float]:
    """Return the rows of a mortgage loop by factor and mode, and seconds with all resident."""
    rows = {(row["factor"], row["mode"]): row for row in committed(name)["rows"]}
    return rows, rows[0.0, "resident"]["seconds"]


def text_of(name: str) -> str:
    return " ".join((RESULTS.parents[1] / "docs" / name).read_text().split())


def three(figures: Iterable[float], digits: int = 2) -> str:
    first, second, third = (f"{figure:.{digits}f}" for figure in figures)
    return f"{first}, {second} and {third}"


def test_mortgage_loop_faults_in_while_it_learns_only_and_the_document_says_so() -> None:
    rows, resident_seconds = mortgage("residency_mortgage")
    against_lru, overshoots = [], []
    for factor in FACTORS:
        ours, lru = rows[factor, "repeat"], rows[factor, "lru"]
        assert (ours["runs"], lru["runs"]) == (2, 1)
        against_lru.append(lru["seconds"] / ours["seconds"])
        budget_bytes = ours["residency"]["budget_bytes"]
        overshoots.append(ours["residency"]["peak_overshoot_bytes"] / budget_bytes)
        _, *after_the_second = ours["faulted_bytes_so_far"]
        assert after_the_second[-1] - after_the_second[0] <= 0.01 * budget_bytes
        assert lru["residency"]["faulted_bytes"] == 0
    document = text_of("residency.md")
    slowdown = rows[1.25, "repeat"]["seconds"] / resident_seconds
    assert f"At 1.25 it takes {slowdown:.2f} of the time of everything resident" in document
    assert f"takes {three(against_lru)} of the default's time" in document
    assert f"faulted in {three(overshoots, 3)} of" in document


def test_mortgage_loop_before_more_room_was_made_early_is_told_beside_it() -> None:
    before, before_seconds = mortgage("residency_mortgage_before")
    now, now_seconds = mortgage("residency_mortgage")
    slowdowns = {
        (when, factor): rows[factor, "repeat"]["seconds"] / seconds
        for when, rows, seconds in (("before", before, before_seconds), ("now", now, now_seconds))
        for factor in FACTORS
    }
    links = {
        (when, factor): rows[factor, "repeat"]["link_seconds"] / seconds
        for when, rows, seconds in (("before", before, before_seconds), ("now", now, now_seconds))
        for factor in FACTORS
    }
    without = {at: f"{slowdowns[at] - links[at]:.2f}" for at in slowdowns}
    document = text_of("residency.md")
    taken = three(slowdowns["before", factor] for factor in FACTORS)
    assert f"it took {taken} of the time of everything resident" in document
    rates = [
        rows[1.25, "repeat"]["to_host_bytes"] / rows[1.25, "repeat"]["link_seconds"] / 1e9
        for rows in (before, now)
    ]
    assert f"takes out {rates[0]:.0f} GB/s, {rates[0] / rates[1]:.2f} of what" in document
    assert without["before", 1.25] == without["now", 1.25]
    assert f"the link's time it is {without['now', 1.25]} at 1.25 on both" in document
    assert (
        f"{without['before', 1.5]} and {without['before', 2.0]} against "
        f"{without['now', 1.5]} and {without['now', 2.0]} at 1.5 and 2" in document
    )
    assert committed("residency_mortgage_before")["environment"]["commit"] in document
    decision = text_of("decisions/0015-early-room.md")
    at = {key: f"{figure:.2f}" for key, figure in slowdowns.items()}
    assert f"ETL took {at['before', 1.25]} of the time of everything resident before" in decision
    assert f"and {at['now', 1.25]} with it" in decision
    assert f"{links['before', 1.25]:.2f} and {links['now', 1.25]:.2f}, differs" in decision
    assert f"took {at['before', 1.5]} and {at['before', 2.0]} before" in decision
    assert f"and {at['now', 1.5]} and {at['now', 2.0]} with it" in decision


def test_smaller_mortgage_loop_is_in_the_document_with_what_it_missed() -> None:
    result = committed("residency_mortgage_8m")
    rows = {(row["factor"], row["mode"]): row for row in result["rows"]}
    resident, theirs = rows[0.0, "resident"]["seconds"], rows[1.5, "fault-driven"]["seconds"]
    document = " ".join((RESULTS.parents[1] / "docs" / "residency.md").read_text().split())
    assert f"the time was {rows[1.5, 'repeat']['seconds'] / theirs:.2f} of" in document
    assert f"resident was {resident / theirs:.2f};" in document
    emulation = max(
        verdict["ratio"] for name, verdict in result["verdicts"].items() if "emulation" in name
    )
    assert f"took up to {emulation:.2f} of what they should" in document
    slowdown = result["verdicts"]["mortgage at 1.25x: slowdown"]["ratio"]
    assert f"slowdown at 1.25 was {slowdown:.2f}," in document


def test_budget_that_fits_costs_a_hundredth_at_most_and_is_in_the_document() -> None:
    result = committed("residency_fits")
    assert result["residency"]["evicted_bytes"] == 0
    least = result["least_seconds"]
    ratio = least["budget"] / min(least["plain"], least["plain again"])
    assert ratio <= 1.01
    assert result["median_ratios"]["budget"] <= 1.01
    document = " ".join((RESULTS.parents[1] / "docs" / "residency.md").read_text().split())
    assert (
        f"the shortest of {result['rounds']} iterations takes {ratio:.2f} of the time" in document
    )
    assert f"are {result['median_ratios']['budget']:.3f} of their neighbours'" in document
    plain = sorted((least["plain"], least["plain again"]))
    assert f"differ by {(plain[1] / plain[0] - 1) * 100:.1f} % in their shortest" in document


@pytest.mark.parametrize(
    "name",
    [
        "residency",
        "residency_mortgage",
        "residency_mortgage_8m",
        "residency_mortgage_before",
        "residency_fits",
        "neighbors_interference",
        "neighbors_loops",
        "neighbors_paths",
        "migration_threads",
        "torch_caching",
        "torch_embedding",
        "torch_training",
        "residency_discards_gpu",
        "residency_launches",
        "advice_on_gpus",
    ],
)
def test_result_of_a_gpu_was_measured_on_one(name: str) -> None:
    environment = committed(name)["environment"]
    assert environment["simulated"] is False
    assert "NVIDIA" in environment["device"]


def test_decision_on_direct_migration_says_what_was_measured() -> None:
    decision = (RESULTS.parents[1] / "docs/decisions/0011-direct-migration.md").read_text()
    launches = {
        row["pieces"]: row["ratio"]
        for row in committed("residency_launches_libcuda")["rows"]
        if row["kernel"] == "1 ms"
    }
    two, four = launches["pieces of 2 MiB"], launches["pieces of 4 MiB"]
    assert f"{two:.2f} and {four:.2f}" in decision
    rows = {(row["factor"], row["mode"]): row for row in committed("residency_mortgage")["rows"]}
    ratio = rows[1.5, "repeat"]["seconds"] / rows[1.5, "repeat, by libcuda"]["seconds"]
    assert f"takes {ratio:.2f} of the time" in decision
