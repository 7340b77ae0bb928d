# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets of device memory in reports: text, page, JSON, snapshots and `rmm-uvm top`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rmm
from bokeh.models import Span
from rich.cells import cell_len
from rich.console import Console

import rmm_uvm
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.recording.sample import Known
from rmm_uvm.report import Report
from rmm_uvm.report.advice import verdict
from rmm_uvm.report.budgets import cells, of_device
from rmm_uvm.report.charts import charts
from rmm_uvm.report.document import Chart, FigureGrid, Table
from rmm_uvm.report.drawing import draw, legend
from rmm_uvm.report.page import page
from rmm_uvm.report.strip import strip
from rmm_uvm.residency import ResidencyStatistics
from rmm_uvm.top.gather import _row
from rmm_uvm.top.render import render
from rmm_uvm.top.track import Track
from rmm_uvm.top.view import View
from rmm_uvm.watch.snapshot import budget_rows

from . import recordings

MIB = 1 << 20
LARGEST = 1023 * (1 << 30) + 1000 * MIB  # as many letters as a size has
COUNTS: dict[str, Any] = {
    **dict.fromkeys((field.name for field in dataclasses.fields(ResidencyStatistics)), 0),
    "budget_bytes": 512 * MIB,
    "resident_bytes": 500 * MIB,
    "peak_resident_bytes": 512 * MIB,
    "evicted_bytes": 96 * MIB,
    "dropped_bytes": 32 * MIB,
    "fetched_bytes": 60 * MIB,
    "fetched_ahead_bytes": 4 * MIB,
    "peak_overshoot_bytes": 64 * MIB,
    "overshoot_bytes": 16 * MIB,
    "predicted": 64,
    "predictions": 256,
    "policy": "repeat",
    "last_failure": "",
    "faults_unknown": "",
}


def with_budget(recording: Recording | None = None, **changes: Any) -> Recording:
    recording = recordings.oversubscribed() if recording is None else recording
    return dataclasses.replace(recording, budgets={0: COUNTS | changes})


def text_lines(recording: Recording) -> list[str]:
    return str(Report(recording)).splitlines()


def budget_lines(**changes: Any) -> list[str]:
    lines = text_lines(with_budget(**changes))
    first = next(n for n, line in enumerate(lines) if line.startswith("  budget "))
    return [line.removeprefix("  budget").strip() for line in lines[first : first + 3]]


def test_summary_shows_budget_traffic_and_prediction() -> None:
    assert budget_lines() == [
        "512.00 MiB, at most 512.00 MiB taken; 64.00 MiB beside it",
        "evicted 96.00 MiB, dropped 32.00 MiB dead, fetched 64.00 MiB",
        "policy repeat: off, lru decides; foresaw 25 % of 256 uses",
    ]


def test_summary_says_what_is_on_unknown_or_not_there() -> None:
    assert budget_lines(foresees=True)[2].startswith("policy repeat: on;")
    assert budget_lines(policy="fifo")[2] == "policy fifo: predicts nothing"
    assert budget_lines(predictions=0)[2] == "policy repeat: nothing was predicted"
    assert budget_lines(peak_overshoot_bytes=0)[0].endswith("taken")
    assert budget_lines(peak_overshoot_bytes=None)[0].endswith("; faults unknown")


def test_time_lost_comes_first_with_what_is_known_of_it() -> None:
    one = with_budget(waited_seconds=3.25, waited_for_room_seconds=1.5)
    text = text_lines(one)
    heading = next(n for n, line in enumerate(text) if line.startswith("device 0"))
    assert " ".join(text[heading + 1].split()) == (
        "time lost at least 3.2 s of 60.0 s waited for data, 1.5 s of it for room"
    )
    assert cells(of_device(one, one.devices[0]))[0][:2] == ("Time lost", "at least 3.2 s")
    without_room = text_lines(with_budget(waited_seconds=3.25))
    assert any(line.endswith("60.0 s waited for data") for line in without_room)
    none = with_budget(waited_seconds=0.0)
    assert not any("time lost" in line for line in text_lines(none))
    assert cells(of_device(none, none.devices[0]))[0][0] == "Budget"


