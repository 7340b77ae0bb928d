# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run --advise``: what would have helped comes first, with the times that say so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .started import run, script

ROUNDS = """
    import rmm, rmm_uvm
    MIB = 1 << 20
    device = rmm.mr.get_current_device_resource().driver
    parts = [rmm.DeviceBuffer(size=24 * MIB) for _ in range(3)]
    for _ in range(6):
        for part in parts:
            device.touch(part.ptr, part.size, write=True)
"""
CARD = ["--device", "simulated:64MiB", "--libraries", "none"]


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("rmm-uvm-run-")]


@pytest.mark.parametrize("as_command", [False, True])
def test_advice_from_a_model_comes_first_and_leaves_no_trace(
    tmp_path: Path, as_command: bool
) -> None:
    program = script(tmp_path, ROUNDS)
    words = ["--", sys.executable, program] if as_command else [program]
    done = run(tmp_path, *CARD, "--advise", "--json", "r.json", *words, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    advice = done.stderr.split("advice\n")[1].splitlines()
    assert advice[0] == "1. announce what kernels use next: rmm_uvm.touch"
    assert advice[1].startswith("   done again on a model (h200-pcie5) it takes ")
    first = json.loads((tmp_path / "r.json").read_text())["advice"][0]
    assert first["finding"]["kind"] == "replayed"
    assert first["finding"]["remedy"] in advice[0]
    assert left_behind(tmp_path) == []


def test_trace_that_is_kept_is_the_one_that_is_tried(tmp_path: Path) -> None:
    program = script(tmp_path, ROUNDS)
    done = run(tmp_path, *CARD, "--advise", "--trace", "kept.trace", program)
    assert "done again on a model" in done.stderr
    assert (tmp_path / "kept.trace").stat().st_size > 0


def test_program_that_fits_or_allocates_nothing_is_told_so(tmp_path: Path) -> None:
    program = script(tmp_path, ROUNDS)
    fits = ["--device", "simulated:512MiB", "--libraries", "none"]
    done = run(tmp_path, *fits, "--advise", program)
    assert "rmm_uvm: tried on a model: no other way saves time" in done.stderr
    assert "nothing to do: everything fitted" in done.stderr
    nothing = script(tmp_path, "print('hello')", "nothing.py")
    done = run(tmp_path, *CARD, "--advise", nothing, TMPDIR=str(tmp_path))
    assert done.returncode == 0
    assert "rmm_uvm: not tried on a model: " in done.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("words", [["missing.py"], ["-m", "missing_module"], ["--", "missing"]])
def test_what_cannot_be_run_leaves_nothing_behind(tmp_path: Path, words: list[str]) -> None:
    done = run(tmp_path, *CARD, "--advise", *words, TMPDIR=str(tmp_path))
    assert done.returncode != 0
    assert left_behind(tmp_path) == []


def test_program_that_is_ended_is_told_of_at_once(tmp_path: Path) -> None:
    ended = "\n    import os, signal\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    program = script(tmp_path, ROUNDS + ended)
    done = run(tmp_path, *CARD, "--advise", program, TMPDIR=str(tmp_path))
    assert "rmm_uvm: not tried on a model: the program was ended" in done.stderr
    assert "done again" not in done.stderr
    assert left_behind(tmp_path) == []


def test_without_a_pool_advice_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "--no-pool", "--advise", script(tmp_path, ROUNDS))
    assert done.returncode == 2
    assert "--advise is about what the pool does: leave out --no-pool" in done.stderr
