# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The comm backend ucxuvm over real UCX, on simulated devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed.comm.core import CommClosedError
from distributed.comm.registry import get_backend

from rmm_uvm.dask.comm.backend import UvmBackend, UvmComm
from rmm_uvm.errors import ConfigurationError

_PROGRAMS = Path(__file__).parent / "ucx" / "programs.py"


def _run(name: str) -> subprocess.CompletedProcess[str]:
    paths = [str(_PROGRAMS.parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-P", str(_PROGRAMS), name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "name",
    [
        "staged",
        "both_directions",
        "stock_connects",
        "stock_listens",
        "other_version",
        "garbage",
        "without_backing",
        "killed_sender",
        "killed_receiver",
        "cluster",
    ],
)
def test_program_over_ucx_ends_well(name: str) -> None:
    done = _run(name)
    assert done.returncode == 0, done.stderr


def test_program_over_ucx_that_does_not_exist_fails() -> None:
    assert _run("nothing").returncode != 0


def test_backend_is_found_by_its_name() -> None:
    assert isinstance(get_backend("ucxuvm"), UvmBackend)


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("distributed-ucxx.multi-buffer", True, "multi-buffer is on"),
        ("distributed.comm.ucx.multi-buffer", True, "multi-buffer is on"),
        ("distributed-ucxx.rmm.pool-size", "1GiB", "pool-size is '1GiB'"),
        ("distributed.rmm.pool-size", "1GiB", "pool-size is '1GiB'"),
    ],
)
def test_configuration_that_goes_past_our_pools_is_refused_in_one_line(
    key: str, value: object, match: str
) -> None:
    backend = UvmBackend()
    with dask.config.set({key: value}):
        with pytest.raises(ConfigurationError, match=match) as error:
            backend.get_connector()
        with pytest.raises(ConfigurationError, match=match):
            backend.get_listener("127.0.0.1:0", None, deserialize=True)
    assert "\n" not in str(error.value)


def test_configuration_without_such_options_is_accepted() -> None:
    backend = UvmBackend()
    backend.get_connector()
    backend.get_listener("127.0.0.1:0", None, deserialize=True)


@pytest.mark.parametrize(
    ("error", "warnings"),
    [
        (ConnectionError("the connection was closed"), []),
        (MemoryError("none left"), ["while writing, a transfer failed: none left"]),
    ],
)
def test_transfer_that_fails_is_logged_unless_the_peer_just_went_away(
    error: Exception, warnings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    aborted = []
    comm: Any = SimpleNamespace(abort=lambda: aborted.append(True))

    with pytest.raises(CommClosedError, match=f"While writing.+{error}") as raised:
        UvmComm._break_off(comm, error, "writing")

    assert raised.value.__cause__ is error
    assert aborted == [True]
    assert [record.getMessage() for record in caplog.records] == warnings
