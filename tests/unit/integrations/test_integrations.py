# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Wiring of other libraries: present, missing, and too late. The libraries are stand-ins."""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rmm

import rmm_uvm
import rmm_uvm.pool.install
from rmm_uvm._lib import torch_rmm
from rmm_uvm.errors import AvailabilityError, ConfigurationError, ReplacedResourceWarning
from rmm_uvm.integrations import cudf, wire
from rmm_uvm.mr import SimulatedCudaMemoryResource


def put_module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> types.ModuleType:
    """Let a module be importable, found and complete."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, loader=None)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    return module


class CudfPrefetch:
    """Stands in for ``pylibcudf.prefetch`` and the flag of libcudf behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, enabled: bool) -> None:
        self.enabled = enabled
        prefetch = put_module(
            monkeypatch, "pylibcudf.prefetch", enable=self.enable, disable=self.disable
        )
        put_module(monkeypatch, "pylibcudf", prefetch=prefetch)
        monkeypatch.setattr(cudf, "prefetch_enabled", lambda: self.enabled)

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False


def as_on_a_gpu() -> Any:
    """A driver that looks like a GPU's to the wiring."""
    return types.SimpleNamespace(info=types.SimpleNamespace(simulated=False))


# --- CuPy ----------------------------------------------------------------------------------------


class Stream:
    """Stands in for a stream of CuPy, which ends when Python lets go of it."""

    def __init__(self, ptr: int, ended: Callable[[], object]) -> None:
        self.ptr = ptr
        self._ended = ended

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def __del__(self) -> None:
        self._ended()


