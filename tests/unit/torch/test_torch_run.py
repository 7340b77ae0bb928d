# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run --torch``: programs as they are, in processes of their own."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmm_uvm.cli import run as cli
from rmm_uvm.run.request import RunRequest
from rmm_uvm.run.torch_memory import told

REPOSITORY = Path(__file__).resolve().parents[3]
MIB = 1 << 20

TRAINS = """
    import sys
    assert "torch" not in sys.modules
    import torch
    from fake_cuda import cuda
    assert cuda.routed  # as soon as torch is imported
    MIB = 1 << 20
    kept = [cuda.allocate(size * MIB) for size in map(int, sys.argv[1:])]
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    print("trained")
"""


BEGIN = f"""
import sys
sys.path.append({str(REPOSITORY)!r})
from tests.support.run_with_fake_torch import arrange
arrange()
from rmm_uvm.cli.main import main
main()
"""


def run(folder: Path, *words: str, text: str = TRAINS) -> subprocess.CompletedProcess[str]:
    """Run a program with the fake GPU; options first, what follows ``--`` is the program's."""
    (folder / "train.py").write_text(textwrap.dedent(text))
    place = words.index("--")
    return subprocess.run(
        [
            *(sys.executable, "-P", "-c", BEGIN, "run"),
            *("--torch", "--libraries", "none", *words[:place]),
            *("train.py", *words[place + 1 :]),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def lines_of_torch(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("rmm_uvm: torch: ")]


@pytest.mark.parametrize("pool", [["--no-pool"], []])
def test_program_that_fits_is_told_so(tmp_path: Path, pool: list[str]) -> None:
    done = run(tmp_path, *pool, "--device-budget", "64MiB", "--", "30")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\n"
    assert lines_of_torch(done) == [
        "rmm_uvm: torch: everything fitted in the budget of 64.00 MiB, nothing was moved"
    ]


@pytest.mark.parametrize("pool", [["--no-pool"], []])
def test_program_past_the_budget_is_told_what_was_moved(tmp_path: Path, pool: list[str]) -> None:
    options = ["--device-budget", "64MiB", "--eviction", "lru", "--evict", "activations"]
    done = run(tmp_path, *pool, *options, "--eager", "--", "30", "30", "30")
    assert done.returncode == 0, done.stderr
    (line,) = lines_of_torch(done)
    assert line.startswith("rmm_uvm: torch: past the budget of 64.00 MiB: ")
    moved = re.search(r"([0-9.]+) MiB moved to the host", line)
    assert moved is not None
    assert float(moved[1]) > 20
    assert line.endswith("3 steps of optimizers seen since")


def test_options_reach_the_budget(tmp_path: Path) -> None:
    text = """
        import torch
        import rmm_uvm.torch
        memory = rmm_uvm.torch.installed_memory(0)
        pins = memory._pinned is not None
        print(memory.statistics()["residency"]["policy"], pins, memory._activations)
    """
    options = ["--device-budget", "64MiB", "--eviction", "fifo", "--evict", "activations"]
    assert run(tmp_path, *options, "--", text=text).stdout == "fifo True migrate\n"
    options += ["--activations", "copy"]
    assert run(tmp_path, *options, "--", text=text).stdout == "fifo True copy\n"


def test_budget_that_is_not_given_is_what_others_leave_of_the_device(tmp_path: Path) -> None:
    done = run(tmp_path, "--")
    assert "fitted in the budget of 496.00 MiB" in done.stderr  # of 512 MiB


def test_program_that_never_imports_torch_is_told_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--", text="print('nothing')")
    assert done.returncode == 0
    assert lines_of_torch(done) == [
        "rmm_uvm: torch: not on managed memory: the program did not import it"
    ]


def test_torch_that_cannot_be_served_runs_as_it_is_and_says_why_at_once(tmp_path: Path) -> None:
    text = """
        import sys
        print("before", file=sys.stderr)
        import torch
        print("after", file=sys.stderr)
    """
    # Without the fake, torch for CPUs comes.
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-c"),
            BEGIN.replace("arrange()", "arrange(gpu_of_torch=False)"),
            *("run", "--torch", "--libraries", "none", str(_script(tmp_path, text))),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    why = [place for place, line in enumerate(lines) if "torch: not on managed memory" in line]
    assert "sees no GPU" in lines[why[0]]
    assert lines.index("before") < why[0] < lines.index("after")


def _script(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_program_that_installs_by_itself_is_refused_in_one_line(tmp_path: Path) -> None:
    text = """
        import torch
        import rmm_uvm.torch
        try:
            rmm_uvm.torch.install()
        except RuntimeError as error:
            print(error)
    """
    done = run(tmp_path, "--", text=text)
    assert done.stdout == ("torch allocates managed memory on device 0 already: close that first\n")


def test_exit_status_and_error_are_the_programs(tmp_path: Path) -> None:
    done = run(tmp_path, "--", text="import torch\nraise SystemExit(7)")
    assert done.returncode == 7
    assert len(lines_of_torch(done)) == 1


def test_quiet_prints_no_line(tmp_path: Path) -> None:
    assert not lines_of_torch(run(tmp_path, "--quiet", "--"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--torch"], "--torch needs a GPU"),
        (["--torch", "--device", "simulated"], r"simulates one by rmm_uvm\.torch\.simulated\(\)"),
        (["--torch", "--libraries", "cupy,torch"], "two allocators"),
        (["--evict", "activations"], "--evict is for --torch"),
        (["--activations", "copy"], "--activations is for --torch"),
        (["--no-eager"], "--eager and --no-eager is for --torch"),
        (["--evict", "weights"], "--evict='weights': use one of"),
    ],
)
def test_option_that_cannot_be_used_is_one_line_of_usage(
    words: list[str], message: str, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    path = _script(tmp_path, f"open({str(ran)!r}, 'w')")
    result = CliRunner().invoke(cli.command, [*words, str(path)])
    assert result.exit_code == 2
    assert re.search(message, result.output)
    assert not ran.exists()


def test_budget_that_cannot_be_used_is_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rmm_uvm

    device = rmm_uvm.simulated_device(512 * MIB)
    monkeypatch.setattr("rmm_uvm.run.torch_memory.choose_driver", lambda *_: device)
    words = ["--torch", "--device-budget", "1GiB", str(_script(tmp_path, ""))]
    result = CliRunner().invoke(cli.command, words)
    assert result.exit_code == 2
    assert "give that or less" in result.output


def test_request_with_torch_travels_as_text() -> None:
    request = RunRequest(torch=True, evict="activations", activations="copy", eager=False)
    assert RunRequest.from_json(request.to_json()) == request


def test_summary_names_one_step_and_a_refusal() -> None:
    residency = dict.fromkeys(
        ("evicted_bytes", "fetched_bytes", "fetched_ahead_bytes", "dropped_bytes"), 3 * MIB
    )
    line = told(
        {
            "acting": True,
            "steps": 1,
            "residency": {"budget_bytes": 64 * MIB, **residency},
            "last_refusal": "no room\nleft",
            "activations": {"copied_bytes": 5 * MIB, "returned_bytes": 4 * MIB},
        }
    )
    assert "; 5.00 MiB of activations copied to the host, 4.00 MiB back" in line
    assert "; 1 step of optimizers seen since; " in line
    assert line.endswith(" back; refused: no room left")
