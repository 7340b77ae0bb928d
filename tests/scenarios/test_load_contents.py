# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the load on a GPU computes with, where there is none: kernels and frames of the host."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pandas
import pytest

from .residency_scripts import BENCHMARKS, script

contents = script("endurance/load_contents")
frames = script("endurance/load_frames")
stamped = script("common/stamped")


class Stream:
    """The default stream, as CuPy and RMM know one."""

    def __init__(self, non_blocking: bool = False) -> None:
        self.non_blocking, self.entered = non_blocking, 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0

    def __enter__(self) -> Stream:
        self.entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.entered -= 1

    def synchronize(self) -> None: ...


class Counter:
    """An array of CuPy with one number in it."""

    def __init__(self) -> None:
        self.values = np.zeros(1, np.uint64)

    def get(self, stream: Stream) -> np.ndarray[Any, Any]:
        assert stream.non_blocking
        return self.values


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return contents whose kernels run on the host, and in no stream but the one they are for."""
    streams: list[Stream] = []

    def in_stream() -> bool:
        return any(stream.entered for stream in streams)

    def fill(blocks: object, threads: object, words: tuple[Any, ...]) -> None:
        address, count, value = map(int, words)
        assert in_stream()
        stamped.words_at(address, count)[...] = np.arange(count, dtype=np.uint64) + value

    def work(blocks: object, threads: object, words: tuple[Any, ...]) -> None:
        address, count, value, step, _ = map(int, words[:-1])
        assert in_stream()
        assert step == 0
        wanted = np.arange(count, dtype=np.uint64) + value
        words[-1].values += np.uint64((stamped.words_at(address, count) != wanted).sum())

    def make_stream(non_blocking: bool) -> Stream:
        streams.append(Stream(non_blocking))
        return streams[-1]

    class RawModule:
        def __init__(self, code: str) -> None:
            self._code = code

        def get_function(self, name: str) -> Any:
            assert f"void {name}(" in self._code
            return {"fill": fill, "work": work}[name]

    cupy = ModuleType("cupy")
    runtime = ModuleType("runtime")
    runtime.deviceSynchronize = lambda: None  # type: ignore[attr-defined]
    cuda = ModuleType("cuda")
    cuda.Stream, cuda.runtime = make_stream, runtime  # type: ignore[attr-defined]
    cupy.cuda, cupy.uint64, cupy.RawModule = cuda, np.uint64, RawModule  # type: ignore[attr-defined]
    cupy.zeros = lambda count, dtype: Counter()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return contents.GpuContents()


@pytest.mark.parametrize("nbytes", [256, 4096, (3 << 20) + 8])
def test_words_that_kernels_wrote_are_right_for_kernels_and_host(gpu: Any, nbytes: int) -> None:
    memory = np.zeros(nbytes, np.uint8)
    region = memory.ctypes.data, nbytes
    gpu.write(*region, 7 << 32)
    gpu.look(*region, 7 << 32)
    gpu.look_from_host(*region, 7 << 32)
    assert gpu.finish() == 0


@pytest.mark.parametrize("from_host", [False, True])
def test_words_of_another_value_are_counted(gpu: Any, from_host: bool) -> None:
    memory = np.zeros(8192, np.uint8)
    region = memory.ctypes.data, memory.nbytes
    gpu.write(*region, 7 << 32)
    (gpu.look_from_host if from_host else gpu.look)(*region, 8 << 32)
    # Of the host one in each page is looked at.
    assert gpu.finish() == (2 if from_host else 1024)


class Frame(pandas.DataFrame):
    """A frame of the host with what cuDF's has besides."""

    @property
    def _constructor(self) -> type[Frame]:
        return Frame

    def to_pandas(self) -> pandas.DataFrame:
        return pandas.DataFrame(self)


@pytest.fixture
def cudf(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("cudf")
    module.DataFrame = Frame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cudf", module)
    return module


def test_frames_that_are_computed_right_are_not_counted(cudf: ModuleType) -> None:
    assert frames.frames_wrong(10_000, 0) == 0
    assert frames.frames_wrong(10_000, 5) == 0


def test_frames_that_lose_a_value_are_counted(cudf: ModuleType) -> None:
    class Losing(Frame):
        def sort_values(self, by: str) -> Frame:
            found = Frame(super().sort_values(by))
            found.loc[found.index[3], "value"] = 0
            found.loc[found.index[3], "value_sum"] = 0
            return found

        @property
        def _constructor(self) -> type[Frame]:
            return Losing

    cudf.DataFrame = Losing  # type: ignore[attr-defined]
    assert frames.frames_wrong(10_000, 5) == 2


def test_scalars_that_cudf_keeps_are_freed(
    cudf: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    scalars = ModuleType("cudf.utils.scalar")
    scalars.pa_scalar_to_plc_scalar = functools.lru_cache(str)  # type: ignore[attr-defined]
    scalars.pa_scalar_to_plc_scalar(1)
    monkeypatch.setitem(sys.modules, "cudf.utils.scalar", scalars)
    assert frames.frames_wrong(1_000, 0) == 0
    assert scalars.pa_scalar_to_plc_scalar.cache_info().currsize == 0