class Memory:
    """Stands in for ``cupy.cuda.UnownedMemory``."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


def put_cupy(monkeypatch: pytest.MonkeyPatch, allocator: list[Any]) -> types.SimpleNamespace:
    """Let CuPy be importable; return its module `cuda`, with an allocator and streams in use."""
    now = [Stream(0, lambda: None)]
    cuda = types.SimpleNamespace(
        get_allocator=lambda: allocator[0],
        set_allocator=lambda chosen: allocator.__setitem__(0, chosen),
        streams=now,
        get_current_stream=lambda: now[-1],
        UnownedMemory=Memory,
        MemoryPointer=lambda memory, _offset: memory,
        device=types.SimpleNamespace(get_device_id=lambda: 3),
        memory=types.SimpleNamespace(MemoryPointer=lambda memory, _offset: memory),
    )
    module = put_module(monkeypatch, "cupy", cuda=cuda)
    monkeypatch.setattr("rmm.allocators.cupy.cupy", module)
    return cuda


def test_cupy_allocator_is_set_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[Any] = ["the user's"]
    put_cupy(monkeypatch, current)
    wiring = wire("cupy")
    assert wiring.active
    with rmm_uvm.reinitialize(driver=rmm_uvm.simulated_device("64MiB"), libraries=()) as uvm:
        memory = current[0](1000)
        assert uvm.managed_mr.get_allocated_bytes() == 1000
        assert memory.ptr
        assert memory.size == 1000
        del memory
        assert not uvm.managed_mr.get_allocated_bytes()
    wiring.undo()
    assert current == ["the user's"]


def test_cupy_allocator_that_cudf_sets_while_it_is_imported_is_ours_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from rmm.allocators.cupy import rmm_cupy_allocator

    current: list[Any] = ["the user's"]
    put_cupy(monkeypatch, current)
    (tmp_path / "cudf.py").write_text(
        "import cupy\n"
        "from rmm.allocators.cupy import rmm_cupy_allocator\n"
        "cupy.cuda.set_allocator(rmm_cupy_allocator)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cudf", raising=False)
    wiring = wire("cupy")
    ours = current[0]
    importlib.import_module("cudf")
    monkeypatch.delitem(sys.modules, "cudf")
    assert ours is not rmm_cupy_allocator
    assert current == [ours]
    wiring.undo()
    assert current == ["the user's"]


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "rmm's own"])
def test_cupy_memory_that_is_garbage_with_its_stream_is_freed_before_its_end(
    monkeypatch: pytest.MonkeyPatch, *, ours: bool
) -> None:
    from rmm.allocators.cupy import rmm_cupy_allocator

    current: list[Any] = ["the user's"]
    cuda = put_cupy(monkeypatch, current)
    wiring = wire("cupy")
    allocate = current[0] if ours else rmm_cupy_allocator
    live_at_the_end = []
    with rmm_uvm.reinitialize(driver=rmm_uvm.simulated_device("64MiB"), libraries=()) as uvm:
        live = uvm.managed_mr.get_allocated_bytes
        stream = Stream(64, lambda: live_at_the_end.append(live()))
        cuda.streams.append(stream)
        garbage = [stream, allocate(1000), allocate(0)]
        garbage.append(garbage)
        cuda.streams.pop()
        assert live() == 1000
        del stream, garbage
        gc.collect()
        assert live() == 0
    assert live_at_the_end == [0 if ours else 1000]
    wiring.undo()


def test_cupy_allocator_chosen_later_by_others_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[Any] = ["the user's"]
    put_cupy(monkeypatch, current)
    wiring = wire("cupy")
    current[0] = "a later one"
    wiring.undo()
    assert current == ["a later one"]


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        ("cupy", "not installed"),
        ("numba", "numba-cuda is not installed"),
        ("torch", "not installed"),
    ],
)
def test_missing_library_is_a_value_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, library: str, reason: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    wiring = wire(library)
    assert (wiring.active, wiring.reason, wiring.permanent) == (False, reason, False)
    wiring.undo()


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_library_that_is_too_old_is_a_value_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    put_module(monkeypatch, library)  # without what newer ones have
    monkeypatch.setattr(f"rmm_uvm.integrations.{library}.too_old", lambda extra: f"{extra} 0.1")
    wiring = wire(library)
    assert (wiring.active, wiring.reason, wiring.permanent) == (False, f"{library} 0.1", False)
    wiring.undo()


def test_unknown_library_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'cudf'"):
        wire("cudf")


# --- Numba ---------------------------------------------------------------------------------------


class Numba:
    """Stands in for numba-cuda on two GPUs: a context keeps the manager of when it was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class RMMNumbaManager:
            def __init__(self, context: Any) -> None:
                self.context = context

        self.rmm = RMMNumbaManager
        self.gpus = [types.SimpleNamespace(id=each, primary_context=None) for each in range(2)]
        self.driver = put_module(
            monkeypatch,
            "numba.cuda.cudadrv.driver",
            _memory_manager=None,
            driver=types.SimpleNamespace(is_available=True),
        )
        drivers = put_module(monkeypatch, "numba.cuda.cudadrv", driver=self.driver)
        cuda = put_module(
            monkeypatch,
            "numba.cuda",
            cudadrv=drivers,
            gpus=self.gpus,
            set_memory_manager=self.set_memory_manager,
        )
        put_module(monkeypatch, "numba", cuda=cuda)
        put_module(monkeypatch, "rmm.allocators.numba", RMMNumbaManager=RMMNumbaManager)

    def set_memory_manager(self, manager: type) -> None:
        self.driver._memory_manager = manager

    def use_gpu(self, device_id: int, manager: type) -> None:
        """Make a context, as the first array or kernel does."""
        context = types.SimpleNamespace(memory_manager=manager(context=None))
        self.gpus[device_id].primary_context = context


class OwnManager:
    """Stands in for Numba's own memory manager."""

    def __init__(self, context: Any) -> None:
        self.context = context


@pytest.mark.parametrize("before", [None, OwnManager])
def test_numba_memory_manager_is_set_and_put_back(
    monkeypatch: pytest.MonkeyPatch, before: type | None
) -> None:
    numba = Numba(monkeypatch)
    numba.driver._memory_manager = before
    wiring = wire("numba")
    assert (wiring.active, wiring.permanent) == (True, False)
    assert numba.driver._memory_manager is numba.rmm
    wiring.undo()
    assert numba.driver._memory_manager is before


