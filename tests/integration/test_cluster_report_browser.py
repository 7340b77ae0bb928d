# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a cluster in a real browser: light, quick to open, drawn where it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rmm_uvm.dask.reports.gathered import ClusterReport

from ..unit.dask.reports import clusters
from .browser import Page, opened

READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents.every(d => d.is_idle)"
WIDTHS = """
[...document.querySelectorAll('{} .chart [data-root-id] > *')].map((one) => one.offsetWidth)
"""
MOST_SECONDS = 3.0
MOST_BYTES = 10_000_000

# Starting a browser on a busy machine takes its time; so does Bokeh with 16 workers.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "cluster.html"
    ClusterReport(clusters.hour(16)).save_html(path)
    return path


def test_report_of_16_workers_is_light_and_opens_quickly(page: Page, report: Path) -> None:
    assert report.stat().st_size < MOST_BYTES

    page.open(report)
    page.wait(READY)

    # Processor time, since the machine may be busy.
    assert page.processor_seconds() < MOST_SECONDS
    assert page.evaluate("Bokeh.documents.length") == 1  # no worker's charts are drawn yet
    assert page.complaints() == []
    assert page.requested() == [report.as_uri()]


@pytest.mark.parametrize("how", ["a[href='#worker-3']", "#worker-3 > summary"])
def test_worker_that_is_opened_draws_its_charts_once(page: Page, report: Path, how: str) -> None:
    page.open(report)
    page.wait(READY)
    page.evaluate(f'document.querySelector("{how}").click()')
    page.wait("Bokeh.documents.length == 2 && Bokeh.documents.every(d => d.is_idle)")

    assert page.evaluate("document.querySelectorAll('details[open]').length") == 1
    assert min(page.evaluate(WIDTHS.format("#worker-3"))) > 300
    summary = 'document.querySelector("#worker-3 > summary").click()'
    page.evaluate(summary)
    page.evaluate(summary)
    page.wait("document.querySelector('#worker-3').open")
    assert page.evaluate("Bokeh.documents.length") == 2
    assert page.complaints() == []


@pytest.mark.parametrize("width", [360, 1400])
def test_report_fits_any_window(page: Page, report: Path, width: int) -> None:
    page.open(report, width=width)
    page.wait(READY)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert 0 < max(page.evaluate(WIDTHS.format("main"))) <= width


def test_link_to_a_worker_opens_it(page: Page, report: Path) -> None:
    page.call("Page.navigate", url="about:blank")
    page.wait("location.href == 'about:blank'")
    page.call("Page.navigate", url=f"{report.as_uri()}#worker-7")
    page.wait(f"{READY} && Bokeh.documents.length == 2")

    assert page.evaluate("document.querySelector('details[open]').id") == "worker-7"


def test_report_of_hostile_names_breaks_nothing(page: Page, tmp_path: Path) -> None:
    ClusterReport(clusters.hostile()).save_html(tmp_path / "cluster.html")
    page.events.clear()
    page.open(tmp_path / "cluster.html")
    page.wait(READY)
    page.evaluate("document.querySelectorAll('summary').forEach((one) => one.click())")
    page.wait("Bokeh.documents.length == 5 && Bokeh.documents.every(d => d.is_idle)")

    assert page.evaluate("document.title") == "Cluster memory report"
    assert page.complaints() == []
