# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The committed consolidation of simulated programs is what the code does."""

from __future__ import annotations

from typing import Any

import pytest

import rmm_uvm

from .documents import document
from .residency_scripts import committed, script

consolidation = script("neighbors/consolidation")
KEPT = committed("neighbors_consolidation")
BY_NAME = {scenario.name: scenario for scenario in consolidation.SCENARIOS}


def kept_rows(scenario: str, gpus: int, spare: float) -> list[dict[str, Any]]:
    """Return the committed rows of a case, in their order."""
    case = (scenario, gpus, spare)
    return [r for r in KEPT["rows"] if (r["scenario"], r["gpus"], r["spare_fraction"]) == case]


@pytest.mark.parametrize(("scenario", "gpus", "spare"), [("1", 4, 0.6), ("3", 4, 0.05)])
def test_rows_computed_again_are_the_committed_ones(scenario: str, gpus: int, spare: float) -> None:
    again = consolidation.rows_of(BY_NAME[scenario], spare, gpus, consolidation.WAYS)
    assert again == kept_rows(scenario, gpus, spare)


def test_rows_of_other_data_are_others() -> None:
    again = consolidation.rows_of(BY_NAME["2"], 0.6, 4, consolidation.WAYS[:2], memory="256MiB")
    assert again != kept_rows("2", 4, 0.6)[:2]


def test_host_only_puts_nothing_on_neighbors_and_is_what_others_are_compared_with() -> None:
    found = consolidation.run(consolidation.SCENARIOS[0], consolidation.WAYS[0], 0.4, 4, "128MiB")
    assert found["neighbor_bytes"] == found["from_neighbor_bytes"] == 0
    assert found["evicted_bytes"] > 0
    row = consolidation.compared(found, found)
    assert row["speedup"] == row["owner_slowdown"] == 1


def test_programs_with_links_of_their_own_do_not_slow_one_another_down() -> None:
    way = consolidation.WAYS_BY_NAME[consolidation.LOCAL]
    two, four = (
        consolidation.run(BY_NAME["3"], way, 0.4, gpus, "256MiB")["seconds"] for gpus in (4, 8)
    )
    assert four == two * 2


def test_table_has_every_case_once() -> None:
    names = ("scenario", "gpus", "spare_fraction", "way")
    cases = [tuple(row[name] for name in names) for row in KEPT["rows"]]
    assert sorted(cases) == sorted(
        (scenario, gpus, spare, way.name)
        for scenario in BY_NAME
        for gpus in consolidation.GPUS
        for spare in consolidation.SPARES
        for way in consolidation.WAYS
    )
    swept = {(row["scenario"], row["ahead_bytes"]) for row in KEPT["look_aheads"]}
    assert swept == {(name, ahead) for name in BY_NAME for ahead in consolidation.LOOK_AHEADS}


def test_verdicts_are_those_of_the_rows_and_none_is_missed() -> None:
    found = consolidation.verdicts(KEPT["rows"]) | consolidation.burst_verdicts(KEPT["bursts"])
    assert KEPT["verdicts"] == found
    assert KEPT["against_host"] == consolidation.against_host(KEPT["rows"])
    assert all(verdict["reached"] for verdict in KEPT["verdicts"].values())


def test_kernels_computed_again_are_the_committed_ones() -> None:
    again = consolidation.kernel_rows(BY_NAME["ours"])
    assert again == [row for row in KEPT["kernels"] if row["scenario"] == "ours"]


def test_parallel_fetch_brings_something_where_a_kernel_uses_much() -> None:
    ups = {
        nbytes: [
            row["speedup"]
            for row in KEPT["kernels"]
            if row["kernel_bytes"] == nbytes and row["way"] == consolidation.PARALLEL
        ]
        for nbytes in {row["kernel_bytes"] for row in KEPT["kernels"]}
    }
    assert max(ups[min(ups)]) < 1.02 < max(ups[max(ups)])


def test_nothing_is_staged_where_what_was_evicted_has_the_room() -> None:
    assert all(row["staged_mib"] == 0 for row in KEPT["rows"])


def test_bursts_over_both_links_are_faster_only_where_these_are_two_links() -> None:
    found = {row["joined"]: row for row in KEPT["bursts"]}
    for joined in consolidation.JOINED:
        row = found[joined.name]
        gain = row["over its own link"] / row["over both links"]
        if "refused" in row:
            assert row["staged_bytes"] == 0
            assert gain == 1
        else:
            assert row["staged_bytes"] > 0
            assert (gain > 1.3) == (joined.links is None)


def test_burst_that_gains_nothing_misses_a_verdict() -> None:
    [best, *rest] = KEPT["bursts"]
    slow = {**best, "halves at once": best["halves in turn"], "over both links": 1.0}
    found = consolidation.burst_verdicts([slow, *rest])
    assert not any(verdict["reached"] for verdict in found.values())


@pytest.mark.parametrize("change", [{"speedup": 0.5, "seconds": [9.0, 9.0]}, {"owner_slowdown": 2}])
def test_worse_row_misses_a_verdict(change: dict[str, Any]) -> None:
    rows = [
        {**row, **change} if row["way"] == consolidation.LOCAL and row["gpus"] == 4 else row
        for row in KEPT["rows"]
    ]
    assert not all(verdict["reached"] for verdict in consolidation.verdicts(rows).values())


def test_every_technique_has_figures_where_devices_have_what_it_needs() -> None:
    assert all("speedup" in row for row in KEPT["rows"])
    libcuda = {way.name: not way.budget["direct"] for way in consolidation.WAYS}
    assert [name for name, only in libcuda.items() if only] == [
        name for name in libcuda if not name.startswith("past libcuda")
    ]
    for direct in (True, False):
        [device] = rmm_uvm.simulated_node(1, "64MiB", direct_migration=direct).devices
        assert bool(device.info.direct_migration) == direct


@pytest.mark.parametrize("number", range(len(consolidation.JOINED)))
def test_bursts_computed_again_are_the_committed_ones(number: int) -> None:
    again = consolidation.burst_row(
        consolidation.JOINED[number], consolidation.MACHINE, consolidation.MEMORY
    )
    assert again == KEPT["bursts"][number]


def test_nothing_is_lent_where_less_than_the_reserve_is_idle() -> None:
    text = document("measure/neighbours.md")
    assert "of 5 % idle nothing is lent" in text
    own = [way.name for way in consolidation.WAYS if way.name != consolidation.SHARED]
    for row in KEPT["rows"]:
        if row["spare_fraction"] == 0.05 and row["way"] in own:
            assert row["to_neighbor_mib"] == 0


@pytest.mark.parametrize(("spare", "least", "most"), [(0.4, 0.56, 0.72), (0.6, 0.98, 1.0)])
def test_neighbour_takes_a_half_at_forty_percent_idle_and_all_at_sixty(
    spare: float, least: float, most: float
) -> None:
    shares = [
        round(row["to_neighbor_mib"] / row["evicted_mib"], 2)
        for row in KEPT["rows"]
        if row["way"] == consolidation.LOCAL and row["spare_fraction"] == spare
    ]
    assert (min(shares), max(shares)) == (least, most)
