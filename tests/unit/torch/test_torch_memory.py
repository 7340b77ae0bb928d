# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import signal
import subprocess
import sys
import weakref
from typing import Any

import pytest
import torch
from torch.optim import optimizer

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.errors import AvailabilityError, ConfigurationError, MonitorWarning
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget

from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20


def make_pool(budget_mib: int | None = None, device_mib: int = 512) -> UvmResourceAdaptor:
    budget = None if budget_mib is None else Budget(budget_mib * MIB, background=False)
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(device_mib * MIB),
        initial_pool_size="8MiB",
        device_budget=budget,
    )


def test_managed_routes_torchs_segments_to_the_pool_and_back(cuda: FakeTorchCuda) -> None:
    mr = make_pool()
    before = mr.managed_mr.slab_bytes
    with rmm_uvm.torch.managed(mr=mr) as memory:
        assert cuda.routed
        address = cuda.allocate(30 * MIB)
        assert mr.managed_mr.slab_bytes == before + 30 * MIB
        assert mr.managed_mr.driver.resident_bytes(address, 30 * MIB) == 30 * MIB
        assert memory.statistics()["segments"]["segment_bytes"] == 30 * MIB
        assert not memory.acting
    assert not cuda.routed
    assert cuda.released == 1
    # Tensors outlive the block, and are given back to whom they came from.
    cuda.free(address)
    cuda.empty_cache()
    assert mr.managed_mr.slab_bytes == before


def test_what_fits_is_not_followed(cuda: FakeTorchCuda) -> None:
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr) as memory:
        for _ in range(50):
            cuda.free(cuda.allocate(20 * MIB))
        statistics = memory.statistics()
    assert not statistics["acting"]
    assert statistics["segments"]["reused"] == statistics["segments"]["freed"] == 0


def test_past_the_budget_every_allocation_is_followed_and_the_dead_are_dropped(
    cuda: FakeTorchCuda,
) -> None:
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr) as memory:
        first = cuda.allocate(40 * MIB)
        cuda.free(first)
        assert torch._C._accelerator_getAllocatorSettings() == ""
        second = cuda.allocate(46 * MIB)  # past the budget: 86 MiB are taken
        assert memory.acting
        assert torch._C._accelerator_getAllocatorSettings() == "max_split_size_mb:21"
        evicted_bytes = memory.statistics()["residency"]["evicted_bytes"]
        cuda.free(second)
        assert cuda.allocate(38 * MIB) == first  # the least that is large enough
        statistics = memory.statistics()
        assert statistics["segments"]["reused"] == 2
        assert statistics["residency"]["evicted_bytes"] == evicted_bytes
        assert statistics["residency"]["dropped_bytes"] > 0
        assert statistics["residency"]["resident_bytes"] <= 64 * MIB
    assert torch._C._accelerator_getAllocatorSettings() == ""


def test_allocation_is_told_although_a_signal_waits_whose_handler_raises(
    cuda: FakeTorchCuda,
) -> None:
    def fails(_signal: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, fails)
    try:
        with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
            kept = [cuda.allocate(30 * MIB) for _ in range(3)]
            cuda.free(kept[0])
            told = memory.statistics()["segments"]["reused"]
            cuda.before_telling = functools.partial(ctypes.CDLL(None)["raise"], signal.SIGUSR1)
            with contextlib.suppress(TimeoutError):
                cuda.allocate(30 * MIB)
            assert memory.statistics()["segments"]["reused"] == told + 1
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_allocations_are_passed_on_to_callbacks_of_others(cuda: FakeTorchCuda) -> None:
    from torch.cuda import _gpu_trace

    seen: list[int] = []
    _gpu_trace.MemoryAllocationCallbacks.add_callback(seen.append)
    try:
        with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
            for _ in range(3):
                cuda.allocate(30 * MIB)
            assert memory.acting
            seen.clear()
            address = cuda.allocate(20 * MIB)
            assert seen == [address]
    finally:
        _gpu_trace.MemoryAllocationCallbacks.callback_list.remove(seen.append)
    assert "fire_callbacks" not in vars(_gpu_trace.MemoryAllocationCallbacks) or (
        _gpu_trace.MemoryAllocationCallbacks.fire_callbacks.__func__
        is type(_gpu_trace.MemoryAllocationCallbacks).fire_callbacks
    )


