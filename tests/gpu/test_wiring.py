# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cuDF, CuPy, Numba and torch allocate from the installed pool; each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.gpu


def run(program: str, environment: dict[str, str] | None = None) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-P", "-W", "error::UserWarning:rmm_uvm", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(environment or {})},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_cudf_and_cupy_allocate_from_the_pool() -> None:
    out = run(
        """
        import rmm_uvm
        uvm = rmm_uvm.reinitialize("256MiB", "512MiB")
        import cudf, cupy
        frame = cudf.DataFrame({"a": cupy.arange(1_000_000, dtype="f8")})
        assert uvm.managed_mr.get_allocated_bytes() >= 8_000_000
        assert float(frame["a"].sum()) == 499999500000.0
        del frame
        array = cupy.ones(1 << 20)
        assert uvm.managed_mr.get_allocated_bytes() >= 8 << 20
        del array
        import gc; gc.collect()
        rmm_uvm.restore()
        import rmm
        assert type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource
        print("done")
        """
    )
    assert out.strip() == "done"


def test_torch_allocates_from_the_pool_and_cannot_be_undone() -> None:
    out = run(
        """
        import rmm_uvm
        from rmm_uvm.errors import AvailabilityError
        uvm = rmm_uvm.reinitialize("256MiB", "512MiB", libraries=("torch",))
        import torch
        tensor = torch.ones(1 << 20, device="cuda")
        assert uvm.managed_mr.get_allocated_bytes() >= 4 << 20
        assert float(tensor.sum()) == 1 << 20
        try:
            torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            assert str(error).startswith("CUDA out of memory. 1024.00 GiB asked"), error
        else:
            raise AssertionError
        for call in (rmm_uvm.restore, rmm_uvm.reinitialize):
            try:
                call()
            except AvailabilityError as error:
                assert "torch" in str(error)
            else:
                raise AssertionError
        print("done")
        """
    )
    assert out.strip() == "done"


def test_torch_that_has_allocated_already_is_refused_and_nothing_is_installed() -> None:
    out = run(
        """
        import torch
        torch.ones(1, device="cuda")
        import rmm, rmm_uvm
        from rmm_uvm.errors import AvailabilityError
        before = rmm.mr.get_per_device_resource(0)
        try:
            rmm_uvm.reinitialize("64MiB", "64MiB", libraries=("torch", "cupy"))
        except AvailabilityError as error:
            print(error)
        assert rmm.mr.get_per_device_resource(0) is before
        """
    )
    assert "torch has allocated" in out


def test_numba_allocates_from_the_pool_until_it_is_restored() -> None:
    out = run(
        """
        import gc
        import numpy, rmm, rmm_uvm
        from numba import cuda
        uvm = rmm_uvm.reinitialize("256MiB", "512MiB", libraries=("numba",))
        array = cuda.to_device(numpy.ones(1 << 20))
        assert uvm.managed_mr.get_allocated_bytes() >= 8 << 20

        @cuda.jit
        def double(array):
            index = cuda.grid(1)
            if index < array.size:
                array[index] *= 2

        double[4096, 256](array)
        assert array.copy_to_host().sum() == 2 << 20
        del array
        gc.collect()
        assert uvm.managed_mr.get_allocated_bytes() == 0
        rmm_uvm.restore()
        assert cuda.to_device(numpy.ones(4)).copy_to_host().sum() == 4
        print("done")
        """
    )
    assert out.strip() == "done"


def test_numba_that_has_used_the_gpu_already_is_refused_and_nothing_is_installed() -> None:
    out = run(
        """
        import rmm, rmm_uvm
        from numba import cuda
        from rmm_uvm.errors import AvailabilityError
        array = cuda.device_array(8)
        before = rmm.mr.get_per_device_resource(0)
        try:
            rmm_uvm.reinitialize("64MiB", "64MiB", libraries=("numba",))
        except AvailabilityError as error:
            print(error)
        assert rmm.mr.get_per_device_resource(0) is before
        """
    )
    assert "numba has used a GPU" in out


def test_reinitialize_after_out_of_memory_with_frames_alive_succeeds() -> None:
    out = run(
        """
        import rmm_uvm, cupy
        rmm_uvm.reinitialize("64MiB", "128MiB")
        kept = cupy.zeros(10 << 20, "u1")
        try:
            cupy.zeros(256 << 20, "u1")
        except MemoryError:
            uvm = rmm_uvm.reinitialize("64MiB", "512MiB")
        print(uvm)
        assert uvm.devices[0].old_live_bytes >= 10 << 20
        more = cupy.ones(256 << 20, "u1")
        assert int(more[-1]) == 1 and int(kept.sum()) == 0
        """
    )
    assert "old pool" in out


