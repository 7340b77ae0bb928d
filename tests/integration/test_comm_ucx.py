# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The comm backend ucxuvm over real UCX, on simulated devices."""

from __future__ import annotations

import asyncio
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
from distributed.protocol import to_serialize

from rmm_uvm.dask.comm import backend
from rmm_uvm.dask.comm.backend import UvmBackend, UvmComm
from rmm_uvm.dask.comm.handshake import STOCK_PEER, Peer
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
        "pulled",
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
    made = UvmBackend()
    with dask.config.set({key: value}):
        with pytest.raises(ConfigurationError, match=match) as error:
            made.get_connector()
        with pytest.raises(ConfigurationError, match=match):
            made.get_listener("127.0.0.1:0", None, deserialize=True)
    assert "\n" not in str(error.value)


def test_configuration_without_such_options_is_accepted() -> None:
    made = UvmBackend()
    made.get_connector()
    made.get_listener("127.0.0.1:0", None, deserialize=True)


class DeviceArray:
    """Has what arrays of CuPy and Numba have."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AssertionError("looked at")


def _results(*results: object) -> dict[str, Any]:
    """Return a message as `Worker.get_data` makes them."""
    data = {f"key-{n}": to_serialize(each) for n, each in enumerate(results)}
    return {"status": "OK", "data": data}


DEVICE_PEER, HOST_PEER = Peer(ours=True), Peer(ours=True, receives="host")


@pytest.mark.parametrize(
    ("message", "serializers", "peer", "offload"),
    [
        (_results(DeviceArray()), None, DEVICE_PEER, False),
        (_results(DeviceArray(), DeviceArray()), ("cuda", "dask"), STOCK_PEER, False),
        (_results(DeviceArray()), None, HOST_PEER, True),
        (_results(DeviceArray()), ("dask", "pickle"), DEVICE_PEER, True),
        (_results(DeviceArray(), b"host"), None, DEVICE_PEER, True),
        (_results([DeviceArray()]), None, DEVICE_PEER, True),
        (_results(), None, DEVICE_PEER, True),
        ({"data": b"host"}, None, DEVICE_PEER, True),
        ([DeviceArray()], None, DEVICE_PEER, True),
    ],
)
def test_results_on_a_device_are_packed_without_a_change_of_threads(
    monkeypatch: pytest.MonkeyPatch,
    message: object,
    serializers: tuple[str, ...] | None,
    peer: Peer,
    offload: bool,
) -> None:
    asked = []

    async def to_frames(message: object, *, allow_offload: bool, **_: object) -> None:
        asked.append(allow_offload)
        raise InterruptedError

    monkeypatch.setattr(backend, "to_frames", to_frames)
    comm: Any = SimpleNamespace(closed=lambda: False, peer=peer, allow_offload=True)
    with pytest.raises(InterruptedError):
        asyncio.run(UvmComm.write(comm, message, serializers))
    assert asked == [offload]


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
