# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Why pages move: the events of simulated devices, and CUPTI where it cannot work."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm._lib.cuda import libcuda_available
from rmm_uvm._lib.events import MigrationEvents, cupti_events, simulated_events
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.machine.cupti_library import LIBRARY_NAME, find_cupti
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, SimulatedCudaMemoryResource
from rmm_uvm.recording.recorded import CAUSES
from rmm_uvm.watch.sampling import causes

MIB = 1 << 20


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("16MiB")


def managed(device: SimulatedDevice) -> ManagedMemoryResource:
    return ManagedMemoryResource(device, prefetch="never", account=ManagedAccount())


def started(device: SimulatedDevice) -> MigrationEvents:
    events, _ = causes.open_events(device)
    assert events is not None
    assert events.start()
    return events


# The simulated device

# Of a block of 2 MiB: 100 pages at a time bring it in three services; six faults of the CPU do.
FAULTED_BYTES = 300 * 4096
CPU_FAULTED_BYTES = 6 * 4096


def test_causes_are_named_as_in_a_recording(device: SimulatedDevice) -> None:
    totals = simulated_events(device).read()
    assert tuple(totals["host_to_device_bytes"]) == CAUSES
    assert tuple(totals["device_to_host_bytes"]) == CAUSES


def test_prefetch_is_user_touch_coherence_and_making_room_eviction(
    device: SimulatedDevice,
) -> None:
    mr, cuda, events = managed(device), SimulatedCudaMemoryResource(device), started(device)
    pointer = mr.allocate(16 * MIB)
    device.cpu_touch(pointer, 16 * MIB, write=True)
    device.prefetch(pointer, 4 * MIB)
    device.touch(pointer + 4 * MIB, 4 * MIB)
    device.prefetch(pointer, 2 * MIB, where="host")
    device.cpu_touch(pointer + 2 * MIB, 2 * MIB)
    device.touch(pointer, 16 * MIB)
    fixed = cuda.allocate(2 * MIB)
    totals = events.read()
    assert totals["host_to_device_bytes"] | {"unknown": 0} == dict.fromkeys(CAUSES, 0) | {
        "user": 4 * MIB,
        "coherence": 8 * FAULTED_BYTES,
        "prefetch": 8 * (2 * MIB - FAULTED_BYTES),  # the kernel driver's own
    }
    assert totals["device_to_host_bytes"] | {"unknown": 0} == dict.fromkeys(CAUSES, 0) | {
        "user": 2 * MIB,
        "coherence": CPU_FAULTED_BYTES,
        "prefetch": 2 * MIB - CPU_FAULTED_BYTES,
        "eviction": 2 * MIB,
    }
    statistics = device.statistics()
    assert totals["gpu_fault_groups"] == statistics["gpu_fault_groups"]
    assert totals["cpu_faults"] == statistics["cpu_faults"]
    assert totals["dropped_records"] == 0
    cuda.deallocate(fixed, 2 * MIB)
    mr.deallocate(pointer, 16 * MIB)


def test_nothing_is_told_before_the_start_and_after_the_stop(device: SimulatedDevice) -> None:
    mr, events = managed(device), simulated_events(device)
    pointer = mr.allocate(2 * MIB)

    def bounce() -> None:
        device.cpu_touch(pointer, 2 * MIB, write=True)
        device.touch(pointer, 2 * MIB)

    bounce()
    assert events.busiest() == []
    assert events.start()
    bounce()
    events.stop()
    events.stop()
    bounce()
    assert events.read()["host_to_device_bytes"]["coherence"] == FAULTED_BYTES
    assert events.busiest() == [(pointer, 2 * MIB, 2 * MIB)]
    assert events.start()
    assert events.busiest() == []
    mr.deallocate(pointer, 2 * MIB)


def test_busiest_blocks_come_first_and_a_negative_number_is_refused(
    device: SimulatedDevice,
) -> None:
    mr, events = managed(device), started(device)
    pointer = mr.allocate(6 * MIB)
    device.cpu_touch(pointer, 6 * MIB, write=True)
    device.touch(pointer, 6 * MIB)
    device.cpu_touch(pointer + 4 * MIB, 2 * MIB)
    assert events.busiest(2) == [(pointer + 4 * MIB, 2 * MIB, 2 * MIB), (pointer, 2 * MIB, 0)]
    assert events.busiest(0) == []
    with pytest.raises(ValueError, match="most=-1"):
        events.busiest(-1)
    mr.deallocate(pointer, 6 * MIB)


def test_events_keep_their_device_alive() -> None:
    events = started(rmm_uvm.simulated_device("16MiB"))
    assert events.read()["cpu_faults"] == 0


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [("counters", "without counters"), ("concurrent_managed_access", "concurrent managed access")],
)
def test_device_that_could_not_tell_gives_the_reason(lacking: str, reason: str) -> None:
    without: dict[str, Any] = {lacking: False}
    events = simulated_events(rmm_uvm.simulated_device("16MiB", **without))
    assert reason in events.start().reason


def test_events_cannot_be_made_directly() -> None:
    with pytest.raises(TypeError, match="cupti_events"):
        MigrationEvents()


_STEP = st.tuples(
    st.sampled_from(["touch", "cpu_touch", "to_device", "to_host", "discard", "replace"]),
    st.integers(0, 23 * MIB),
    st.integers(1, 24 * MIB),
    st.booleans(),
)


