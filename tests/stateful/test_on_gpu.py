# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Chaos as on a GPU, on a simulated device with what CuPy would do for it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rmm_uvm

from ..support.known_contents import Buffer
from .choices import handles, stream_of
from .on_gpu import ChaosOnGpu, GpuBuffer, first_gpu
from .rounds import main, rounds

_STREAMS = (0x7000, 0x7100)  # addresses, as of real ones


class Array(np.ndarray[Any, Any]):
    """What kernels use: the simulated device hears of it, as a real one would."""

    def __setitem__(self, where: Any, value: Any) -> None:
        used(self, write=True)
        super().__setitem__(where, value)

    @classmethod
    def over(cls, nbytes: int, dtype: type, address: int) -> Any:
        memory = ctypes.cast(address, ctypes.POINTER(ctypes.c_ubyte))
        array = np.ctypeslib.as_array(memory, (nbytes,)).view(cls)
        assert array.dtype == dtype
        used(array, write=False)
        return array


def used(array: Any, *, write: bool) -> None:
    assert os.getpid() == owner[0], "a child of a fork uses CUDA"
    first_gpu()[0].touch(array.ctypes.data, array.nbytes, write=write)
    ChaosAsOnGpu.kernels += 1


owner: list[int] = []  # the process that began with CUDA


class HostBuffer(GpuBuffer):
    """The simulated device hears of what the host does, too."""

    def _whole(self) -> Any:
        if self.by_host:
            first_gpu()[0].cpu_touch(*self.region)
            ChaosAsOnGpu.by_host += 1
        return super()._whole()

    def write(self, number: int) -> None:
        if self.by_host:
            first_gpu()[0].cpu_touch(*self.region, write=True)
        super().write(number)


class ChaosAsOnGpu(ChaosOnGpu):
    """Programs on the stand-in, which counts what was used."""

    buffers = HostBuffer
    kernels = by_host = 0


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = list(_STREAMS)

    def cuda_driver(number: int) -> Any:
        assert number == 0
        owner[:] = [os.getpid()]
        return rmm_uvm.simulated_device("2GiB", backing=True)

    cuda = SimpleNamespace(
        runtime=SimpleNamespace(deviceSynchronize=lambda: None),
        UnownedMemory=lambda address, _nbytes, _owner, _device: address,
        MemoryPointer=lambda memory, offset: memory + offset,
        Stream=lambda non_blocking: SimpleNamespace(ptr=made.pop()),
    )
    cupy = SimpleNamespace(cuda=cuda, ndarray=Array.over, uint8=np.uint8)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(rmm_uvm, "cuda_driver", cuda_driver, raising=True)
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1GiB")
    monkeypatch.setattr("tests.stateful.rounds.PROGRAMS", 3, raising=True)
    yield
    assert not owner, "CUDA began before a round did"


def test_programs_that_kernels_look_at_are_right(tmp_path: Path) -> None:
    used = tmp_path / "used"

    class Counting(ChaosAsOnGpu):
        """Programs that write down how much was used of what."""

        def teardown(self) -> None:
            super().teardown()
            used.write_text(f"{ChaosAsOnGpu.kernels} {ChaosAsOnGpu.by_host}")

    (done,) = rounds(0, 3, tmp_path, Counting, 60)
    assert done.finding == "", (tmp_path / "3.log").read_text()
    assert done.programs >= 3
    assert done.operations > 75
    kernels, by_host = map(int, used.read_text().split())
    assert kernels > 3 * by_host > 30


def test_byte_that_is_lost_is_seen_by_kernels(tmp_path: Path) -> None:
    class Planted(ChaosAsOnGpu):
        """Programs that lose a byte of what they write from the fourth time on."""

        def _write(self, buffer: Buffer) -> None:
            super()._write(buffer)
            if self.writes >= 4:
                address, nbytes = buffer.region
                ctypes.memset(address + nbytes // 2, 0, 1)

    (done,) = rounds(0, 3, tmp_path, Planted, 60)
    assert done.finding == "a program went wrong"
    assert "assert not buffer.changed_anywhere" in (tmp_path / "3.log").read_text()


def test_streams_are_those_of_the_gpu(tmp_path: Path) -> None:
    class Streams(ChaosAsOnGpu):
        """Programs that look at what streams there are to choose from."""

        def __init__(self) -> None:
            super().__init__()
            assert set(handles.values()) == set(_STREAMS)
            assert {stream_of(each).__cuda_stream__() for each in _STREAMS} == {
                (0, each) for each in _STREAMS
            }

    (done,) = rounds(0, 4, tmp_path, Streams, 60)
    assert done.finding == "", (tmp_path / "4.log").read_text()


@pytest.mark.parametrize("limit", ["", "3GiB"])
def test_programs_do_not_begin_with_more_than_is_free(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", limit)
    assert main(["--gpu", "0", "3"], tmp_path) == 1
    told = capsys.readouterr().out
    assert "RMM_UVM_MANAGED_LIMIT" in told
    assert "once more: ci/chaos.sh --gpu 1 3\n" in told
