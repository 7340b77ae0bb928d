# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The section of Dask's configuration: files, environment and the packaged defaults.

Dask reads files and environment when it is imported, so each case is a process.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.dask.settings import WorkerSettings

PROGRAM = """
{first}
import dask
import rmm_uvm.dask
from rmm_uvm.dask.defaults import section
from rmm_uvm.dask.settings import settings_of
settings = settings_of(section(), {keywords})
print({{name: getattr(settings, name) for name in ("prefetch", "ipc_pool_size", "comm")}})
"""


def run_with(
    directory: Path, text: str = "", keywords: str = "None", first: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    (directory / "mine.yaml").write_text(text)
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(first=first, keywords=keywords)],
        env={**os.environ, "DASK_CONFIG": str(directory), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def settings_with(directory: Path, *words: str, **environment: str) -> dict[str, Any]:
    done = run_with(directory, *words, **environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = ast.literal_eval(done.stdout)
    return found


FILE = """
rmm-uvm:
  prefetch: never
  comm:
    wait-seconds: 3
"""


def test_without_files_and_environment_there_are_the_defaults(tmp_path: Path) -> None:
    assert settings_with(tmp_path) == {
        "prefetch": "auto",
        "ipc_pool_size": "auto",
        "comm": WorkerSettings().comm,
    }


def test_file_comes_before_the_defaults_key_by_key(tmp_path: Path) -> None:
    assert settings_with(tmp_path, FILE) == {
        "prefetch": "never",
        "ipc_pool_size": "auto",
        "comm": {"chunk_size": None, "wait_seconds": 3},
    }


def test_environment_comes_before_the_file_and_keywords_before_both(tmp_path: Path) -> None:
    environment = {
        "DASK_RMM_UVM__PREFETCH": "always",
        "DASK_RMM_UVM__IPC_POOL_SIZE": "64MiB",
        "DASK_RMM_UVM__COMM__CHUNK_SIZE": "1MiB",
    }
    found = settings_with(tmp_path, FILE, **environment)
    assert found["prefetch"] == "always"
    assert found["ipc_pool_size"] == 64 << 20
    assert found["comm"] == {"chunk_size": 1 << 20, "wait_seconds": 3}
    found = settings_with(tmp_path, FILE, "{'prefetch': 'auto'}", **environment)
    assert found["prefetch"] == "auto"


def test_order_of_imports_does_not_matter(tmp_path: Path) -> None:
    found = settings_with(tmp_path, FILE, "None", "import rmm_uvm.dask, distributed")
    assert found["prefetch"] == "never"


@pytest.mark.parametrize(
    ("text", "environment", "reason"),
    [
        ("rmm-uvm: 3", {}, "configuration has rmm-uvm: 3,"),
        ("rmm_uvm: [{prefetch: never}]", {}, "has rmm-uvm: [{'prefetch': 'never'}],"),
        ("rmm-uvm: {comm: 32MiB}", {}, "comm='32MiB'"),
        ("", {"DASK_RMM_UVM": "3"}, "configuration has rmm-uvm: 3,"),
        (FILE, {"DASK_RMM_UVM": "3"}, "configuration has rmm-uvm: 3,"),
        (FILE, {"DASK_RMM_UVM__COMM": "32MiB"}, "comm='32MiB'"),
    ],
)
@pytest.mark.parametrize("first", ["", "import dask, distributed"])
def test_section_that_is_no_section_is_said_and_not_replaced_by_the_defaults(
    tmp_path: Path, text: str, environment: dict[str, str], reason: str, first: str
) -> None:
    done = run_with(tmp_path, text, first=first, **environment)
    assert done.returncode == 1
    assert reason in done.stderr.splitlines()[-1]


def test_section_without_anything_in_it_is_the_defaults(tmp_path: Path) -> None:
    found = settings_with(tmp_path, "rmm-uvm:\n  comm:\n")
    assert found["comm"] == WorkerSettings().comm
    assert settings_with(tmp_path, "rmm-uvm:\n") == found


def test_nothing_is_written_into_the_users_directory(tmp_path: Path) -> None:
    settings_with(tmp_path, FILE)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize("missing", ["dask", "distributed"])
def test_without_dask_importing_is_no_error_and_names_say_what_to_install(missing: str) -> None:
    text = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import rmm_uvm.dask\n"
        "try:\n    rmm_uvm.dask.UvmPlugin\n"
        "except Exception as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("rmm_uvm.dask.UvmPlugin needs Dask: pip install")