def test_what_cannot_be_announced_is_warned_of_and_nothing_is_left_behind(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_uses: object) -> None:
        raise OSError("no hooks today")

    monkeypatch.setattr("rmm_uvm.torch.uses.Uses.begin", fails)
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        cuda.allocate(40 * MIB)
        with pytest.warns(MonitorWarning, match="no hooks today"):
            cuda.allocate(60 * MIB)
        assert not memory.acting
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_what_torch_hands_out_once_nothing_is_told_any_more_is_not_dropped(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_uses: object) -> None:
        raise OSError("no hooks today")

    monkeypatch.setattr("rmm_uvm.torch.uses.Uses.begin", fails)
    mr = rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(512 * MIB, backing=True),
        initial_pool_size="8MiB",
        device_budget=Budget(64 * MIB, background=False),
    )
    with rmm_uvm.torch.managed(mr=mr) as memory:
        first = cuda.allocate(40 * MIB)
        cuda.free(first)
        with pytest.warns(MonitorWarning, match="no hooks today"):
            cuda.allocate(44 * MIB)
        address = cuda.allocate(38 * MIB)
        assert address == first  # in what was free when following ended
        mr.managed_mr.driver.touch(address, 38 * MIB, write=True)
        ctypes.memset(address, 0x5A, 38 * MIB)
        cuda.allocate(46 * MIB)  # room is made
        assert ctypes.string_at(address, 38 * MIB) == b"\x5a" * (38 * MIB)
        assert memory.statistics()["residency"]["dropped_bytes"] == 0


def test_pool_of_another_device_is_refused(cuda: FakeTorchCuda) -> None:
    with pytest.raises(ConfigurationError, match="pool of device 0"):
        rmm_uvm.torch.install(1, mr=make_pool())
    assert not cuda.routed


def test_graphs_are_allowed_once_the_last_of_several_ended_in_any_order() -> None:
    from rmm_uvm.torch.graphs import refuse_graphs

    theirs = torch.cuda.CUDAGraph.capture_begin, torch.cuda.graph.__enter__
    first, second = refuse_graphs(), refuse_graphs()
    first()
    first()
    assert torch.cuda.CUDAGraph.capture_begin is not theirs[0]
    second()
    assert (torch.cuda.CUDAGraph.capture_begin, torch.cuda.graph.__enter__) == theirs


def test_memory_past_the_maximum_is_refused_with_a_reason(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(), maximum="64MiB") as memory:
        cuda.allocate(40 * MIB)
        with pytest.raises(torch.OutOfMemoryError):
            cuda.allocate(40 * MIB)
        assert "are exhausted" in memory.statistics()["last_refusal"]
        cuda.allocate(20 * MIB)  # what there is can still be had


def test_memory_past_the_cap_is_refused_with_a_reason(
    cuda: FakeTorchCuda,
) -> None:
    mr = make_pool()
    try:
        with rmm_uvm.torch.managed(mr=mr) as memory:
            account = mr.managed_mr.account
            account.limit_bytes = account.used_bytes + 64 * MIB
            with pytest.raises(torch.OutOfMemoryError):
                cuda.allocate(80 * MIB)
            assert "RMM_UVM_MANAGED_LIMIT" in memory.statistics()["last_refusal"]
            assert memory.statistics()["segments"]["segment_bytes"] == 0
    finally:
        mr.managed_mr.account.limit_bytes = None


def test_small_segments_stay_on_the_device(cuda: FakeTorchCuda) -> None:
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr) as memory:
        cuda.allocate(1000)
        for _ in range(4):
            cuda.allocate(30 * MIB)
        assert memory.statistics()["residency"]["pinned_bytes"] == 2 * MIB


def test_second_install_on_a_device_is_refused(cuda: FakeTorchCuda) -> None:
    mr = make_pool()
    with rmm_uvm.torch.managed(mr=mr) as memory:
        assert rmm_uvm.torch.installed_memory() is memory
        with pytest.raises(AvailabilityError, match="already"):
            rmm_uvm.torch.install(mr=mr)
        assert cuda.routed
    assert rmm_uvm.torch.installed_memory() is None
    with rmm_uvm.torch.managed(mr=mr):
        assert cuda.routed


def test_device_is_named_as_torch_names_it(cuda: FakeTorchCuda) -> None:
    assert rmm_uvm.torch.installed_memory(torch.device("cuda")) is None
    with rmm_uvm.torch.managed("cuda:0", mr=make_pool()) as memory:
        assert memory.device == 0
        for device in (0, "cuda", "cuda:0", torch.device("cuda:0")):
            assert rmm_uvm.torch.installed_memory(device) is memory
        assert rmm_uvm.torch.installed_memory("cuda:1") is None


@pytest.mark.parametrize("device", ["cpu", "gpu", torch.device("cpu"), 0.5, ""])
def test_device_that_is_none_of_cudas_is_refused(cuda: FakeTorchCuda, device: Any) -> None:
    with pytest.raises(ConfigurationError, match="use a CUDA ordinal, or one such as 'cuda:0'"):
        rmm_uvm.torch.install(device, mr=make_pool())
    with pytest.raises(ConfigurationError, match="use a CUDA ordinal"):
        rmm_uvm.torch.installed_memory(device)


