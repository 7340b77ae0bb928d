# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What can be watched where there is no GPU, or only NVML."""

from __future__ import annotations

import pytest

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, DriverError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.watch.sampling import sources

YES, NO = Availability(available=True), Availability(available=False, reason="no NVML")


class FakeNvml:
    """A management library that knows some devices, or refuses."""

    def __init__(self, *uuids: str, available: Availability = YES, refuses: bool = False) -> None:
        self.available = available
        self._uuids = uuids
        self._refuses = refuses

    def devices(self) -> tuple[tuple[str, str], ...]:
        return tuple((uuid, "NVIDIA H200") for uuid in self._uuids)

    def memory(self, uuid: str) -> tuple[int, int, int]:
        if self._refuses:
            raise AvailabilityError("no permission")
        return 10, 90, 100

    def memory_reader(self, uuid: str) -> None:
        return None


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DriverError("no driver")

    monkeypatch.setattr(sources, "choose_driver", refuse)


@pytest.mark.usefixtures("no_driver")
def test_device_without_cuda_is_known_by_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_nvml", lambda: FakeNvml("GPU-1"))

    device = sources.open_device(0)

    assert (device.facts.name, device.facts.uuid) == ("NVIDIA H200", "GPU-1")
    assert (device.facts.total_bytes, device.facts.capacity_bytes) == (100, 100)
    assert device.nvml
    assert device.counters.reason == "no driver"


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize(
    ("nvml", "reason"),
    [
        (FakeNvml(available=NO), "no NVML"),
        (FakeNvml("GPU-1", "GPU-2"), "no such device"),
        (FakeNvml(), "no such device"),
    ],
)
def test_device_that_nvml_cannot_tell_is_unknown(
    monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml, reason: str
) -> None:
    monkeypatch.setattr(sources, "_nvml", lambda: nvml)

    device = sources.open_device(0)

    assert device.facts.total_bytes == 0
    assert (device.nvml.reason, device.memory.reason) == (reason, "no driver")


@pytest.mark.usefixtures("no_driver")
def test_device_that_nvml_may_not_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_nvml", lambda: FakeNvml("GPU-1", refuses=True))

    device = sources.open_device(0)

    assert device.nvml.reason == "no permission"
    assert device.facts.total_bytes == 0


def test_simulated_device_asks_no_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_nvml", lambda: pytest.fail("asked"))

    device = sources.open_device(0, rmm_uvm.simulated_device("64MiB"))

    assert device.counters
    assert device.memory
    assert device.nvml.reason.startswith("not asked for")


@pytest.mark.parametrize(("integrated", "capacity_bytes"), [(False, 48 << 20), (True, 64 << 20)])
def test_what_others_hold_is_no_capacity_unless_nothing_can_leave(
    integrated: bool, capacity_bytes: int
) -> None:
    driver = rmm_uvm.simulated_device("64MiB", integrated=integrated)
    others = rmm_uvm.mr.SimulatedCudaMemoryResource(driver)
    held = others.allocate(16 << 20)
    rmm_uvm.reinitialize("8MiB", driver=driver, device_budget=None, libraries=(), monitor=False)
    assert sources.open_device(0, driver).facts.capacity_bytes == capacity_bytes
    rmm_uvm.restore()
    others.deallocate(held, 16 << 20)


def test_answers_of_several_devices_are_joined() -> None:
    assert sources.of_all([YES, YES])
    assert sources.of_all([YES, NO]) == NO
    assert sources.of_any([NO, YES])
    assert sources.of_any([NO, NO]) == NO
