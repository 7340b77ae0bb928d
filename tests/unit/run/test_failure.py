# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run`` of programs that end badly: none is told that there is nothing to do."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from rmm_uvm.run.failure import PoolLimit, of_error, of_status

from .started import run, script

FILLS_THE_POOL = """
import rmm
mr, kept = rmm.mr.get_per_device_resource(0), []
while True:
    kept.append(mr.allocate(16 << 20))
"""
OF_A_GIB = ("--device", "simulated:1GiB")
POOL = PoolLimit(256 << 20, "as asked")


@pytest.mark.parametrize("as_command", [False, True])
@pytest.mark.parametrize(
    ("options", "environment", "told"),
    [
        (
            ("--maximum", "256MiB"),
            {},
            "the program ran out of memory at 256.00 MiB, the pool's maximum: raise --maximum",
        ),
        (
            (),
            {"RMM_UVM_MANAGED_LIMIT": "100MiB"},
            "the program ran out of memory at 100.00 MiB, what RMM_UVM_MANAGED_LIMIT leaves "
            "for the pool: raise it",
        ),
    ],
)
def test_program_that_fills_the_pool_is_told_which_limit_to_raise(
    tmp_path: Path,
    as_command: bool,
    options: tuple[str, ...],
    environment: dict[str, str],
    told: str,
) -> None:
    path = script(tmp_path, FILLS_THE_POOL)
    figures, html = tmp_path / "figures.json", tmp_path / "report.html"
    words = ["--", sys.executable, path] if as_command else [path]
    files = ("--json", figures, "--html", html)
    done = run(tmp_path, *OF_A_GIB, *options, *files, *words, **environment)
    assert done.returncode == 1
    assert told in " ".join(done.stderr.split())
    assert "nothing to do" not in done.stderr
    given = json.loads(figures.read_text())
    assert given["failure"] == given["verdict"] == told
    about = given["about"]
    assert about["exit status"] == "1"
    assert about["program"].endswith(str(path))
    assert about["pool"].startswith("managed pool on device 0 (simulated device, 1.00 GiB): ")
    assert f"{path} on {about['host']}, exit status 1" in html.read_text()
    assert f'<p class="verdict failed">{told.replace(chr(39), "&#39;")}</p>' in html.read_text()


def test_program_that_fits_is_told_so_and_of_no_failure(tmp_path: Path) -> None:
    fits = FILLS_THE_POOL.replace("while True", "for _ in range(4)")
    html = tmp_path / "report.html"
    done = run(tmp_path, *OF_A_GIB, "--maximum", "256MiB", "--html", html, script(tmp_path, fits))
    assert done.returncode == 0
    assert "nothing to do: everything fitted" in done.stderr
    assert ", exit status 0 rmm_uvm: watched" in " ".join(done.stderr.split())
    assert "verdict failed" not in html.read_text()


@pytest.mark.parametrize("as_command", [False, True])
@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("raise ValueError('x')", 1, "the program ended early with ValueError: the figures are of"),
        ("import sys; sys.exit(3)", 3, "the program ended with exit status 3: the figures are of"),
        ("raise MemoryError('host')", 1, "ran out of memory, not of the managed pool's: the"),
    ],
)
def test_program_that_ended_early_is_not_told_that_nothing_is_to_do(
    tmp_path: Path, as_command: bool, code: str, status: int, told: str
) -> None:
    path = script(tmp_path, code)
    words = ["--", sys.executable, path] if as_command else [path]
    done = run(tmp_path, *OF_A_GIB, *words)
    assert told in done.stderr
    assert f", exit status {status} rmm_uvm: watched" in " ".join(done.stderr.split())
    assert "nothing to do" not in done.stderr


def test_program_that_died_of_device_memory_without_a_pool_is_told_of_it(tmp_path: Path) -> None:
    path = script(tmp_path, "raise MemoryError('CUDA error: cudaErrorMemoryAllocation')")
    done = run(tmp_path, *OF_A_GIB, "--no-pool", path)
    assert "ran out of device memory: without --no-pool, what does not fit" in done.stderr
    assert "everything fitted" not in done.stderr
    ends = run(tmp_path, *OF_A_GIB, "--no-pool", script(tmp_path, "x = 1"))
    assert "nothing was evicted, and how much was allocated is unknown" in ends.stderr
    assert "everything fitted" not in ends.stderr


@pytest.mark.parametrize("asked_for_pool", [False, True])
@pytest.mark.parametrize("answer", ["cudaErrorInsufficientDriver", "cudaErrorIllegalAddress"])
def test_allocation_that_failed_of_something_else_is_not_told_to_be_of_memory(
    answer: str, asked_for_pool: bool
) -> None:
    # GIVEN what RMM raises, whatever CUDA answered
    text = "std::bad_alloc: CUDA error (failed to allocate 1048576 bytes) at: mr.cpp:26: {} CUDA"
    # THEN only the answer that is of memory is told as such
    told = of_error(MemoryError(text.format(answer)), asked_for_pool=asked_for_pool)
    assert (
        told == f"the program ended early with MemoryError ({answer}): the figures are of what ran"
    )
    full = MemoryError(text.format("cudaErrorMemoryAllocation"))
    assert "ran out of" in of_error(full, asked_for_pool=asked_for_pool)


def test_program_without_pool_or_gpu_is_not_told_that_memory_ran_out(tmp_path: Path) -> None:
    text = "std::bad_alloc: CUDA error at: mr.cpp:26: cudaErrorNoDevice no CUDA-capable device"
    done = run(tmp_path, *OF_A_GIB, "--no-pool", script(tmp_path, f"raise MemoryError('{text}')"))
    assert "ended early with MemoryError (cudaErrorNoDevice)" in " ".join(done.stderr.split())
    assert "ran out of" not in done.stderr


def test_program_ended_by_a_signal_is_told_of_it(tmp_path: Path) -> None:
    path = script(tmp_path, "import os\nos.kill(os.getpid(), 15)\nimport time; time.sleep(60)")
    done = run(tmp_path, *OF_A_GIB, path)
    assert done.returncode == -signal.SIGTERM
    assert "the program was ended by SIGTERM: the figures are of what ran" in done.stderr
    assert ", exit status 143 rmm_uvm: watched" in " ".join(done.stderr.split())


def test_status_of_0_and_exit_without_an_error_are_no_failure() -> None:
    assert of_status(0) == of_error(SystemExit()) == of_error(SystemExit(0)) == ""
    assert of_error(SystemExit("message")) == of_status(1) != ""


def test_cause_that_is_of_the_pool_counts_and_one_that_was_put_away_does_not() -> None:
    full = MemoryError("std::bad_alloc: Maximum pool size exceeded")
    wrapped, hidden = RuntimeError("a plan failed"), RuntimeError("no such file")
    wrapped.__cause__ = full
    hidden.__context__, hidden.__suppress_context__ = full, True
    assert "256.00 MiB, the pool's maximum" in of_error(wrapped, POOL)
    assert "early with RuntimeError" in of_error(hidden, POOL)


def test_maximum_that_nobody_asked_for_is_told_with_its_reason() -> None:
    limit = PoolLimit(8 << 30, "90 % of available host memory")
    told = of_error(MemoryError("Maximum pool size exceeded"), limit)
    assert "at 8.00 GiB, the pool's maximum (90 % of available host memory)" in told
