# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm doctor --measure``: names, files and the table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from rmm_uvm.cli.json_output import write_json
from rmm_uvm.cli.main import SUBCOMMANDS, LazyGroup
from rmm_uvm.cli.measure import keep_machine, render_measurement
from rmm_uvm.errors import DataError
from rmm_uvm.simulator.measuring import MeasuredFigures, Measurement, Timing
from rmm_uvm.simulator.measuring.measure import machine_of, similar_machine
from rmm_uvm.support.machine_files import load_machine, machine_names
from rmm_uvm.support.machine_profile import CONSTANTS

BASE = load_machine("a100-pcie4")
FIGURES = MeasuredFigures(device_bytes=48 << 30, devices=2, copy_to_device=Timing(1 << 30, 0.05))
MACHINE = machine_of(FIGURES, BASE, name="mine", gpu="NVIDIA L40S, 48 GiB", driver="580.95.05")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(LazyGroup(SUBCOMMANDS, name="rmm-uvm"), ["doctor", *arguments])


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "settings"


def printed() -> list[str]:
    console = Console(file=io.StringIO(), width=80, markup=False, highlight=False)
    console.print(render_measurement(Measurement(MACHINE, FIGURES, BASE)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_table_has_each_constant_beside_the_packages_with_its_label() -> None:
    lines = printed()
    assert lines[0].startswith("NVIDIA L40S, 48 GiB; 21.5 bytes/ns to the device")
    assert "a100-pcie4 (published" in " ".join(lines)
    assert [line.split()[0] for line in lines if line.split()[0] in CONSTANTS] == list(CONSTANTS)
    assert max(map(len, lines)) <= 80


def test_table_tells_what_was_measured_from_what_was_not() -> None:
    rows = {line.split()[0]: line.split()[1:] for line in printed()}
    assert rows["to_device_bytes_per_ns"] == ["bytes/ns", "21.5", "26"]
    assert rows["copy_ns"] == ["ns", "not", "measured", "1,400"]
    assert rows["device_bytes"] == ["bytes", "51,539,607,552", "85,899,345,920"]


def test_keep_machine_makes_it_known_by_its_name(settings: Path) -> None:
    path = keep_machine(MACHINE, is_asked=True)
    assert path == settings / "rmm-uvm/machines/mine.toml"
    assert machine_names()[-1] == "mine"
    assert load_machine("mine") == MACHINE


def test_keep_machine_in_no_folder_says_so(settings: Path) -> None:
    settings.write_text("a file")
    with pytest.raises(DataError, match="cannot be made: Not a directory"):
        keep_machine(MACHINE, is_asked=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--measure", "--save", "a/b"], "Error: --save 'a/b': use 1 to 64 letters"),
        (["--measure", "--save", ""], "Error: --save '': use 1 to 64 letters"),
        (["--measure", "--save", "h200-pcie5"], "the package has a machine of this name"),
    ],
)
def test_measure_under_a_name_that_cannot_be_is_one_line_and_status_1(
    arguments: list[str], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--save", "mine"], ["--device", "0"]])
def test_option_of_measuring_without_it_is_wrong_usage(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert f"{arguments[0]} goes with --measure" in result.output


def test_measure_device_that_is_not_there_is_one_line_and_status_1(settings: Path) -> None:
    result = run("--measure", "--device", "4096")
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert not settings.exists()


def test_doctor_json_goes_to_a_file_when_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    result = run("--json", str(path))
    assert result.output == ""
    assert json.loads(path.read_text())["is_installable"] is (result.exit_code == 0)


def test_json_into_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the report cannot be written to .*: No such file"):
        write_json({}, str(tmp_path / "none" / "report.json"))


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("NVIDIA H200", "h200-pcie5"),
        ("NVIDIA H200 NVL", "h200-pcie5"),
        ("NVIDIA GH200 480GB", "gh200-c2c"),
        ("NVIDIA A100-SXM4-80GB", "a100-pcie4"),
        ("Tesla V100-PCIE-32GB", "v100-pcie3"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx1080ti-pcie3"),
        ("NVIDIA GeForce RTX 3080 Ti", "rtx3080ti-pcie4"),
        ("NVIDIA L40S", "l40s-pcie4"),
        ("NVIDIA L40", "h200-pcie5"),
        ("NVIDIA H100 80GB HBM3", "h100-pcie5"),
        ("NVIDIA A10", "a10-pcie4"),
        ("NVIDIA B200", "b200-pcie5"),
        ("", "h200-pcie5"),
    ],
)
def test_similar_machine_is_that_of_the_same_gpu(gpu: str, name: str) -> None:
    assert similar_machine(gpu).name == name
