# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/common/record.py`: what runs, what it says, how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .scripts import script

record = script("benchmarks", "common/record")
Benchmark, FILE = record.Benchmark, record.FILE


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Offer a single benchmark; the file is its committed result."""
    (tmp_path / "results").mkdir()
    (tmp_path / "tiny.py").write_text(
        "import json, os, pathlib, sys\n"
        "assert os.environ['RMM_UVM_DRIVER'] == 'simulated'\n"
        "pathlib.Path(sys.argv[2]).write_text(json.dumps({'moved_bytes': 7}))\n"
    )
    table = (Benchmark("tiny", ("tiny.py", "--json", FILE)),)
    table += (Benchmark("large", ("large.py", FILE), gpus=1, clocked=True),)
    monkeypatch.setattr(record, "BENCHMARKS", table)
    monkeypatch.setattr(record, "HERE", tmp_path)
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(record, "gpus_here", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["record.py"])
    result = tmp_path / "results" / "tiny.json"
    result.write_text(json.dumps({"moved_bytes": 7}))
    return result


def test_record_with_equal_figures_ends_with_0(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.main() == 0
    said = capsys.readouterr().out
    assert "equal" in said
    assert "needs 1 GPUs, here are 0" in said


def test_record_with_another_figure_names_it_and_ends_with_1(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one.write_text(json.dumps({"moved_bytes": 8}))

    assert record.main() == 1
    assert "tiny: moved_bytes: 8 is 7 now" in capsys.readouterr().out


def test_record_leaves_committed_results_alone(one: Path) -> None:
    one.write_text(json.dumps({"moved_bytes": 8}))
    record.main()

    assert json.loads(one.read_text()) == {"moved_bytes": 8}


def test_record_of_a_script_that_fails_says_what_it_said_last(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (one.parent.parent / "tiny.py").write_text("raise SystemExit('no such card')\n")

    assert record.main() == 1
    assert "no result; it said: no such card" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("committed", "clocked", "said"),
    [
        ({"seconds": 2.0}, True, "tiny: seconds: 2.0 is missing now"),
        ({"verdicts": {"fast": True}}, True, "tiny: verdicts/fast: judged is missing now"),
        ({"moved_bytes": 7}, True, "tiny: nothing compared"),
        ({"moved_bytes": 7, "peak": 1}, False, "tiny: peak: 1 is missing now"),
    ],
)
def test_record_of_a_script_that_lost_its_figures_ends_with_1(
    one: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    committed: dict[str, object],
    clocked: bool,
    said: str,
) -> None:
    one.write_text(json.dumps(committed))
    tiny = Benchmark("tiny", ("tiny.py", "--json", FILE), clocked=clocked)
    monkeypatch.setattr(record, "BENCHMARKS", (tiny,))

    assert record.main() == 1
    told = capsys.readouterr().out
    assert said in told
    assert "within the allowance" not in told


def test_record_of_a_script_that_ends_with_a_status_says_so(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (one.parent.parent / "tiny.py").open("a") as script_file:
        script_file.write("raise SystemExit(3)\n")

    assert record.main() == 1
    assert "tiny: the script ended with status 3" in capsys.readouterr().out


def test_record_of_a_bound_that_was_missed_before_ends_with_0_and_tells_the_status(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {"verdicts": {"fast": {"reached": False}}}
    one.write_text(json.dumps(result))
    script_file = one.parent.parent / "tiny.py"
    text = script_file.read_text().replace("{'moved_bytes': 7}", repr(result))
    script_file.write_text(text + "raise SystemExit(1)\n")

    assert record.main() == 0
    assert "equal; ended with status 1" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "runs"),
    [([], False), (["--long"], True), (["--only", "tiny"], True), (["--long", "--list"], True)],
)
def test_record_runs_what_takes_long_with_the_switch_or_where_it_is_named(
    one: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    runs: bool,
) -> None:
    tiny = Benchmark("tiny", ("tiny.py", "--json", FILE), long=True)
    monkeypatch.setattr(record, "BENCHMARKS", (tiny,))
    monkeypatch.setattr(sys, "argv", ["record.py", *words])

    assert record.main() == (0 if runs else 2)
    assert ("takes long: with --long" in capsys.readouterr().out) is not runs


ROWS = """
import json, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(json.dumps({"rows": 7}))
time.sleep(float(sys.argv[3]))
raise SystemExit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("status", "wait", "said"),
    [(0, 0, ""), (3, 0, "the script ended with status 3"), (0, 30, "not ended after 0.5 s")],
)
def test_record_says_how_a_command_ended(
    one: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    wait: float,
    said: str,
) -> None:
    (one.parent.parent / "rows.py").write_text(ROWS)
    one.write_text(json.dumps({"rows": 7}))
    words = ("rows.py", FILE, str(status), str(wait))
    tiny = Benchmark("tiny", words, limit_seconds=0.5 if wait else 60)
    monkeypatch.setattr(record, "BENCHMARKS", (tiny,))

    assert record.main() == (1 if said else 0)
    assert (said or "equal") in capsys.readouterr().out


def test_record_beside_gpus_without_a_cap_runs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Card:
        def memory(self) -> tuple[int, int]:
            return 1 << 30, 1 << 30

    monkeypatch.setattr("rmm_uvm.drivers.cuda_driver", lambda device: Card())

    with pytest.raises(SystemExit, match="set RMM_UVM_MANAGED_LIMIT"):
        record.gpus_here()
