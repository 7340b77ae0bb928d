# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of torch past a budget on a GPU, as users have them: they train as without."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

MIB = 1 << 20
LONGEST_SECONDS = 100
PROGRAMS_OF_A_TEST = 2

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("gpu"),
    pytest.mark.timeout(PROGRAMS_OF_A_TEST * LONGEST_SECONDS + 40),
]

HERE = Path(__file__).parent


def printed(*words: object, **environment: str) -> tuple[Any, str]:
    """Run Python with a cap; return what the last line says, and what is on the error stream."""
    ended = subprocess.run(
        [sys.executable, *map(str, words)],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "2GiB", **environment},
        cwd=HERE,  # where no other rmm_uvm is
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1]), ended.stderr


def check_it_was_passed(result: dict[str, Any]) -> None:
    """Fail if the budget was not passed, or a call failed."""
    assert result["acting"]
    assert result["residency"]["evicted_bytes"] > 0
    assert result["residency"]["failed_calls"] == 0


def run(what: str, folder: Path) -> dict[str, Any]:
    """Run the program; return what it says once it has trained past its budget."""
    result: dict[str, Any]
    result, _ = printed(HERE / "torch_program.py", what, folder)
    check_it_was_passed(result)
    return result


def run_huggingface(what: str, folder: Path) -> dict[str, Any]:
    """Run the program with one GPU and no network; return what it says past its budget."""
    for package in ("transformers", "accelerate"):
        pytest.importorskip(package)
    first_gpu = (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0]
    result: dict[str, Any]
    result, _ = printed(
        HERE / "huggingface_program.py",
        what,
        folder,
        CUDA_VISIBLE_DEVICES=first_gpu,
        HF_HUB_OFFLINE="1",
    )
    check_it_was_passed(result)
    return result


def test_program_under_run_torch_has_its_losses_and_is_told_what_moved() -> None:
    train = HERE / "train.py"  # which is not changed for it
    expected, _ = printed(train)
    words = ["-m", "rmm_uvm", "run", "--torch", "--device-budget", "160MiB"]
    found, said = printed(*words, train)
    assert found == expected
    assert found[-1] < found[0]
    (line,) = [line for line in said.splitlines() if line.startswith("rmm_uvm: torch: ")]
    assert line.startswith("rmm_uvm: torch: past the budget of 160.00 MiB: "), line
    assert re.search(r" [0-9.]+ [MG]iB moved to the host", line), line
    steps = re.search(r"(\d+) steps of optimizers seen since", line)
    assert steps is not None, line
    assert int(steps[1]) >= 10


def test_program_under_run_torch_that_fits_is_told_so() -> None:
    words = ["-m", "rmm_uvm", "run", "--torch", "--device-budget", "1GiB"]
    _, said = printed(*words, HERE / "train.py")
    assert "rmm_uvm: torch: everything fitted in the budget of 1.00 GiB" in said


def test_compiled_model_past_the_budget_has_the_losses_of_one_that_is_not_compiled(
    tmp_path: Path,
) -> None:
    pytest.importorskip("triton", reason="torch's default backend compiles with Triton")
    if not any(shutil.which(one) for one in (os.environ.get("CC"), "gcc", "clang") if one):
        pytest.skip("Triton needs a C compiler, and there is none")
    result = run("compiled", tmp_path)
    assert result["graphs"] > 0  # it was compiled
    assert result["found"] == pytest.approx(result["expected"], rel=1e-3)
    assert result["found"][-1] < result["found"][0]


def test_distributed_model_past_the_budget_has_the_losses_of_the_model_alone(
    tmp_path: Path,
) -> None:
    if not torch.distributed.is_nccl_available():
        pytest.skip("this build of torch has no NCCL")
    result = run("distributed", tmp_path)
    assert result["found"] == result["expected"]
    assert result["residency"]["dropped_bytes"] == 0  # several streams
    assert result["segments"]["unfenced"] > 0


@pytest.mark.usefixtures("second_gpu")
def test_ranks_past_their_budgets_on_two_gpus_have_the_losses_of_ranks_without(
    tmp_path: Path,
) -> None:
    if not torch.distributed.is_nccl_available():
        pytest.skip("this build of torch has no NCCL")
    result, _ = printed(HERE / "ranks_program.py", tmp_path)
    first, second = result["ranks"]
    for rank in (first, second):
        check_it_was_passed(rank)
        assert rank["found"] == rank["expected"]
        assert rank["residency"]["dropped_bytes"] == 0  # several streams
    assert first["expected"] != second["expected"]  # each has rows of its own


def test_checkpointed_model_past_the_budget_has_its_losses_and_has_them_after_it(
    tmp_path: Path,
) -> None:
    # Torch's telling loses errors that pass through its operators, such as that by which
    # checkpointing ends.
    result = run("checkpointed", tmp_path)
    assert result["found"] == result["expected"] == result["after"]


def test_model_of_which_activations_leave_alone_has_its_losses_and_pins_its_state(
    tmp_path: Path,
) -> None:
    result = run("activations", tmp_path)
    assert result["found"] == result["expected"]
    check_it_was_passed(result["all"])
    assert result["all"]["found"] == result["expected"]
    # Where everything may leave, only what is small stays, in segments of its own.
    assert result["pinned_bytes"] > result["all"]["pinned_bytes"] + 16 * MIB


def test_trainer_of_hugging_face_past_the_budget_has_the_losses_of_one_without(
    tmp_path: Path,
) -> None:
    result = run_huggingface("trainer", tmp_path)
    assert result["found"] == result["expected"]
    assert len(result["found"]) == 6
    assert result["found"][-1] < result["found"][0]
    assert result["steps"] >= 4  # the budget is passed within the first ones


def test_generate_past_the_budget_gives_the_tokens_that_it_gives_without(tmp_path: Path) -> None:
    result = run_huggingface("generate", tmp_path)
    assert result["found"] == result["expected"]
    assert len(result["found"]) == 8 + 32
    assert result["residency"]["fetched_bytes"] > 0  # weights that had left