def test_stages_have_the_time_in_which_requests_waited_in_them() -> None:
    made = with_budget(recordings.oversubscribed())
    samples = made.samples.copy()
    samples["waited_ns"] = np.arange(1, len(samples) + 1) * 10**7
    lines = text_lines(dataclasses.replace(made, samples=samples))
    (header,) = [line for line in lines if line.startswith("stage ")]
    assert header.split()[1:3] == ["time", "waited"]
    rows = lines[lines.index(header) + 1 :]
    assert rows[0].split()[:5] == ["join", "27.0", "s", "2.7", "s"]
    assert rows[3].split()[:6] == ["outside", "stages", "2.4", "s", "0.240", "s"]
    titles, _ = shown_on_page(dataclasses.replace(made, samples=samples))
    assert "Waited" in titles


def test_evictions_of_the_driver_and_of_the_budget_are_told_apart() -> None:
    budgeted = text_lines(with_budget(recordings.oversubscribed()))
    evicted = next(line for line in budgeted if line.startswith("  evicted "))
    assert evicted.endswith(" by the kernel driver")
    assert any("beside what the budget fetched; discarded" in line for line in budgeted)
    (header,) = [line for line in budgeted if line.startswith("stage ")]
    assert "waited" in header
    assert "evicted" not in header
    assert "waited: for data or room, as far as known; not page faults" in budgeted
    titles, figures = shown_on_page(with_budget(recordings.oversubscribed()))
    assert "Of it by the driver" in titles
    assert "Evicted by the driver" in figures


def test_evictions_without_a_budget_are_nobody_elses() -> None:
    plain = text_lines(recordings.oversubscribed())
    assert not [line for line in plain if "driver" in line]
    (header,) = [line for line in plain if line.startswith("stage ")]
    assert " evicted " in header
    titles, figures = shown_on_page(recordings.oversubscribed())
    assert "Evicted" in titles
    assert "Evicted" in figures


def shown_on_page(recording: Recording) -> tuple[list[str], list[str]]:
    """Return the titles of the table of stages, and the names of the figures of the device."""
    blocks = page(recording).sections[1].blocks
    (table,) = (block for block in blocks if isinstance(block, Table))
    (figures,) = (block for block in blocks if isinstance(block, FigureGrid))
    return [column.title for column in table.columns], [one.name for one in figures.items]


def memory_chart(recording: Recording) -> Chart:
    made = charts(recording, recording.devices[0], 100)
    return next(chart for chart in made if chart.title == "Memory")


def test_budget_is_a_line_of_the_memory_chart_and_absent_without_one() -> None:
    drawn, plain = memory_chart(with_budget()), memory_chart(recordings.oversubscribed())
    spans = [s.location for s in draw(drawn).center if isinstance(s, Span)]
    assert len(spans) == 2  # managed capacity too
    assert min(spans) == pytest.approx(0.5)  # GiB
    assert legend(drawn)[-1].label == "budget"
    assert drawn.caption.endswith("budget 512.00 MiB.")
    assert len([s for s in draw(plain).center if isinstance(s, Span)]) == 1
    assert "budget" not in [key.label for key in legend(plain)]
    dashes = [key.dash for key in legend(drawn)]
    assert len(set(dashes)) == len(dashes)


def test_captions_count_in_the_singular_too() -> None:
    recording = recordings.oversubscribed()
    one = dataclasses.replace(
        recording, stages=recording.stages[:1], findings=recording.findings[:1]
    )
    shown, plural = strip(one, 0), strip(recording, 0)
    assert shown is not None
    assert plural is not None
    assert shown.caption == "1 stage, 1 warning."
    assert plural.caption.endswith(" warnings.")
    assert "<caption>1 warning</caption>" in Report(one).html()
    assert " warnings</caption>" in Report(recording).html()


def test_resident_bytes_that_count_pages_say_so_where_a_budget_evicts() -> None:
    exact = recordings.oversubscribed()
    exact.samples["known"] |= int(Known.RESIDENT_EXACT)
    told = "resident, with what the kernel driver keeps behind data that left"
    assert told in [key.label for key in legend(memory_chart(with_budget(exact)))]
    assert "resident" in [key.label for key in legend(memory_chart(exact))]
    assert "resident (estimate)" in [key.label for key in legend(memory_chart(with_budget()))]


