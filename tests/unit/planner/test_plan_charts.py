# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The lines of a plan's chart: where a card runs out of memory they are broken."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rmm_uvm.planner import Plan
from rmm_uvm.planner.views.charts import memory_over_time, slowdown_against_capacity
from rmm_uvm.planner.workload.result import ReplayResult
from rmm_uvm.report.drawing import draw, legend

from .test_planning import DEVICE, planned
from .workloads import GIB, FakeReplay

CARDS = [4 * GIB, 6 * GIB, 8 * GIB, 16 * GIB]


class Halfway(FakeReplay):
    """Runs out of memory from 5 to 7 GiB only."""

    def __call__(self, *args: Any, **how: Any) -> ReplayResult:
        self.runs_out_below_bytes = 7 * GIB if how["device_bytes"] > 5 * GIB else 0
        return super().__call__(*args, **how)


def heights(plan: Plan, glyph: str) -> list[list[float]]:
    """Return the heights of what is drawn with one kind of glyph."""
    chart = draw(slowdown_against_capacity(plan))
    sources = [one.data_source for one in chart.renderers if type(one.glyph).__name__ == glyph]
    return [list(source.data["y"]) for source in sources]


def test_lines_and_marks_are_broken_where_a_card_runs_out_of_memory() -> None:
    plan = planned(replay=Halfway({"never": 0.7}), **{DEVICE: CARDS})
    (line,) = heights(plan, "Line")
    assert any(map(math.isnan, line))
    _, advised = heights(plan, "Scatter")
    assert [math.isnan(height) for height in advised] == [False, True, False, False]


def test_nothing_is_broken_where_no_card_runs_out_of_memory() -> None:
    plan = planned(replay=FakeReplay({"never": 0.7}), **{DEVICE: CARDS})
    for drawn in (*heights(plan, "Line"), *heights(plan, "Scatter")):
        assert not any(map(math.isnan, drawn))


def test_what_is_advised_has_marks_and_no_line_over_cards_that_were_not_tried() -> None:
    plan = planned(replay=FakeReplay({"never": 0.7}), **{DEVICE: CARDS})
    (line,) = heights(plan, "Line")
    assert line == [slow for _, slow in plan.curve]
    _, advised = heights(plan, "Scatter")
    assert advised == [card.advised.slowdown for card in plan.cards]
    keys = {key.label: key.marker for key in legend(slowdown_against_capacity(plan))}
    assert keys == {"defaults": False, "advised settings": True, "as if it fitted": False}
    assert '<rect x="9.2"' in plan.html()


def test_memory_over_time_lasts_to_the_end_of_the_recording() -> None:
    card = planned().cards[0]
    timeline = card.defaults.result.timeline
    for seconds, end in ((15.0, 15.0), (0.0, float(timeline.seconds[-1]))):
        chart = draw(memory_over_time(card, 0, seconds))
        data = next(one.data_source.data for one in chart.renderers)
        assert list(data["seconds"]) == [*timeline.seconds, end]
        assert data["live"][-1] == data["live"][-2]
        assert data["resident"][-1] == data["resident"][-2]
        assert len(data["live"]) == len(data["resident"]) == len(data["seconds"])


def test_memory_over_time_of_a_card_on_which_nothing_happened_is_nothing_to_the_end() -> None:
    card = planned().cards[0]
    result = card.defaults.result
    names = [field.name for field in dataclasses.fields(result.timeline)]
    nothing = {name: getattr(result.timeline, name)[:0] for name in names}
    timeline = dataclasses.replace(result.timeline, **nothing)
    defaults = dataclasses.replace(
        card.defaults, result=dataclasses.replace(result, timeline=timeline)
    )
    chart = draw(memory_over_time(dataclasses.replace(card, variants=(defaults,)), 0, 15.0))
    data = next(one.data_source.data for one in chart.renderers)
    assert (list(data["seconds"]), list(data["live"]), list(data["resident"])) == ([15], [0], [0])
