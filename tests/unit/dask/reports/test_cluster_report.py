# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a cluster as text, JSON and HTML, as far as it can be judged without a browser."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from rmm_uvm.dask.reports.advice import sums_of
from rmm_uvm.dask.reports.charts import charts
from rmm_uvm.dask.reports.gathered import ClusterReport, report
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm.report.as_dict import as_dict

from ...report import recordings
from ...report.test_page import Outline
from . import clusters
from .clusters import GIB, run, worker

SHAPES = ("even", "hostile")


def uneven() -> ClusterReport:
    workers = [
        worker("0", run(0.5)),
        worker("1", run(1.8, findings=recordings.findings_of())),
        worker("2", run(0.5), comm={"sent_overflow_bytes": GIB, "sent_staged_bytes": 2 * GIB}),
        worker("3", reason="rmm_uvm is not installed there"),
    ]
    return ClusterReport(workers, "2026-11-21T17:00:00+00:00", "tcp://10.0.0.1:8786")


@functools.cache
def page_of(shape: str) -> str:
    """Return the page of a cluster, made once: Bokeh takes a second for each worker."""
    return ClusterReport(getattr(clusters, shape)()).html()


@functools.cache
def uneven_page() -> str:
    return uneven().html()


def test_text_gives_advice_then_a_line_for_each_worker_then_reasons() -> None:
    text = str(uneven())

    assert text == repr(uneven())
    lines = text.splitlines()
    assert lines[0] == "rmm_uvm: cluster of 4 workers, 1 without figures, watched for 30.0 s"
    order = [text.index(part) for part in (
        "1. make ipc-pool-size larger", "spread the data evenly", "worker      ", "\n0  ", "\n1  ",
        "worker 3: no figures: rmm_uvm is not installed there",
    )]  # fmt: skip
    assert order == sorted(order)
    assert "overflow" in text
    assert all(cell_len(line) <= 80 for line in lines)


def test_text_of_workers_on_which_all_fits_says_that_nothing_is_to_do() -> None:
    text = str(ClusterReport(clusters.even()))

    assert "nothing to do: everything fitted" in text
    assert "evicted" in text
    assert "overflow" not in text


def test_text_of_simulated_workers_says_so_first() -> None:
    text = str(ClusterReport([worker("0", recordings.oversubscribed(simulated=True))]))

    assert text.startswith("rmm_uvm: simulated: residency is modelled")


def test_text_of_a_large_cluster_stays_short() -> None:
    many = [worker(str(n), run(0.5)) for n in range(20)]
    silent = [worker(f"silent {n}") for n in range(20)]
    text = str(ClusterReport([*many, *silent]))

    assert "and 4 more workers\n" in text
    assert "and 4 more workers without figures" in text
    assert len(text.splitlines()) < 50


def test_text_of_hostile_names_has_no_control_characters_and_fits() -> None:
    text = str(ClusterReport(clusters.hostile()))

    assert not [c for c in text if ord(c) < 32 and c != "\n"]
    assert all(cell_len(line) <= 80 for line in text.splitlines())


def test_cluster_without_workers_has_a_report(tmp_path: Path) -> None:
    empty = ClusterReport([])

    assert str(empty).startswith("rmm_uvm: cluster of 0 workers")
    assert empty.to_dict()["workers"] == []
    assert "no advice: no worker could be watched" in empty.html()


def test_dictionary_has_every_worker_with_its_own_report(tmp_path: Path) -> None:
    made = uneven()
    made.save_json(tmp_path / "cluster.json")
    told = json.loads((tmp_path / "cluster.json").read_text())

    assert told == json.loads(json.dumps(made.to_dict()))
    assert (told["format"], told["format_version"]) == ("rmm_uvm cluster report", 1)
    assert told["scheduler"] == "tcp://10.0.0.1:8786"
    assert [one["kind"] for one in told["advice"]][:2] == ["overflow", "skew"]
    assert told["verdict"] == ""
    assert [one["reason"] for one in told["workers"]] == [
        "",
        "",
        "",
        "rmm_uvm is not installed there",
    ]
    assert told["workers"][3]["report"] is None
    own: Any = made.workers[1].recording
    assert told["workers"][1]["report"] == json.loads(json.dumps(as_dict(own)))