def test_nothing_serves_a_torch_that_has_no_gpu() -> None:
    assert rmm_uvm.torch.installed_memory() is None


def test_exception_within_the_block_ends_the_routing(cuda: FakeTorchCuda) -> None:
    def fails() -> None:
        with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
            cuda.allocate(90 * MIB)
            assert memory.acting
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not cuda.routed
    assert not torch.nn.modules.module._global_forward_pre_hooks
    assert not optimizer._global_optimizer_pre_hooks


def test_close_takes_every_callback_away(cuda: FakeTorchCuda) -> None:
    from torch.cuda import _gpu_trace

    registries = (
        _gpu_trace.MemoryAllocationCallbacks,
        _gpu_trace.MemoryDeallocationCallbacks,
        _gpu_trace.StreamCreationCallbacks,
        _gpu_trace.EventWaitCallbacks,
    )
    before = [list(one.callback_list) for one in registries]
    memory = rmm_uvm.torch.install(mr=make_pool(64))
    cuda.allocate(90 * MIB)
    assert memory.acting
    assert [list(one.callback_list) for one in registries] != before
    memory.close()
    memory.close()
    assert [list(one.callback_list) for one in registries] == before


def test_cuda_graph_is_refused_in_one_line_and_allowed_afterwards(cuda: FakeTorchCuda) -> None:
    theirs = torch.cuda.CUDAGraph.capture_begin
    with (
        rmm_uvm.torch.managed(mr=make_pool()),
        pytest.raises(AvailabilityError, match=r"no CUDA graph .* a graph needs its own\. Capture"),
    ):
        torch.cuda.CUDAGraph.capture_begin(object())  # type: ignore[arg-type]
    assert torch.cuda.CUDAGraph.capture_begin is theirs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evict": "weights"}, "use one of 'all', 'activations'"),
        ({"eager": 1}, "eager=1: use True, False"),
        ({"device_budget": "64MiB"}, "shares the budget"),
        ({"eviction": "lru"}, "shares the budget"),
        ({"eager": True}, "shares the budget"),
        ({"maximum": -1}, "maximum"),
    ],
)
def test_bad_setting_is_refused_and_nothing_installed(
    cuda: FakeTorchCuda, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        rmm_uvm.torch.install(mr=make_pool(), **settings)  # type: ignore[arg-type]
    assert not cuda.routed
    assert rmm_uvm.torch.installed_memory(0) is None


def test_torch_that_sees_no_gpu_is_told_of_the_simulated_one() -> None:
    with pytest.raises(AvailabilityError, match=r"sees no GPU: rmm_uvm\.torch\.simulated"):
        rmm_uvm.torch.install()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("__version__", "2.8.1+cu128", "is too old"),
        ("_C._cuda_beginAllocateToPool", None, "has no _cuda_beginAllocateToPool"),
        ("_C._autograd._top_saved_tensors_default_hooks", None, "has no _top_saved_tensors"),
    ],
)
def test_torch_that_cannot_be_served_is_refused_in_one_line(
    cuda: FakeTorchCuda,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str | None,
    message: str,
) -> None:
    if value is None:
        monkeypatch.delattr(f"torch.{name}")
    else:
        monkeypatch.setattr(f"torch.{name}", value)
    with pytest.raises(AvailabilityError, match=message) as raised:
        rmm_uvm.torch.install(mr=make_pool())
    assert "\n" not in str(raised.value)


def test_other_allocator_of_torch_is_refused(
    cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda.memory, "get_allocator_backend", lambda: "cudaMallocAsync")
    with pytest.raises(AvailabilityError, match="cudaMallocAsync"):
        rmm_uvm.torch.install(mr=make_pool())


def test_without_torch_the_import_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n import rmm_uvm.torch\n"
        "except rmm_uvm.errors.AvailabilityError as error: print(error)"
    )
    shown = subprocess.run(
        [sys.executable, "-P", "-c", f"import rmm_uvm.errors\n{code}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert shown.strip().endswith("pip install 'rmm-uvm[torch]'")


def test_closed_memory_and_its_pool_go_although_the_call_about_pressure_is_kept(
    cuda: FakeTorchCuda,
) -> None:
    memory = rmm_uvm.torch.install(mr=make_pool(64))
    pool, gone = weakref.ref(memory.pool), weakref.ref(memory)
    cuda.allocate(90 * MIB)
    assert memory.acting
    memory.close()
    assert pool() is None  # torch gives back its segments with it
    del memory
    gc.collect()
    assert gone() is None
