# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The reference documents say what the code does: names, settings and examples."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import rmm_uvm
import rmm_uvm.drivers
from rmm_uvm.mr import ManagedPool
from rmm_uvm.recording.sample import SAMPLE_DTYPE

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = sorted((REPOSITORY / "docs").rglob("*.md"))


def document(name: str) -> str:
    return (REPOSITORY / "docs" / name).read_text()


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_examples_run(path: Path) -> None:
    assert doctest.testfile(str(path), module_relative=False).failed == 0


@pytest.mark.parametrize(
    "path", [path for path in DOCS if path.parent.name == "libraries"], ids=lambda path: path.name
)
def test_page_of_a_library_says_where_its_handle_comes_from(path: Path) -> None:
    text = path.read_text()
    assert "handle." not in text or "handle = rmm_uvm.reinitialize(" in text


def test_clusters_of_dask_cuda_name_the_protocol_that_results_need() -> None:
    made = re.findall(r"LocalCUDACluster\([^`]+\)", document("use/dask.md"))
    assert made
    assert all('protocol="ucxuvm"' in call for call in made)


def test_metrics_name_every_statistic() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")
    statistics = mr.statistics()
    named = set(re.findall(r"`(\w+)`", document("use/metrics.md")))
    assert {*statistics, *statistics["skipped"], *device.statistics()} <= named
    assert {*driver_counts(device), *SAMPLE_DTYPE.names} <= named


def test_document_that_a_simulated_device_names_has_its_statistics_by_field() -> None:
    source = (REPOSITORY / "rmm_uvm/_lib/sim.pyx").read_text()
    (name,) = re.findall(r"Field by field in\s+``docs/([\w/-]+\.md)``", source)
    _, _, section = document(name).partition("## Simulated device: `device.statistics()`\n")
    rows = re.findall(r"^\| (`\w+`.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    fields = {field for row in rows for field in re.findall(r"`(\w+)`", row)}
    assert fields == set(rmm_uvm.simulated_device("64MiB").statistics())


def driver_counts(device: rmm_uvm.drivers.SimulatedDevice) -> set[str]:
    return set(device.command_totals())


def test_metrics_name_every_source_of_a_monitor() -> None:
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None) as m:
        named = set(re.findall(r"`(\w+)`", document("use/metrics.md")))
        assert set(m.sources) <= named


@pytest.mark.parametrize(
    ("function", "ignored"),
    [
        (rmm_uvm.reinitialize, set()),
        (rmm_uvm.managed_pool, set()),
        (ManagedPool.__new__, {"cls"}),
        (rmm_uvm.monitor, set()),
    ],
)
def test_configuration_names_every_keyword(function: object, ignored: set[str]) -> None:
    keywords = set(inspect.signature(function).parameters) - ignored  # type: ignore[arg-type]
    named = set(re.findall(r"\b(\w+)\b", document("use/configuration.md")))
    assert keywords <= named


def test_cost_of_counting_faults_is_told_alike_wherever_it_is_asked_for() -> None:
    package = Path(rmm_uvm.__file__).parent
    files = ["watch/monitor.py", "watch/sampling/process.py", "integrations/jupyter.py"]
    files += ["cli/top.py", "cli/run.py"]
    texts = [(package / name).read_text() for name in files]
    texts += [document("use/metrics.md"), document("use/configuration.md")]
    for text in texts:
        assert "a program that only faults takes up to 10 % longer" in text.replace("A p", "a p")


def test_dropping_dead_data_is_told_alike_of_replays_and_of_budgets() -> None:
    from rmm_uvm.planner.trials.replaying import replay
    from rmm_uvm.residency import Budget

    assert Budget(1 << 30).discard_dead
    for text in (document("use/planner.md"), replay.__doc__ or "", rmm_uvm.plan.__doc__ or ""):
        said = " ".join(text.split())
        assert "nothing does it yet" not in said
        assert re.search(r"[Bb]udget\b.* by rules of its own", said)
