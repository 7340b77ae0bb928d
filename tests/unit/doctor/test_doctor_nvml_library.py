# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the doctor reads from NVML about devices and pairs, over a stand-in for its bindings."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from rmm_uvm.doctor.facts import PairFacts
from rmm_uvm.doctor.nvml_library import NvmlFacts, NvmlPart, read_nvml

GIB = 2**30


class FakeNvml:
    """Stands for `cuda.bindings.nvml`: "a" and "b" with NVLink, and the MIG instance "m".

    Parameters
    ----------
    failing : str
        Name of the function that fails.
    """

    class GpuP2PStatus(IntEnum):
        OK = 0
        CHIPSET_NOT_SUPPORED = 1
        NOT_SUPPORTED = 5
        UNKNOWN = 6

    class GpuP2PCapsIndex(IntEnum):
        READ = 0
        NVLINK = 2

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.opened = 0
        self.status = {self.GpuP2PCapsIndex.READ: 0, self.GpuP2PCapsIndex.NVLINK: 0}

    def _answer(self, name: str, value: Any) -> Any:
        if name == self.failing:
            raise RuntimeError(name)
        return value

    def init_v2(self) -> None:
        self._answer("init_v2", None)
        self.opened += 1

    def shutdown(self) -> None:
        self.opened -= 1

    def device_get_handle_by_uuid(self, uuid: str) -> Any:
        if uuid not in ("GPU-a", "GPU-b", "MIG-m"):
            raise LookupError(uuid)
        return self._answer("device_get_handle_by_uuid", uuid)

    def device_get_memory_info_v2(self, handle: str) -> Any:
        return self._answer("device_get_memory_info_v2", SimpleNamespace(free=7 * GIB))

    def device_get_utilization_rates(self, handle: str) -> Any:
        if handle == "MIG-m":
            raise RuntimeError("not supported")
        return self._answer("device_get_utilization_rates", SimpleNamespace(gpu=25, memory=9))

    def device_get_p2p_status(self, first: str, second: str, index: int) -> Any:
        return self._answer("device_get_p2p_status", self.status[self.GpuP2PCapsIndex(index)])


def test_read_nvml_tells_devices_and_pairs_and_closes_the_library() -> None:
    nvml = FakeNvml()
    found = read_nvml(["a", "b"], nvml)
    assert found.devices == dict.fromkeys("ab", NvmlPart(7 * GIB, False, 0.25))
    assert found.pairs == {("a", "b"): PairFacts(has_nvlink=True)}
    assert nvml.opened == 0


def test_read_nvml_mig_instance_tells_memory_and_is_in_no_pair() -> None:
    found = read_nvml(["a", "m"], FakeNvml())
    assert found.devices["m"] == NvmlPart(7 * GIB, is_mig=True)
    assert found.pairs == {}


def test_read_nvml_device_that_it_does_not_know_is_left_out() -> None:
    assert set(read_nvml(["a", "z"], FakeNvml()).devices) == {"a"}


def test_read_nvml_pair_without_nvlink_or_access_says_so() -> None:
    nvml = FakeNvml()
    nvml.status = {nvml.GpuP2PCapsIndex.READ: 1, nvml.GpuP2PCapsIndex.NVLINK: 5}
    expected = PairFacts(has_nvlink=False, refusal="the chipset does not support it")
    assert read_nvml(["a", "b"], nvml).pairs == {("a", "b"): expected}


def test_read_nvml_status_without_meaning_gives_no_reason() -> None:
    nvml = FakeNvml()
    nvml.status = {nvml.GpuP2PCapsIndex.READ: 6, nvml.GpuP2PCapsIndex.NVLINK: 99}
    assert read_nvml(["a", "b"], nvml).pairs == {("a", "b"): PairFacts()}


@pytest.mark.parametrize(
    ("failing", "part", "pair"),
    [
        ("device_get_memory_info_v2", NvmlPart(None, False, 0.25), PairFacts(has_nvlink=True)),
        (
            "device_get_utilization_rates",
            NvmlPart(7 * GIB, False, None),
            PairFacts(has_nvlink=True),
        ),
        ("device_get_p2p_status", NvmlPart(7 * GIB, False, 0.25), PairFacts()),
    ],
)
def test_read_nvml_question_that_fails_leaves_the_others(
    failing: str, part: NvmlPart, pair: PairFacts
) -> None:
    found = read_nvml(["a", "b"], FakeNvml(failing))
    assert found.devices["a"] == part
    assert found.pairs["a", "b"] == pair


@pytest.mark.parametrize("failing", ["init_v2", "device_get_handle_by_uuid"])
def test_read_nvml_library_that_does_not_work_leaves_all_unknown(failing: str) -> None:
    nvml = FakeNvml(failing)
    assert read_nvml(["a", "b"], nvml) == NvmlFacts()
    assert nvml.opened == 0
