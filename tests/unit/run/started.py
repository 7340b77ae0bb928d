# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run`` in a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

COMMAND = [sys.executable, "-c", "from rmm_uvm.cli.main import main; main()", "run"]
SIMULATED = ["--device", "simulated:64MiB", "--pool-size", "16MiB", "--libraries", "none"]
USES_THE_POOL = """
    import rmm
    mr = rmm.mr.get_per_device_resource(0)
    print(type(mr).__name__)
    pointer = mr.allocate(40 << 20)  # kept, so that the last sample sees it
"""


def run(
    folder: Path, *words: str | Path, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path
