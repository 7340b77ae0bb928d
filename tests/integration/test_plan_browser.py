# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a plan in a real browser without a network: it draws, fits, and logs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmm_uvm.planner import Plan

from ..unit.planner.test_planning import planned
from ..unit.planner.workloads import FakeReplay, etl
from .browser import opened

READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents.every(d => d.is_idle)"
CHARTS = 'document.querySelectorAll(".chart [data-root-id]").length'
SCROLLING = (
    '[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth).length'
)

# Starting a browser on a busy machine takes its time.
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    "plan",
    [
        planned(),
        planned(replay=FakeReplay(runs_out_below_bytes=9 << 30), workers=4),
        planned(etl(979 << 30), device_memory=[111 << 30, 333 << 30]),  # many digits
    ],
)
def test_page_draws_every_chart_on_a_wide_and_a_narrow_screen(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    plan.save_html(path)
    with opened(tmp_path / "profile") as page:
        for width in (1080, 400):
            page.open(path, width=width)
            page.wait(READY)
            assert page.evaluate(CHARTS) == 3
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if width == 1080:
                assert page.evaluate(SCROLLING) == 0
        assert page.complaints() == []
        assert set(page.requested()) == {path.as_uri()}