def test_rmm_reinitialize_after_ours_is_noticed() -> None:
    out = run(
        """
        import warnings, rmm, rmm_uvm
        from rmm_uvm.errors import ReplacedResourceWarning
        rmm_uvm.reinitialize("64MiB", "64MiB")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rmm.reinitialize()
        assert any(w.category is ReplacedResourceWarning for w in caught), caught
        print("noticed")
        """
    )
    assert out.strip() == "noticed"


def test_cudf_pandas_after_ours_leaves_our_pool() -> None:
    out = run(
        """
        import rmm, rmm_uvm
        uvm = rmm_uvm.reinitialize("256MiB", "512MiB")
        import cudf.pandas
        cudf.pandas.install()
        import pandas as pd
        frame = pd.DataFrame({"a": range(1000)})
        assert int(frame["a"].sum()) == 499500
        assert rmm.mr.get_current_device_resource() is uvm.managed_mr
        print("done")
        """
    )
    assert out.strip() == "done"


def test_cupy_arrays_that_are_garbage_with_their_stream_are_freed_before_it_ends() -> None:
    out = run(
        """
        import gc, cupy, rmm_uvm
        uvm = rmm_uvm.reinitialize("64MiB", "1GiB", device_budget="512MiB", libraries=("cupy",))
        for turn in range(50):
            stream = cupy.cuda.Stream(non_blocking=True)
            with stream:
                array = cupy.arange(1_000_000) * 2
            garbage = [stream, array]
            garbage.append(garbage)
            del stream, array, garbage
            gc.collect()
            assert int(cupy.arange(1000).sum()) == 499_500, turn
        cupy.cuda.Device().synchronize()
        print("live", uvm.managed_mr.get_allocated_bytes())
        """
    )
    assert out.strip() == "live 0"


def test_graph_keeps_what_its_capture_allocated_until_it_ends() -> None:
    out = run(
        """
        import gc, time, cupy, rmm, rmm_uvm
        from rmm.pylibrmm.stream import DEFAULT_STREAM
        uvm = rmm_uvm.reinitialize("64MiB", "1GiB", device_budget="512MiB")
        live = uvm.managed_mr.get_allocated_bytes
        stream = cupy.cuda.Stream(non_blocking=True)
        source = cupy.arange(1 << 20, dtype="i8")
        slow = cupy.sin(cupy.arange(1 << 23, dtype="f8"))
        cupy.sin(slow, out=slow)
        source * 2 + 1  # compiled before the capture
        del slow
        before = live()

        def settled():  # CUDA says on a thread of its own that a graph has ended
            end = time.monotonic() + 10
            while live() != before and time.monotonic() < end:
                cupy.empty(1)  # asks the pool
            return live() == before

        with stream:
            stream.begin_capture()
            result = source * 2  # allocates
            for _ in range(9):
                result = result + 1  # allocates, and frees what it had
            graph = stream.end_capture()
        kept = live() - before
        assert 2 * source.nbytes <= kept <= 3 * source.nbytes, kept  # what was freed is used again
        for turn in range(3):
            source += 1
            garbage = cupy.full(1 << 20, -1, "i8")  # is handed nothing that the graph uses
            cupy.cuda.Device().synchronize()
            graph.launch(stream)
            stream.synchronize()
            assert int(garbage.min()) == int(garbage.max()) == -1
            assert int(result[-1]) == 2 * ((1 << 20) + turn) + 9, turn
        del garbage, result
        assert not live() == before
        del graph
        gc.collect()
        assert settled(), (live(), before)

        # A graph that is deleted while it runs has its memory until it is done.
        with stream:
            stream.begin_capture()
            slow = cupy.arange(1 << 23, dtype="f8")
            for _ in range(3000):
                cupy.sin(slow, out=slow)
            del slow
            graph = stream.end_capture()
        kept = live()
        graph.launch(stream)
        del graph
        gc.collect()
        time.sleep(0.01)
        cupy.empty(1)
        early, done = live(), stream.done
        assert done or early == kept, (early, kept)
        stream.synchronize()
        assert settled(), (live(), before)
        print("done", done)

        # The default stream waits for a stream that is made without `non_blocking`.
        waited_for = cupy.cuda.Stream()
        source.fill(0)
        cupy.cuda.Device().synchronize()
        with waited_for:
            waited_for.begin_capture()
            source += 1
            try:
                rmm.DeviceBuffer(size=1 << 20, stream=DEFAULT_STREAM)
            except RuntimeError as error:
                assert "ask in the captured stream, or before" in str(error), error
            else:
                raise AssertionError
            graph = waited_for.end_capture()
            graph.launch(waited_for)
        waited_for.synchronize()
        assert int(source.sum()) == 1 << 20
        """
    )
    assert out.strip() == "done False"


