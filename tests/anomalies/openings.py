# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Opening memory that another process exports: apart, since that process has to run."""

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
from .world import World

__all__ = ["exporter", "opening"]

EXPORT = (
    "pool = rmm_uvm.ipc_pool('4MiB', driver=device)\n"
    "buffer = rmm.DeviceBuffer(size=100, mr=pool)\n"
    "ctypes.memmove(buffer.ptr, b'frames', 6)\n"
    "handle = pool.export(buffer, readers=9)\n"
)


def mapped() -> set[str]:
    """Return which simulated memory this process has mapped, by the number of its file."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if "/memfd:rmm-uvm-simulated" in line}


@pytest.fixture(scope="module")
def exporter() -> Iterator[OtherProcess]:
    with other_process() as process:
        process.ask("device = rmm_uvm.simulated_device('64MiB', backing=True)\n")
        yield process


@pytest.fixture
def opening(exporter: OtherProcess) -> Operation:
    own = mapped()  # of devices that this process keeps

    def exported(world: World) -> tuple[bytes, Transfers]:
        assert mapped() <= own
        exporter.ask(EXPORT)
        return bytes.fromhex(exporter.ask("handle")), Transfers(world.device)

    def opened(_world: World, subject: tuple[bytes, Transfers]) -> Any:
        handle, transfers = subject
        return rmm_uvm.ipc.open(handle, transfers=transfers)

    def drop(_world: World, _subject: object) -> None:
        exporter.ask("assert pool.revoke(handle)\ndel pool, buffer\ngc.collect()\n")
        slabs()._forget_ended()
        assert slabs().counts() == (0, 0)
        assert mapped() <= own

    return Operation(
        "open",
        exported,
        opened,
        undo=lambda _world, _subject, result: result.close(),
        end=drop,
        shows=lambda _world, _subject, result: ctypes.string_at(result.ptr, 6),
    )
