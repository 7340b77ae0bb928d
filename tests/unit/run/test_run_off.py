# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run`` with the off switch: the program runs as without us, and its files are there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .started import SIMULATED, run, script

SAYS_WHAT_IT_HAS = """
    import threading
    import rmm
    print(type(rmm.mr.get_per_device_resource(0)).__name__, threading.active_count())
"""


@pytest.mark.parametrize("as_command", [False, True])
@pytest.mark.parametrize("switch", ["off", "on"])
def test_program_runs_as_without_us(tmp_path: Path, switch: str, as_command: bool) -> None:
    program = script(tmp_path, SAYS_WHAT_IT_HAS)
    words = ["--", sys.executable, program] if as_command else [program]
    done = run(tmp_path, *SIMULATED, "--json", "out.json", *words, RMM_UVM=switch)
    assert done.returncode == 0, done.stderr
    resource, threads = done.stdout.split()
    off = switch == "off"
    assert (resource == "CudaMemoryResource") == off
    assert (threads == "1") == off
    assert (done.stderr.splitlines()[0] == "rmm_uvm: switched off by RMM_UVM=off") == off
    assert ("no device was watched" in done.stderr) == off
    stored = json.loads((tmp_path / "out.json").read_text())
    assert (stored["sources"]["kernel_counters"]["reason"] == "switched off by RMM_UVM=off") == off


def test_status_of_the_program_stays(tmp_path: Path) -> None:
    for words in ([script(tmp_path, "raise SystemExit(7)")], ["--", "sh", "-c", "exit 7"]):
        assert run(tmp_path, "--quiet", *words, RMM_UVM="off").returncode == 7


def test_trace_that_is_missing_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "--trace", "t.trace", "--", "true", RMM_UVM="off")
    assert "no trace was written" in done.stderr
    assert not (tmp_path / "t.trace").exists()


def test_torch_needs_no_gpu_where_nothing_is_done_for_it(tmp_path: Path) -> None:
    program = script(tmp_path, "import torch; print('ran')")
    assert run(tmp_path, "--torch", program, RMM_UVM="off").stdout == "ran\n"
    assert run(tmp_path, "--torch", program, RMM_UVM="on").returncode == 2


def test_value_that_cannot_be_used_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = run(tmp_path, script(tmp_path, "print('ran')"), RMM_UVM="0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "RMM_UVM is '0': use 'on' or 'off'" in done.stderr
