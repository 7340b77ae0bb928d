# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The time range that the charts of a page share."""

from __future__ import annotations

import dataclasses

import pytest

from rmm_uvm.report.document import Axis, Chart
from rmm_uvm.report.drawing import draw, range_of
from rmm_uvm.report.strip import strip

from . import recordings

MARK_FRACTION = 11 / 2 / 280  # half of a mark on the narrowest chart, pixels


def test_marks_at_the_edges_of_the_time_are_drawn_whole() -> None:
    recording = recordings.oversubscribed()
    seconds = recording.duration_seconds
    first, last = recording.findings[:2]
    edges = tuple(
        dataclasses.replace(one, time_seconds=time) for one, time in ((first, 0.0), (last, seconds))
    )
    shown = strip(dataclasses.replace(recording, findings=edges), 0)
    assert shown is not None
    x_range = range_of(shown.x)
    assert draw(shown, x_range).x_range is x_range  # all charts move together
    assert x_range.start <= -MARK_FRACTION * seconds
    assert x_range.end >= (1 + 2 * MARK_FRACTION) * seconds  # with its number
    assert tuple(x_range.bounds) == (x_range.start, x_range.end)


@pytest.mark.parametrize(("seconds", "label"), [(299, "seconds since"), (301, "h:mm:ss")])
def test_room_beside_the_time_does_not_change_how_times_are_told(seconds: int, label: str) -> None:
    chart = Chart("memory", "", "", Axis(seconds, is_time=True), Axis(1.0, "MiB"), (), 100)
    assert label in draw(chart).xaxis.axis_label
