# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of device memory: it is a file of the kind asked for, and bad paths are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm_mortgage.picture import check, draw
from rmm_uvm_mortgage.result import PipelineResult, StageOutOfMemory, StageTiming
from rmm_uvm_mortgage.run_report import RunReport, StageTotals

MIB = 1 << 20


def report_of(*, simulated: bool = True, ended: bool = False) -> RunReport:
    pipeline = PipelineResult(
        engine="pandas",
        parts=("2000Q1",),
        performance_bytes=1,
        stages=(StageTiming("prep", 1.0, 1),),
        etl_seconds=0.0,
        prep_seconds=1.0,
        train_seconds=0.0,
        out_of_memory=StageOutOfMemory("prep", None, "full") if ended else None,
    )
    timeline = {
        "position": "operations" if simulated else "seconds",
        "samples": [[0, MIB, MIB, 0], [1, 80 * MIB, 60 * MIB, 0], [2, 0, 0, 4 * MIB]],
        "stages": [["load_performance", 0, 1], ["prep", 1, 2]],
    }
    figures = StageTotals("prep", 1, 1.0, 0.0, 80 * MIB, 0, 0)
    return RunReport(
        "managed", "pool", simulated, "device", 64 * MIB, (figures,), pipeline, timeline=timeline
    )


@pytest.fixture(scope="module", autouse=True)
def _fonts_are_open(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Draw once: matplotlib keeps the font files open that it has used."""
    draw([("one", report_of(ended=True))], tmp_path_factory.mktemp("fonts") / "memory.png")


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize(("ending", "begin"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_picture_is_a_file_of_its_kind(
    tmp_path: Path, ending: str, begin: bytes, simulated: bool
) -> None:
    path = tmp_path / f"memory{ending}"
    draw([("one", report_of(simulated=simulated)), ("two", report_of(ended=True))], path)
    assert path.read_bytes().startswith(begin)


def test_picture_as_svg_names_stages_capacity_and_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    path = tmp_path / "memory.svg"
    draw([("cuda-pool, unsplit", report_of(ended=True))], path)
    text = path.read_text()
    for expected in (
        "cuda-pool, unsplit",
        "PREP",
        "device memory",
        "out of memory in prep",
        "Simulated device",
        "footprint",
    ):
        assert expected in text


def test_picture_with_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ends in \.png or \.svg"):
        check(tmp_path / "memory.jpeg")


def test_picture_without_matplotlib_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(AvailabilityError, match="pip install"):
        check(tmp_path / "memory.png")


def test_picture_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written to"):
        draw([("one", report_of())], tmp_path / "missing" / "memory.png")
