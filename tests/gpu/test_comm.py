# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The comm backend ucxuvm between two processes: on one GPU, or on two where there are two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAMS = Path(__file__).parent / "comm_programs.py"

pytestmark = pytest.mark.gpu


def _run(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", str(_PROGRAMS), name],
        # Of each of the two processes.
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "6GiB"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    [
        "managed",
        "renewed",
        "plain",
        "mixed",
        "stock_listens",
        "stock_connects",
        "ordered",
        "evicted",
        "both_directions",
        "killed_sender",
        "killed_receiver",
    ],
)
def test_program_on_the_gpu_ends_well(name: str) -> None:
    done = _run(name)
    assert done.returncode == 0, done.stderr


def test_program_on_the_gpu_that_does_not_exist_fails() -> None:
    assert _run("nothing").returncode != 0