def test_ipc_pool_has_handles_and_managed_memory_has_none() -> None:
    out = run(
        """
        import cupy, rmm_uvm
        from cuda.bindings import runtime
        uvm = rmm_uvm.reinitialize("64MiB", "64MiB", ipc_pool_size="16MiB")
        shared = uvm.ipc_mr.allocate(1 << 20)
        managed = uvm.managed_mr.allocate(1 << 20)
        ok = runtime.cudaError_t.cudaSuccess
        assert runtime.cudaIpcGetMemHandle(shared)[0] == ok
        assert runtime.cudaIpcGetMemHandle(managed)[0] != ok
        print("done")
        """
    )
    assert out.strip() == "done"


def test_cudf_prefetch_auto_switches_on_when_pages_leave_and_restore_switches_back() -> None:
    out = run(
        """
        import time, cupy, rmm_uvm
        import pylibcudf
        from rmm_uvm.integrations.cudf import prefetch_enabled
        assert prefetch_enabled() is False
        uvm = rmm_uvm.reinitialize("256MiB", "256MiB", device_budget=None)
        assert prefetch_enabled() is False
        array = cupy.ones(128 << 20, "u1")
        cupy.cuda.Device().synchronize()
        uvm.managed_mr.driver.prefetch(array.data.ptr, array.nbytes, "host")
        end = time.monotonic() + 10
        while not prefetch_enabled() and time.monotonic() < end:
            time.sleep(0.1)
        assert prefetch_enabled() is True
        rmm_uvm.restore()
        assert prefetch_enabled() is False
        print("done")
        """
    )
    assert out.strip() == "done"


def test_cudf_pandas_before_ours_is_replaced_with_a_warning_and_restored() -> None:
    out = run(
        """
        import cudf.pandas
        cudf.pandas.install()
        import warnings, rmm, rmm_uvm
        from rmm_uvm.errors import ReplacedResourceWarning
        before = rmm.mr.get_current_device_resource()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            uvm = rmm_uvm.reinitialize("256MiB", "512MiB")
        assert [w.category for w in caught].count(ReplacedResourceWarning) == 1, caught
        import pandas as pd
        assert int(pd.DataFrame({"a": range(1000)})["a"].sum()) == 499500
        assert rmm.mr.get_current_device_resource() is uvm.managed_mr
        rmm_uvm.restore()
        assert rmm.mr.get_current_device_resource() is before
        print("done")
        """,
        {"CUDF_PANDAS_RMM_MODE": "async"},
    )
    assert out.strip() == "done"


def test_reinitialize_leaves_a_context_behind_as_rmm_does() -> None:
    out = run(
        """
        import rmm_uvm
        from rmm.pylibrmm.stream import DEFAULT_STREAM
        rmm_uvm.reinitialize("64MiB", "64MiB", libraries=())
        DEFAULT_STREAM.synchronize()
        print("done")
        """
    )
    assert out.strip() == "done"


SEEN_PROGRAM = """
import os

import cupy

import rmm_uvm

library, seen = os.environ["LIBRARY"], os.environ["SEEN"]
uvm = rmm_uvm.reinitialize("64MiB", "2GiB", device_budget="128MiB", monitor=False)
if library == "numba":
    from numba import cuda

    @cuda.jit
    def add_one(array):
        index = cuda.grid(1)
        if index < array.size:
            array[index] += 1

arrays = [cupy.full(4 << 20, number, cupy.uint64) for number in range(8)]  # 32 MiB each
if seen == "unseen":
    for wiring in uvm.wirings:
        if wiring.library not in ("cupy", "rmm"):
            wiring.undo()
before = rmm_uvm.residency_statistics()
for _ in range(4):
    for array in arrays:
        if library == "cupy":
            cupy.add(array, 1, out=array)
        else:
            add_one[(array.size + 255) // 256, 256](array)
cupy.cuda.runtime.deviceSynchronize()
after = rmm_uvm.residency_statistics()
for name in ("fetched_bytes", "found_bytes", "faulted_bytes", "failed_calls"):
    print(name, getattr(after, name) - getattr(before, name))
print("right", all(bool((a == n + 4).all()) for n, a in enumerate(arrays)))
"""


@pytest.mark.parametrize("library", ["cupy", "numba"])
def test_kernels_of_a_library_are_seen_and_nothing_faults_in(library: str) -> None:
    told = dict(
        line.split()
        for line in run(SEEN_PROGRAM, {"LIBRARY": library, "SEEN": "seen"}).splitlines()
    )
    unseen = dict(
        line.split()
        for line in run(SEEN_PROGRAM, {"LIBRARY": library, "SEEN": "unseen"}).splitlines()
    )
    assert told["right"] == unseen["right"] == "True"
    assert told["failed_calls"] == unseen["failed_calls"] == "0"
    assert int(told["fetched_bytes"]) > 3 * 128 << 20
    assert int(told["found_bytes"]) == 0
    assert int(unseen["found_bytes"]) > 128 << 20  # the twin: so it would be noticed
