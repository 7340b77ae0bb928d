# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever fails while memory of another process is opened: done or undone, and it works again.

Apart from the other operations, since another process exports it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.ipc.slabs import slabs

from ..other_process import OtherProcess, other_process
from .harness import Operation
from .levels import RESOURCES
from .levels import mistakes as mistakes_of_resource
from .test_driver_calls import meets, mistakes
from .world import World

EXPORT = (
    "pool = rmm_uvm.ipc_pool('4MiB', driver=device)\n"
    "buffer = rmm.DeviceBuffer(size=100, mr=pool)\n"
    "ctypes.memmove(buffer.ptr, b'frames', 6)\n"
    "handle = pool.export(buffer, readers=9)\n"
)
MEETS = ("open_ipc_memory", "find_memory", "open_ipc_event", "make_wait")


def mapped() -> int:
    """Return how many slabs of others this process has mapped."""
    return Path("/proc/self/maps").read_text().count("/memfd:rmm-uvm-simulated")


@pytest.fixture(scope="module")
def exporter() -> Iterator[OtherProcess]:
    with other_process() as process:
        process.ask("device = rmm_uvm.simulated_device('64MiB', backing=True)\n")
        yield process


@pytest.fixture
def operation(exporter: OtherProcess) -> Operation:
    def exported(world: World) -> tuple[bytes, Transfers]:
        assert mapped() == 0
        exporter.ask(EXPORT)
        return bytes.fromhex(exporter.ask("handle")), Transfers(world.device)

    def opened(_world: World, subject: tuple[bytes, Transfers]) -> Any:
        handle, transfers = subject
        return rmm_uvm.ipc.open(handle, transfers=transfers)

    def drop(_world: World, _subject: object) -> None:
        exporter.ask("assert pool.revoke(handle)\ndel pool, buffer\ngc.collect()\n")
        slabs()._forget_ended()
        assert slabs().counts() == (0, 0)
        assert mapped() == 0

    return Operation(
        "open",
        exported,
        opened,
        undo=lambda _world, _subject, result: result.close(),
        end=drop,
        shows=lambda _world, _subject, result: ctypes.string_at(result.ptr, 6),
    )


@pytest.mark.parametrize("kind", RESOURCES)
def test_opening_where_something_is_used_up_is_done_or_undone(
    operation: Operation, kind: str, tmp_path: Path
) -> None:
    assert mistakes_of_resource(operation, kind, tmp_path) == []


@pytest.mark.parametrize("call", MEETS)
def test_opening_whose_driver_call_fails_is_done_or_undone(
    operation: Operation, call: str, tmp_path: Path
) -> None:
    assert meets(operation, call, tmp_path)
    assert mistakes(operation, call, tmp_path) == []
