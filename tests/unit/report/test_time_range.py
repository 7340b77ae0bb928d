# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The time range that the charts of a page share."""

from __future__ import annotations

import dataclasses

import pytest

from rmm_uvm.report import axes
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
    x_range = axes.shared_range(seconds)
    drawn = strip(dataclasses.replace(recording, findings=edges), 0, x_range)
    assert drawn is not None
    assert drawn.model.x_range is x_range  # all charts move together
    assert x_range.start <= -MARK_FRACTION * seconds
    assert x_range.end >= (1 + 2 * MARK_FRACTION) * seconds  # with its number
    assert tuple(x_range.bounds) == (x_range.start, x_range.end)


@pytest.mark.parametrize(("seconds", "label"), [(299, "seconds since"), (301, "h:mm:ss")])
def test_room_beside_the_time_does_not_change_how_times_are_told(seconds: int, label: str) -> None:
    chart = axes.panel(axes.shared_range(seconds), 100, "MiB")
    assert label in chart.xaxis.axis_label