HARVEST = {
    "neighbor_bytes": 80 * MIB,
    "peak_harvested_bytes": 48 * MIB,
    "harvested_bytes": 8 * MIB,
    "from_neighbor_bytes": 70 * MIB,
    "in_place_bytes": 5 * MIB,
    "copied_beside_bytes": 3 * MIB,
    "staged_bytes": 2 * MIB,
    "given_back_bytes": 6 * MIB,
    "given_back_at_once_bytes": 2 * MIB,
    "held_back": 1,
    "reclaims": 12,
    "reclaim_wait_seconds": 0.25,
}


def neighbor_lines(**changes: Any) -> list[str]:
    lines = text_lines(with_budget(**changes))
    first = next(n for n, line in enumerate(lines) if line.startswith("  neighbours "))
    there = [lines[first].removeprefix("  neighbours").strip()]
    for line in lines[first + 1 :]:
        if not line.startswith("       "):
            break
        there.append(line.strip())
    return there


def test_summary_tells_what_lay_on_neighbours_and_what_went_back() -> None:
    assert neighbor_lines(**HARVEST) == [
        "at most 48.00 MiB; went 80.00 MiB, came back 70.00 MiB",
        "used there 5.00 MiB, copied beforehand 3.00 MiB",
        "from the host by way of them 2.00 MiB",
        "given back 6.00 MiB to owners, 2.00 MiB without a copy",
        "busy once: blocks left to the host",
        "waited 0.250 s for memory that others held here",
    ]
    assert neighbor_lines(held_back=3) == ["busy 3 times: blocks left to the host"]
    several = with_budget(recordings.two_devices(), **HARVEST)
    assert "neighbours 0: at most 48.00 MiB; went" in str(Report(several))


def test_what_left_for_a_budget_is_not_said_to_have_fitted() -> None:
    fitting = recordings.fitting()
    assert verdict(with_budget(fitting, evicted_bytes=0)) == "nothing to do: everything fitted"
    assert verdict(with_budget(fitting)) == (
        "nothing to do, unless the budget of 512.00 MiB may be larger: all fits on the device"
    )
    taken = with_budget(fitting, unmanaged_bytes=fitting.devices[0].capacity_bytes)
    assert verdict(taken) == "nothing to do: no threshold was passed"


def test_summary_and_page_without_neighbours_do_not_name_them() -> None:
    assert "neighbours" not in str(Report(with_budget()))
    assert not [row for row in cells(ResidencyStatistics(**COUNTS)) if "eighbour" in "".join(row)]


def test_page_and_json_tell_each_figure_of_neighbours() -> None:
    recording = with_budget(**HARVEST)
    found = {
        name: (value, note) for name, value, note in cells(ResidencyStatistics(**COUNTS | HARVEST))
    }
    assert found["Evicted for the budget"][1] == "copied to the host or to neighbours"
    assert found["On neighbours"] == ("48.00 MiB", "at most; 8.00 MiB at the end")
    assert found["Evicted to neighbours"][0] == "80.00 MiB"
    assert found["Back from neighbours"][0] == "70.00 MiB"
    assert found["Used on neighbours"][0] == "5.00 MiB"
    assert found["Copied beforehand"][0] == "3.00 MiB"
    assert found["By way of neighbours"][0] == "2.00 MiB"
    assert found["Given back to owners"] == ("6.00 MiB", "2.00 MiB of it without a copy")
    assert found["Neighbours busy"][0] == "once"
    assert found["Reclaimed"] == ("12 times", "waited 0.250 s in all")
    (device,) = Report(recording).to_dict()["devices"]
    assert device["budget"].items() >= HARVEST.items()


def test_snapshot_has_a_row_of_neighbours_once_something_lies_there() -> None:
    rows = dict(budget_rows(COUNTS | HARVEST))
    assert rows["on neighbours"] == "8.00 MiB; 70.00 MiB came back, 6.00 MiB given back"
    assert "on neighbours" not in dict(budget_rows(COUNTS))


