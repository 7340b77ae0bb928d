# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The HTML page, as far as it can be judged without a browser."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import html
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from bokeh.core.properties import value

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.report import Report
from rmm_uvm.report.charts import charts
from rmm_uvm.report.drawing import draw
from rmm_uvm.report.strip import mark_levels, marks_seconds, shown_findings, shown_stages

from . import recordings

SHAPES = ["fitting", "oversubscribed", "two_devices", "blind", "unknown", "attributed", "hostile"]


@functools.cache
def page_of(shape: str) -> str:
    """Return the page of a recording, made once: Bokeh takes a second for each."""
    return Report(getattr(recordings, shape)()).html()


class Outline(HTMLParser):
    """Tags, scripts and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "link", "img", "rect", "path"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        elif "style" not in self._open:
            self.text += data


@pytest.mark.parametrize("shape", SHAPES)
def test_page_of_any_recording_asks_for_nothing(shape: str) -> None:
    outline = Outline(page_of(shape))

    for tag, attributes in outline.tags:
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
        assert not {"src", "href", "onclick", "onerror"} & set(attributes)
    assert ("html", {"lang": "en"}) in outline.tags


@pytest.mark.parametrize("shape", SHAPES)
def test_page_of_any_recording_allows_only_its_own_scripts(shape: str) -> None:
    page = page_of(shape)

    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src ")
    assert "unsafe" not in policy.split("style-src")[0]
    for script in Outline(page).scripts:
        digest = hashlib.sha256(script.encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_page_of_hostile_names_is_the_same_tags_as_of_tame_ones() -> None:
    page = page_of("hostile")

    assert "<img src=x" not in page
    assert [tag for tag, _ in Outline(page).tags if tag == "script"] == ["script"] * 3
    text = Outline(page).text
    assert "<script>document.title='broken'</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "long " * 500 not in page


def test_page_shows_commands_as_code_and_no_backticks() -> None:
    # GIVEN a source that is off, for a reason with a command, and a finding that names another
    reason = "<b>no</b> node: run `nvidia-modprobe -u -c 0` as root"
    made = recordings.oversubscribed()
    finding = dataclasses.replace(
        made.findings[0], message=reason, remedy="run `rmm-uvm doctor` to see; one ` is text"
    )
    sources = {**made.sources, "nvml": Availability(False, reason)}
    page = Report(dataclasses.replace(made, findings=(finding,), sources=sources)).html()

    # THEN advice, all warnings and sources have code, and tooltips have its text
    assert page.count("<strong>run <code>rmm-uvm doctor</code> to see; one ` is text</strong>") == 1
    escaped = "&lt;b&gt;no&lt;/b&gt; node: run <code>nvidia-modprobe -u -c 0</code> as root"
    assert page.count(escaped) == 3
    assert "run rmm-uvm doctor to see" in page
    assert "`rmm-uvm doctor`" not in page
    assert "`nvidia-modprobe" not in page


def test_page_gives_advice_before_charts_and_tables() -> None:
    page = page_of("attributed")

    order = [page.index(part) for part in (
        '<ol class="advice">', 'class="figures"', 'id="strip_0-title"', 'id="memory_0-title"',
        'id="rates_0-title"', 'id="host_to_device_0-title"', "By stage</caption>", 'id="busiest"',
        'id="notes"', 'id="warnings"', 'id="sources"', 'id="settings"',
    )]  # fmt: skip
    assert order == sorted(order)


def test_page_of_estimates_says_that_they_are() -> None:
    text = Outline(page_of("oversubscribed")).text
    assert "resident (estimate)" in text

    told = "Rates are modelled bytes over time of the host"
    assert told not in Outline(Report(recordings.oversubscribed()).html()).text
    text = Outline(Report(recordings.oversubscribed(simulated=True)).html()).text
    assert told in text
    assert "resident (estimate)" not in text
    assert "Memory report (simulated)" in text


def test_page_of_a_fitting_run_says_that_nothing_is_to_do() -> None:
    text = Outline(page_of("fitting")).text

    assert "nothing to do: everything fitted" in text
    assert "Stages and warnings" not in text


def test_page_shows_where_a_table_goes_on_past_the_edge() -> None:
    css = page_of("oversubscribed").partition("<style>")[2].partition("</style>")[0]

    rule = css.partition("\n.scroll {")[2].partition("}")[0]
    assert rule.count("no-repeat local") == rule.count("no-repeat scroll") == 2


def test_marks_that_would_overlap_are_in_rows_of_their_own() -> None:
    assert mark_levels([1.0, 1.2, 1.4, 1.5, 60.0], 100.0) == [0, 1, 2, 0, 0]
    assert mark_levels([60.0, 10.0], 100.0) == [0, 0]
    assert mark_levels([], 0.0) == []


def test_page_without_gpu_has_reasons_and_no_charts() -> None:
    outline = Outline(page_of("blind"))

    assert not outline.scripts
    assert "off: no NVIDIA driver is loaded" in outline.text


def test_page_of_unknown_figures_says_so() -> None:
    text = Outline(page_of("unknown")).text

    assert "Nothing to draw: nothing was known about this device's memory." in text


def test_every_figure_of_a_page_has_a_title_and_a_caption() -> None:
    outline = Outline(page_of("two_devices"))

    ids = {attributes.get("id") for _, attributes in outline.tags}
    figures = [attributes for tag, attributes in outline.tags if tag == "figure"]
    assert len(figures) == 6
    for figure in figures:
        assert {figure["aria-labelledby"], figure["aria-describedby"]} <= ids


def test_inline_report_is_one_frame_that_holds_a_page() -> None:
    shown = Report(recordings.oversubscribed())._repr_html_()

    assert shown is not None
    assert shown.isascii()
    tags = Outline(shown).tags
    assert [tag for tag, _ in tags] == ["div", "iframe"]
    assert tags[1][1]["sandbox"] == "allow-scripts allow-downloads"
    inside = html.unescape(shown)
    assert 'id="memory_0-title"' in inside
    assert 'id="settings"' not in inside


def test_marks_of_crowded_findings_keep_the_worst() -> None:
    one = recordings.findings_of()[0]
    crowd = [
        dataclasses.replace(one, time_seconds=i * 0.01, value=float(i % 997)) for i in range(5000)
    ]
    recording = dataclasses.replace(recordings.oversubscribed(), findings=tuple(crowd))

    shown = shown_findings(recording, 0)

    assert len(shown) <= 300
    assert max(finding.value for finding in shown) == 996.0
    assert shown_findings(recording, 1) == []


def test_bands_of_very_many_stages_are_the_longest() -> None:
    stages = [Stage(f"{i}", i * 0.01, i * 0.01 + 0.005) for i in range(5000)]
    stages.append(Stage("long", 1.0, 40.0, depth=1))
    recording = dataclasses.replace(recordings.oversubscribed(), stages=tuple(stages))

    shown = shown_stages(recording)

    assert len(shown) == 300
    assert "long" in {stage.name for stage in shown}
    assert len(marks_seconds(recording)) == 604


def test_marks_of_findings_have_one_pattern_and_not_a_column_of_them() -> None:
    recording = recordings.oversubscribed()
    chart = draw(charts(recording, recording.devices[0], 100)[1])
    (drawn,) = (one for one in chart.renderers if type(one.glyph).__name__ == "VSpan")
    assert drawn.glyph.line_dash == value([1, 3])
    assert set(drawn.data_source.data) == {"x"}


@pytest.mark.parametrize(("spikes", "cut"), [(0, False), (1, True), (3, True), (30, False)])
def test_axis_of_rates_is_that_of_the_steady_part(spikes: int, cut: bool) -> None:
    recording = recordings.fitting()
    facts = recording.devices[0]
    rows = np.zeros(100, SAMPLE_DTYPE)
    rows["time_ns"] = np.arange(1, 101) * 10**8
    moved = np.full(100, 10**8)  # 1 GB/s
    moved[10 : 10 + spikes] = 30 * 10**8
    rows["host_to_device_bytes"] = np.cumsum(moved)
    rows["known"] = int(Known.COUNTERS)
    recording = dataclasses.replace(recording, samples=rows, findings=(), stages=())
    (rates,) = (one for one in charts(recording, facts, 1000) if one.name == "rates_0")
    highest = 30.0 if spikes else 1.0
    assert f"The highest rate is {highest:.2f} GB/s." in rates.caption
    assert rates.y.end == pytest.approx(1.08 * (1.25 if cut else highest))
    told = f"The axis ends at 1.25 GB/s, so that the rest can be read: in {spikes} of 100 samples"
    assert (told in rates.caption) is cut