def test_numba_memory_manager_chosen_later_by_others_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = Numba(monkeypatch)
    wiring = wire("numba")
    numba.set_memory_manager(OwnManager)
    wiring.undo()
    assert numba.driver._memory_manager is OwnManager


def test_numba_that_used_a_gpu_already_is_an_error_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numba = Numba(monkeypatch)
    numba.use_gpu(1, OwnManager)
    with pytest.raises(AvailabilityError, match=r"call rmm_uvm\.reinitialize before it does"):
        wire("numba")
    assert numba.driver._memory_manager is None


def test_numba_without_gpu_is_a_value_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = Numba(monkeypatch)
    numba.driver.driver.is_available = False
    assert wire("numba").reason == "numba sees no GPU"
    assert numba.driver._memory_manager is None


def test_numba_that_simulates_cuda_is_not_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Numba(monkeypatch)
    put_module(monkeypatch, "rmm.allocators.numba")  # as NUMBA_ENABLE_CUDASIM=1 leaves it
    wiring = wire("numba")
    assert not wiring.active
    assert wiring.reason.startswith("numba-cuda cannot be used: cannot import name 'RMMNumbaMan")


def test_numba_that_used_a_gpu_through_rmm_is_wired(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = Numba(monkeypatch)
    numba.set_memory_manager(numba.rmm)  # as importing cuDF does
    numba.use_gpu(0, numba.rmm)
    wiring = wire("numba")
    assert wiring.active
    wiring.undo()
    assert numba.driver._memory_manager is numba.rmm


# --- torch ---------------------------------------------------------------------------------------


def put_torch(monkeypatch: pytest.MonkeyPatch, change: Any, allocator: Any = "rmm's") -> None:
    memory = types.SimpleNamespace(
        change_current_allocator=change, CUDAPluggableAllocator=lambda *of: of
    )
    put_module(monkeypatch, "torch", cuda=types.SimpleNamespace(memory=memory))
    put_module(monkeypatch, "rmm.allocators.torch", rmm_torch_allocator=allocator)


def test_torch_allocator_is_changed_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[str] = []
    put_torch(monkeypatch, changed.append)
    monkeypatch.setattr(torch_rmm, "go_through_rmm", lambda *addresses: 0 not in addresses)
    wiring = wire("torch")
    assert (wiring.active, wiring.reason) == (True, "allocates through RMM")
    assert wiring.permanent
    assert changed == [(torch_rmm.__file__, torch_rmm.ALLOCATE, torch_rmm.DEALLOCATE)]


def test_torch_whose_error_is_not_found_is_given_rmms_own_allocator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed: list[str] = []
    put_torch(monkeypatch, changed.append)
    monkeypatch.setattr(torch_rmm, "go_through_rmm", lambda *_: False)
    wiring = wire("torch")
    assert wiring.reason == "allocates through RMM; without memory it raises RuntimeError"
    assert changed == ["rmm's"]


# What torch does when an allocation fails, with its own headers; and an allocator like RMM's.
TORCH_CALLS = """
#ifdef WITH_TORCH
#include <c10/util/Exception.h>
#endif
#include <exception>
#include <new>
#include <string>
struct no_memory : std::bad_alloc {
  char const* what() const noexcept override { return "std::bad_alloc: out_of_memory: 4 MiB"; }
};
extern "C" {
std::ptrdiff_t freed = 0;
void* allocate(std::ptrdiff_t bytes, int device, void*) {
  if (bytes > 1024) { throw no_memory{}; }
  return reinterpret_cast<void*>(bytes + device);
}
void deallocate(void*, std::ptrdiff_t bytes, int, void*) { freed += bytes; }
char const* what_torch_sees(void* (*function)(std::ptrdiff_t, int, void*)) {
  static std::string seen;
  try {
    function(4 << 20, 0, nullptr);
#ifdef WITH_TORCH
  } catch (c10::OutOfMemoryError const& error) {
    seen = std::string{"torch: "} + error.what_without_backtrace();
#endif
  } catch (std::exception const& error) {
    seen = std::string{"other: "} + error.what();
  }
  return seen.c_str();
}
}
"""
TORCH_PROGRAM = """
import ctypes, sys
from rmm_uvm._lib import torch_rmm
calls = ctypes.CDLL(sys.argv[1])
ours = ctypes.CDLL(torch_rmm.__file__)
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
print(torch_rmm.go_through_rmm(address(calls.allocate), address(calls.deallocate)))
allocate, calls.what_torch_sees.restype = getattr(ours, torch_rmm.ALLOCATE), ctypes.c_char_p
for _ in range(1000):  # each is an error of its own, which goes
    seen = calls.what_torch_sees(allocate).decode()
print(seen)
allocate.restype = ctypes.c_void_p
memory = allocate(ctypes.c_ssize_t(512), 3, None)
getattr(ours, torch_rmm.DEALLOCATE)(ctypes.c_void_p(memory), ctypes.c_ssize_t(512), 3, None)
print(memory, ctypes.c_ssize_t.in_dll(calls, "freed").value)
"""


@pytest.mark.parametrize(
    ("with_torch", "seen"),
    [
        (True, "torch: CUDA out of memory. 4 MiB"),
        (False, "other: std::bad_alloc: out_of_memory: 4 MiB"),
    ],
)
def test_torch_sees_its_own_error_where_rmm_has_no_memory(
    tmp_path: Path, with_torch: bool, seen: str
) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None, "the package's own prerequisite"
    source, library = tmp_path / "calls.cpp", tmp_path / "libcalls.so"
    source.write_text(TORCH_CALLS)
    options = ["-std=c++20", "-shared", "-fPIC", source, "-o", library]
    if with_torch:
        torch = importlib.util.find_spec("torch")
        assert torch is not None
        folder = Path(str(torch.origin)).parent
        options += ["-DWITH_TORCH", f"-I{folder / 'include'}", f"-L{folder / 'lib'}", "-lc10"]
    subprocess.run([compiler, *options], check=True)
    program = ("import torch" if with_torch else "") + TORCH_PROGRAM
    answer = subprocess.run(
        [sys.executable, "-P", "-c", program, str(library)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [str(with_torch), seen, "515 512"]


def test_torch_that_allocated_already_is_an_error_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_late(_allocator: str) -> None:
        raise RuntimeError("Can't swap an already initialized allocator")

    put_torch(monkeypatch, too_late)
    with pytest.raises(AvailabilityError, match=r"call rmm_uvm\.reinitialize before it does"):
        wire("torch")


def test_torch_without_gpu_is_a_value_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    put_torch(monkeypatch, pytest.fail, allocator=None)
    assert wire("torch").reason == "torch sees no GPU"


def test_torch_too_late_undoes_what_was_wired_before(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = CudfPrefetch(monkeypatch, enabled=False)

    def too_late(_allocator: str) -> None:
        raise RuntimeError

    put_torch(monkeypatch, too_late)
    with pytest.raises(AvailabilityError):
        rmm_uvm.pool.install._wire_all(("torch",), True, [as_on_a_gpu()], ())
    assert not flag.enabled


# --- libcudf's prefetch --------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("value", "during"), [(True, True), (False, False), ("auto", False)])
def test_cudf_prefetch_is_switched_and_put_back(
    monkeypatch: pytest.MonkeyPatch, before: bool, value: Any, during: bool
) -> None:
    flag = CudfPrefetch(monkeypatch, enabled=before)
    wiring = cudf.wire_prefetch(value, [rmm_uvm.simulated_device("64MiB")])
    assert (flag.enabled, wiring.active) == (during, during)
    wiring.undo()
    assert flag.enabled is before


def test_cudf_that_cannot_be_asked_goes_back_to_its_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flag = CudfPrefetch(monkeypatch, enabled=False)
    monkeypatch.setattr(cudf, "prefetch_enabled", lambda: None)
    wiring = cudf.wire_prefetch(True, [])
    wiring.undo()
    assert not flag.enabled


def test_cudf_prefetch_auto_without_counters_stays_off_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flag = CudfPrefetch(monkeypatch, enabled=True)
    wiring = cudf.wire_prefetch("auto", [rmm_uvm.simulated_device("64MiB", counters=False)])
    assert not flag.enabled
    assert "without counters" in wiring.reason
    wiring.undo()
    assert flag.enabled


def test_cudf_missing_is_a_value_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    wiring = cudf.wire_prefetch(True, [])
    assert (wiring.active, wiring.reason) == (False, "cuDF is not installed")


LIBCUDF = """
#include <atomic>
namespace cudf::prefetch::detail {
std::atomic_bool& enabled() { static std::atomic_bool value{false}; return value; }
}
extern "C" void enable() { cudf::prefetch::detail::enabled() = true; }
"""
ASK = """
import ctypes, sys
from rmm_uvm.integrations.cudf import prefetch_enabled
print(prefetch_enabled())
library = ctypes.CDLL(sys.argv[1])
print(prefetch_enabled())
library.enable()
print(prefetch_enabled())
"""


def test_state_of_libcudf_is_read_from_the_loaded_library(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None, "the package's own prerequisite"
    source, library = tmp_path / "libcudf.cpp", tmp_path / "libcudf.so"
    source.write_text(LIBCUDF)
    options = ["-std=c++17", "-shared", "-fPIC", "-Wl,-soname,libcudf.so"]
    subprocess.run([compiler, *options, source, "-o", library], check=True)
    answer = subprocess.run(
        [sys.executable, "-P", "-c", ASK, str(library)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert answer.stdout.split() == ["None", "False", "True"]


# --- cudf.pandas ---------------------------------------------------------------------------------


def cudf_pandas_install(prefetch: CudfPrefetch, simulated: Any) -> bool:
    """Install a resource as ``cudf.pandas.install()`` of 26.10 does: only over RMM's default."""
    if not isinstance(rmm.mr.get_per_device_resource(0), rmm.mr.CudaMemoryResource):
        return False
    pool = rmm.mr.PoolMemoryResource(SimulatedCudaMemoryResource(simulated), 1 << 20, 1 << 20)
    prefetch.enable()
    rmm.mr.set_per_device_resource(0, rmm.mr.PrefetchResourceAdaptor(pool))
    return True


def test_cudf_pandas_after_ours_leaves_ours_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = CudfPrefetch(monkeypatch, enabled=False)
    handle = rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=())
    assert not cudf_pandas_install(flag, rmm_uvm.simulated_device("64MiB"))
    assert rmm.mr.get_per_device_resource(0) is handle.managed_mr


def test_cudf_pandas_before_ours_is_replaced_with_a_warning_and_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flag = CudfPrefetch(monkeypatch, enabled=False)
    assert cudf_pandas_install(flag, rmm_uvm.simulated_device("64MiB"))
    theirs = rmm.mr.get_per_device_resource(0)
    # As on a GPU: a simulated device would leave libcudf alone.
    monkeypatch.setattr(
        rmm_uvm.pool.install,
        "_wire_all",
        lambda _libraries, value, drivers, _installed, **_: [cudf.wire_prefetch(value, drivers)],
    )

    with pytest.warns(ReplacedResourceWarning, match="replaces PrefetchResourceAdaptor"):
        rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=())
    assert not flag.enabled
    rmm_uvm.restore()

    assert rmm.mr.get_per_device_resource(0) is theirs
    assert flag.enabled