def test_summary_without_a_budget_has_no_line_of_it() -> None:
    assert "budget" not in str(Report(recordings.oversubscribed()))


@pytest.mark.parametrize("foresees", [True, False])
def test_summary_with_the_largest_figures_is_narrow(*, foresees: bool) -> None:
    most = {name: LARGEST for name in COUNTS if name.endswith("_bytes")}
    more = {"foresees": foresees, "policy": "correlation"}
    more |= {"held_back": 10**9, "reclaims": 10**9, "reclaim_wait_seconds": 1e6}
    recording = with_budget(recordings.two_devices(), **most, **more)
    one = dataclasses.replace(recording, devices=recording.devices[:1])
    for lines in (text_lines(recording), text_lines(one)):
        assert [line for line in lines if "budget" in line]
        assert max(map(cell_len, lines)) <= 80


def test_page_shows_each_figure_with_its_note(tmp_path: Path) -> None:
    found = {name: (value, note) for name, value, note in cells(ResidencyStatistics(**COUNTS))}
    assert found["Budget"] == ("512.00 MiB", "of device memory")
    assert found["Faulted in beside"] == ("64.00 MiB", "at most, estimate: 12 % of the budget")
    assert found["Eviction policy"][1].startswith("off, lru decides")
    unknown = {"peak_overshoot_bytes": None, "faults_unknown": "no <b>counters</b>"}
    Report(with_budget(**unknown)).save_html(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "no &lt;b&gt;counters" in html
    assert "Dropped for the budget" in html
    assert cells(None) == []


def test_json_holds_all_counts_with_their_rates_or_none() -> None:
    (device,) = Report(with_budget()).to_dict()["devices"]
    assert device["budget"].items() >= COUNTS.items()
    assert device["budget"]["overshoot_fraction"] == 0.125
    assert device["budget"]["hit_rate"] == 0.25
    (device,) = Report(recordings.oversubscribed()).to_dict()["devices"]
    assert device["budget"] is None


def test_monitor_of_a_pool_with_a_budget_reports_it_also_when_the_pool_is_gone() -> None:
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB",
        device_budget="16MiB",
        eviction="lru",
        libraries=(),
        monitor={"on_finding": None, "publish": False},
    ) as handle:
        buffers = [rmm.DeviceBuffer(size=8 * MIB, mr=handle.managed_mr) for _ in range(3)]
        snapshot = handle.monitor.snapshot()
        assert snapshot.budget is not None
        assert snapshot.budget["budget_bytes"] == 16 * MIB
        assert "of 16.00 MiB" in repr(snapshot)
        del buffers
    kept = handle.monitor.recording().budgets[0]
    assert kept["evicted_bytes"] >= 8 * MIB
    assert kept["policy"] == "lru"
    assert "policy lru: predicts nothing" in str(handle.monitor.report())


def test_monitor_of_a_pool_without_a_budget_reports_none() -> None:
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB",
        device_budget=None,
        libraries=(),
        monitor={"on_finding": None, "publish": False},
    ) as handle:
        assert handle.monitor.snapshot().budget is None
        assert "budget" not in repr(handle.monitor.snapshot())
        assert handle.monitor.recording().budgets == {}


def top_of(figures: dict[str, Any], width: int = 120) -> tuple[Any, str]:
    track = Track()
    track.add({"footprint_bytes": 1 << 30, **figures}, 1.0, 1.0)
    row = _row(track, 1.0, pid=7, name="solver", source="published")
    console = Console(width=width, record=True, file=None, force_terminal=False)
    with console.capture() as caught:
        console.print(render(View(processes=(row,)), width))
    return row, caught.get()


def test_top_has_a_column_where_a_process_keeps_a_budget() -> None:
    row, text = top_of({"budget": COUNTS})
    assert (row.budget_bytes, row.overshoot_bytes) == (512 * MIB, 16 * MIB)
    assert "BUDGET" in text
    assert "512 MiB" in text


@pytest.mark.parametrize("published", [None, "much", 7, {}])
def test_top_without_a_budget_that_can_be_read_has_none(published: Any) -> None:
    row, text = top_of({"budget": published})
    assert row.budget_bytes is None
    assert "BUDGET" not in text
