# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rmm-uvm mortgage``: options, what is printed, exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("xgboost")

from click.testing import CliRunner, Result

from rmm_uvm.cli.main import make_group
from rmm_uvm_mortgage.cli import command as mortgage
from rmm_uvm_mortgage.cli.request import TrainParts
from rmm_uvm_mortgage.memory import MEMORIES

SMALL = ["--engine", "pandas", "--rounds", "1"]


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="module", autouse=True)
def _fonts_are_open(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Draw once: matplotlib keeps the font files open that it has used."""
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.text(0, 0, "normal")
    figure.text(0, 0, "bold", weight="bold")
    figure.savefig(tmp_path_factory.mktemp("fonts") / "text.svg")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(make_group(), ["mortgage", *map(str, arguments)])


@pytest.mark.parametrize(("more", "folders"), [([], 1), (["--compare", "--memory", "cuda"], 2)])
def test_run_that_is_terminated_leaves_no_folder(
    mortgage_data: Path, tmp_path: Path, more: list[str], folders: int
) -> None:
    (tmp_path / "temporary").mkdir()
    words = ["mortgage", *SMALL, "--rounds", "1000000", "--data", str(mortgage_data), *more]
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "rmm_uvm.cli", *words],
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.DEVNULL,
    )
    with child:
        end_seconds = time.monotonic() + 60
        while sum(map(Path.is_dir, (tmp_path / "temporary").iterdir())) < folders:
            assert child.poll() is None
            assert time.monotonic() < end_seconds
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == -signal.SIGTERM
    # Folders: `tempfile` of a process that ends early may leave the file it tried the place with.
    assert not any(map(Path.is_dir, (tmp_path / "temporary").iterdir()))


def test_memory_names_of_the_option_are_all_memories() -> None:
    assert set(mortgage.MEMORY_NAMES) == set(MEMORIES)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--data", "x", "--rows", "5"], "--data names a data set"),
        (["--memory", "cuda", "--memory", "managed"], "need --compare"),
        (["--memory", "tape"], "'tape' is not one of"),
        (["--device-memory", "-1"], "--device-memory"),
        (["--device-memory", "lots"], "--device-memory"),
        (["--rows", "0"], "--rows"),
        (["--train-parts", "some"], "neither a number nor max"),
        (["--train-parts", "-1"], "-1 must be 0 or more"),  # before data are made
        (["--train-parts", "MAX", "--workers", "2"], "max cannot be used with --workers"),
        (["--rows", "10", "--loans", "10"], "three ways to give one size"),
        (["--device-budget", "much"], "--device-budget"),
        (["--eviction", "belady", "--device-budget", "1GiB"], "--eviction='belady': use one of"),
        (
            ["--device-budget", "1GiB", "--memory", "cuda"],
            "--device-budget is for --memory managed and managed-nopool",
        ),
        (["--eviction", "lru", "--memory", "cuda"], "--eviction is for --memory managed and"),
        (["--eviction", "lru", "--scheduler", "tcp://x:1"], "--eviction cannot be used with"),
        (
            ["--device-budget", "1GiB", "--scheduler", "tcp://x:1"],
            "--device-budget cannot be used with --scheduler",
        ),
    ],
)
def test_wrong_usage_names_the_option_with_status_2(arguments: list[str], reason: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert reason in result.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--picture", "memory.gif"], "a picture ends in .png or .svg"),
        (["--json", "no/such/directory/file.json"], "there is no directory"),
        (["--json", "-"], "--json -: the tables go to standard output; name a file"),
        (["--features", "-"], "--features -: the tables go to standard output; name a file"),
        (["--data", "/nowhere", "--engine", "pandas"], "no data directory /nowhere"),
        (["--device-memory", "3MiB", "--loans", "20", "--engine", "pandas"], "multiple of 2 MiB"),
    ],
)
def test_error_is_one_line_with_status_1(arguments: list[str], reason: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 1
    error = result.output.splitlines()[-1]
    assert error.startswith("Error: ")
    assert reason in result.output


@pytest.mark.parametrize(("text", "value"), [("MAX", "max"), ("max", "max"), ("0", 0), ("12", 12)])
def test_train_parts_are_a_number_or_max_as_help_writes_it(text: str, value: int | str) -> None:
    assert TrainParts().convert(text, None, None) == value


def test_engine_cudf_without_a_gpu_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    result = invoke("--engine", "cudf")
    assert result.exit_code == 1
    assert "--engine cudf needs a GPU and cuDF: RMM_UVM_DRIVER is simulated" in result.output


def test_run_on_managed_memory_says_first_that_it_is_simulated(
    mortgage_data: Path, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("report.json", "memory.svg", "features.arrow")]
    options = [
        v for pair in zip(("--json", "--picture", "--features"), files, strict=True) for v in pair
    ]
    result = invoke("--data", mortgage_data, *SMALL, *options)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "SIMULATED DEVICE: no GPU is used"
    assert [line.split(":")[0].strip() for line in lines[2:5]] == ["real", "modelled", "not shown"]
    assert "identical to plain pandas" in result.output
    plain: dict[str, Any] = json.loads(files[0].read_text())
    assert plain["memory"] == "managed"
    assert plain["simulated"] is True
    assert all(path.stat().st_size > 0 for path in files)


def test_run_out_of_cuda_memory_on_the_simulated_device_has_status_0(
    mortgage_data: Path,
) -> None:
    options = ["--memory", "cuda-pool", "--device-memory", "4MiB"]
    result = invoke("--data", mortgage_data, *SMALL, *options)
    assert result.exit_code == 0, result.output
    assert "Out of memory in " in result.output


def test_run_of_a_single_loan_completes() -> None:
    result = invoke(*SMALL, "--loans", "1")
    assert result.exit_code == 0, result.output
    assert "Largest training set" not in result.output


def test_run_whose_features_differ_has_status_1(
    mortgage_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmm_uvm_mortgage.reference import Reference

    monkeypatch.setattr(Reference, "describe", lambda *_: "different: upb: 1.0 and 2.0")
    result = invoke("--data", mortgage_data, *SMALL)
    assert result.exit_code == 1
    assert "NOT those of plain pandas" in result.output


def test_generated_data_are_used_again(tmp_path: Path) -> None:
    options = [*SMALL, "--loans", "30", "--train-parts", "0"]
    assert invoke(*options).exit_code == 0
    (directory,) = (tmp_path / "cache/rmm-uvm/mortgage").iterdir()
    made = (directory / "perf/Performance_2000Q1.txt").stat().st_mtime_ns
    assert invoke(*options).exit_code == 0
    assert (directory / "perf/Performance_2000Q1.txt").stat().st_mtime_ns == made


@pytest.mark.nightly
@pytest.mark.timeout(400)
def test_compare_prints_both_tables_and_writes_all_runs(
    mortgage_data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    memories = ["--memory", "managed", "--memory", "cuda-pool"]
    result = invoke("--data", mortgage_data, *SMALL, "--compare", *memories, "--json", path)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("SIMULATED DEVICE")
    for expected in ("Does it finish?", "What moved", "Fragmentation", "identical to plain"):
        assert expected in result.output
    plain = json.loads(path.read_text())
    assert [(run["memory"], run["split"]) for run in plain["runs"]] == [
        ("managed", 1),
        ("cuda-pool", 1),
        ("cuda-pool", 4),
    ]
    assert [case["completed"] for case in plain["fragmentation"]] == [False, True]


def test_run_out_of_managed_memory_has_status_1(mortgage_data: Path) -> None:
    # XGBoost's own cudaMalloc needs more than 32 MiB, whatever is evicted.
    result = invoke("--data", mortgage_data, *SMALL, "--device-memory", "16MiB")
    assert result.exit_code == 1
    assert "Out of memory in train" in result.output