def test_page_has_advice_before_workers_and_a_folded_section_for_each() -> None:
    page = uneven_page()

    order = [page.index(part) for part in (
        '<ol class="advice">', 'id="cluster_memory-title"', 'id="cluster_moved-title"',
        "Figures of every worker</caption>", '<details id="worker-0">', '<details id="worker-3">',
    )]  # fmt: skip
    assert order == sorted(order)
    outline = Outline(page)
    details = [attributes for tag, attributes in outline.tags if tag == "details"]
    assert [one["id"] for one in details] == [f"worker-{number}" for number in range(4)]
    assert not any("open" in one for one in details)
    assert outline.text.count("no figures: rmm_uvm is not installed there") == 1
    assert "make ipc-pool-size larger" in outline.text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "In no sample of the 3 workers was anything allocated."),
        (
            {"peak_live_bytes": str(1 << 40)},
            "3 of 3 workers held more than fits on their device; the fullest was worker 0 with "
            "1.00 TiB.",
        ),
    ],
)
def test_caption_believes_exact_peaks_and_else_says_no_more_than_samples_do(
    settings: dict[str, str], said: str
) -> None:
    recording = clusters.run(0.0, settings=settings)
    recording.samples["footprint_bytes"] = 0
    told = [sums_of(worker(str(number), recording)) for number in range(3)]

    assert charts(told)[0].caption == said


def test_page_has_every_id_once_and_every_link_leads_somewhere() -> None:
    outline = Outline(uneven_page())
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]

    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in outline.tags if tag == "a"]
    assert {link.removeprefix("#") for link in links if link} <= set(ids)
    for tag, attributes in outline.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name, ids[0]) in ids, (tag, attributes)


@pytest.mark.parametrize("shape", SHAPES)
def test_page_of_any_cluster_asks_for_nothing_and_runs_only_its_own_scripts(shape: str) -> None:
    page = page_of(shape)
    outline = Outline(page)

    for tag, attributes in outline.tags:
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
        assert not {"src", "onclick", "onerror"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src ")
    for script in outline.scripts:
        digest = hashlib.sha256(script.encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_page_of_hostile_names_shows_them_as_text() -> None:
    page = page_of("hostile")

    assert "<img src=x" not in page
    scripts = [tag for tag, _ in Outline(page).tags if tag == "script"]
    assert len(scripts) == 4 + 4  # Bokeh, its level and printing, opening, overview; workers'
    assert "<script>document.title='broken'</script>" in Outline(page).text
    assert "long " * 500 not in page


def test_page_of_silent_workers_has_reasons_and_no_library() -> None:
    page = ClusterReport([worker("0"), worker("1")]).html()

    assert len(page) < 30_000
    assert Outline(page).text.count("no figures: it left") == 2


def test_html_without_bokeh_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)

    with pytest.raises(AvailabilityError, match=r"pip install 'rmm-uvm\[report\]'"):
        uneven().html()
    assert "cluster of 4 workers" in str(uneven())


def test_report_that_cannot_be_written_is_a_data_error(tmp_path: Path) -> None:
    for save in (uneven().save_json, uneven().save_html):
        with pytest.raises(DataError, match="the report"):
            save(tmp_path / "missing" / "cluster")


@pytest.mark.parametrize("timeout_seconds", [0, -1.0, "soon", True, None, float("nan")])
def test_patience_that_is_none_is_a_configuration_error(timeout_seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match="seconds above 0"):
        report(None, timeout_seconds=timeout_seconds)


@pytest.mark.parametrize("other", [None, "tcp://127.0.0.1:8786"])
def test_report_of_what_is_no_client_says_what_to_give(other: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"rmm_uvm.dask.report\(Client\(cluster\)\)"):
        report(other)


def test_scheduler_and_client_need_neither_rmm_nor_the_compiled_part() -> None:
    program = """
import sys
sys.modules["rmm"] = sys.modules["rmm_uvm._lib"] = None
import rmm_uvm.dask, rmm_uvm.dask.dashboard.page
from rmm_uvm.dask.reports.gathered import ClusterReport
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
rmm_uvm.dask.report, rmm_uvm.dask.warn_here, rmm_uvm.dask.UvmSchedulerPlugin
ClusterReport([WorkerRecording("tcp://10.0.0.1:5", "0", "", reason="it left")]).html()
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)