@hypothesis.given(st.lists(_STEP, max_size=30), st.integers(0, 10))
@hypothesis.settings(max_examples=60)
def test_sums_are_the_counters_to_the_byte_in_any_program(
    steps: list[tuple[str, int, int, bool]], watched_from: int
) -> None:
    device = rmm_uvm.simulated_device("16MiB")
    mr, events, before = managed(device), simulated_events(device), (0, 0)
    pointer = mr.allocate(24 * MIB)
    for index, (what, begin, nbytes, write) in enumerate(steps):
        if index == watched_from:
            assert events.start()
            before = device.migrated_bytes()
        address, nbytes = pointer + begin, min(nbytes, 24 * MIB - begin)
        if what == "touch":
            device.touch(address, nbytes, write)
        elif what == "cpu_touch":
            device.cpu_touch(address, nbytes, write)
        elif what == "discard":
            device.discard(address, nbytes)
        elif what == "replace":
            device.discard_and_prefetch(address, nbytes, "device" if write else "host")
        else:
            device.prefetch(address, nbytes, "device" if what == "to_device" else "host")
    after, totals = device.migrated_bytes(), events.read()
    moved = (0, 0) if len(steps) <= watched_from else (after[0] - before[0], after[1] - before[1])
    assert sum(totals["host_to_device_bytes"].values()) == moved[0]
    assert sum(totals["device_to_host_bytes"].values()) == moved[1]
    blocks = events.busiest(100)
    assert (sum(b[1] for b in blocks), sum(b[2] for b in blocks)) == moved
    mr.deallocate(pointer, 24 * MIB)


# Rows of a recording


def test_row_has_a_value_for_every_column(device: SimulatedDevice) -> None:
    mr, events = managed(device), started(device)
    pointer = mr.allocate(2 * MIB)
    device.cpu_touch(pointer, 2 * MIB, write=True)
    device.prefetch(pointer, 2 * MIB)
    row = dict(zip(causes.COLUMNS, causes.cause_row(2.5, 3, events.read()), strict=True))
    assert row["time_seconds"] == 2.5
    assert row["device_id"] == 3
    assert row["host_to_device_user_bytes"] == 2 * MIB
    assert row["device_to_host_eviction_bytes"] == 0
    assert row["cpu_faults"] == device.statistics()["cpu_faults"]
    mr.deallocate(pointer, 2 * MIB)


def test_cost_is_told_on_a_gpu_only(device: SimulatedDevice) -> None:
    gpu: Any = SimpleNamespace(info=SimpleNamespace(simulated=False))
    assert causes.cost_note(gpu) == causes.COST_NOTE
    assert causes.cost_note(device) == ""


# CUPTI, as far as it goes without a GPU


def gpu_driver(*, concurrent_managed_access: bool = True) -> Any:
    """Return what stands for the driver of a GPU; nothing of it is used but its facts."""
    access = Availability(concurrent_managed_access, "" if concurrent_managed_access else "WSL2")
    return SimpleNamespace(info=SimpleNamespace(device_id=0, concurrent_managed_access=access))


def test_open_without_a_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Availability(available=False, reason="no libcupti.so.13: pip install it")
    monkeypatch.setattr(causes, "find_cupti", lambda: (None, missing))
    assert causes.open_events(gpu_driver()) == (None, missing)


def test_open_where_nothing_migrates_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "find_cupti", lambda: pytest.fail("looked for a library"))
    events, found = causes.open_events(gpu_driver(concurrent_managed_access=False))
    assert events is None
    assert found.reason == "nothing migrates: WSL2"


@pytest.mark.parametrize("content", [b"", b"not a library at all"])
def test_open_with_a_broken_library_gives_the_loaders_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    broken = tmp_path / LIBRARY_NAME
    broken.write_bytes(content)
    found = str(broken), Availability(available=True)
    monkeypatch.setattr(causes, "find_cupti", lambda: found)
    events, reason = causes.open_events(gpu_driver())
    assert events is None
    assert str(broken) in reason.reason
    assert "pip install" in reason.reason


def test_library_that_is_something_else_says_what_it_lacks() -> None:
    events, found = cupti_events([0], ["/nowhere/" + LIBRARY_NAME, "libc.so.6"])
    assert events is None
    assert found.reason.startswith("libc.so.6 has no cupti")


def test_real_library_is_opened_or_gives_the_reason_of_the_driver() -> None:
    path, found = find_cupti()
    if path is None:  # it is no dependency
        assert LIBRARY_NAME in found.reason
        return
    driver = libcuda_available()
    for _ in range(2):
        events, opened = cupti_events([0], [path])
        assert opened == driver
        assert (events is not None) == bool(driver)


# Finding the library


def _finder(monkeypatch: pytest.MonkeyPatch, answer: str | Exception | None) -> None:
    def load(name: str) -> SimpleNamespace:
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(abs_path=answer)

    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", load)


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("not found"), OSError("invalid ELF header"), None, "/usr/lib/libcupti.so.12"],
)
def test_finder_without_a_fit_looks_into_the_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    _finder(monkeypatch, answer)
    path, found = find_cupti(tmp_path)
    assert path is None
    assert "pip install 'nvidia-cuda-cupti>=13,<14'" in found.reason
    assert ("libcupti.so.12 is not for CUDA 13" in found.reason) == isinstance(answer, str)
    library = tmp_path / "extras/CUPTI/lib64" / LIBRARY_NAME
    library.parent.mkdir(parents=True)
    library.touch()
    assert find_cupti(tmp_path) == (str(library), Availability(available=True))


def test_finder_without_nvidias_finder_looks_into_the_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert find_cupti(tmp_path)[0] is None


def test_finder_takes_what_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _finder(monkeypatch, f"/opt/{LIBRARY_NAME}")
    assert find_cupti(tmp_path) == (f"/opt/{LIBRARY_NAME}", Availability(available=True))
