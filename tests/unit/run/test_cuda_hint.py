# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of the hints on errors of CUDA, by name or by number, and of errors without a hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rmm_uvm.run import cuda_hint
from rmm_uvm.run.cuda_hint import hint

OLD = "the kernel driver is older than the CUDA runtime"
SIMULATED = "a simulated device has memory only"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient", OLD),
        ("CUDA error at: /a/device_buffer.cpp:143: cudaErrorInsufficientDriver CUDA driver", OLD),
        ("Memcpy failed with error: 35", OLD),
        ("Memcpy failed with error: 700", "CUDA_LAUNCH_BLOCKING=1"),
        ("prefetching: cuMemPrefetchAsync answered driver error (700)", "CUDA_LAUNCH_BLOCKING=1"),
        ("device 0: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart the machine"),
        ("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "take cuda-compat away"),
        ("cudaErrorSystemNotReady", "fabric manager"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "CUDA_VISIBLE_DEVICES"),
        ("cudaErrorInvalidDevice", "numbered from 0"),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", "exclusive mode"),
        ("CUDA_ERROR_STUB_LIBRARY", "lib64/stubs"),
        ("cudaErrorUnknown", "modprobe nvidia_uvm"),
    ],
)
def test_answer_has_its_hint_however_it_is_told(text: str, told: str) -> None:
    assert told in str(hint(RuntimeError(text)))


@pytest.mark.parametrize(
    "text",
    [
        "wrong",
        "Memcpy failed with error: 1",
        "Memcpy failed with error: 350",
        "35",
        "the server answered at once (35)",
        "allocating: cuMemAllocManaged answered out of memory (2)",  # the summary tells
        "cudaErrorMemoryAllocation",
        "cudaErrorUnknownToUs",
        "myCudaErrorNoDevice",
    ],
)
@pytest.mark.parametrize("simulated", [False, True])
def test_what_nothing_can_be_done_about_has_no_hint(text: str, *, simulated: bool) -> None:
    assert hint(RuntimeError(text), simulated=simulated) is None


@pytest.mark.parametrize("number", [34, 35, 100])
def test_answer_of_a_machine_without_a_gpu_is_told_as_such_on_a_simulated_device(
    number: int,
) -> None:
    error = RuntimeError(f"Memcpy failed with error: {number}")
    assert SIMULATED in str(hint(error, simulated=True))
    assert SIMULATED not in str(hint(error))
    assert "leave out --no-pool" in str(hint(error, simulated=True, pool=False))
    assert "--no-pool" not in str(hint(error, pool=False))


def test_answer_of_a_gpu_is_no_lack_of_one_on_a_simulated_device() -> None:
    assert "CUDA_LAUNCH" in str(hint(RuntimeError("cudaErrorIllegalAddress"), simulated=True))


def test_causes_of_an_error_count_but_for_what_it_leaves_behind() -> None:
    answer = RuntimeError("Memcpy failed with error: 35")
    caused, happened_within = ValueError("mine"), RuntimeError("mine")
    caused.__cause__, happened_within.__context__ = answer, answer
    assert OLD in str(hint(caused))
    assert OLD in str(hint(happened_within))
    happened_within.__suppress_context__ = True  # raise ... from None
    assert hint(happened_within) is None


def test_error_of_another_kind_after_an_answer_that_was_handled_has_no_hint() -> None:
    missing = FileNotFoundError("input.csv")
    missing.__context__ = RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    assert hint(missing) is None


@pytest.mark.parametrize("kind", [ValueError, KeyError, OSError, TypeError])
def test_name_of_an_answer_in_an_error_of_pythons_own_is_none(kind: type[Exception]) -> None:
    assert hint(kind("expected one of cudaErrorNotReady, cudaErrorUnknown")) is None


def test_error_of_a_library_that_is_no_runtime_error_counts() -> None:
    class CudaAPIError(Exception):
        """As Numba has it."""

    assert OLD in str(hint(CudaAPIError("[35] Call to cuX results in cudaErrorInsufficientDriver")))


def test_causes_that_go_in_a_ring_end() -> None:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__context__, other.__context__ = other, one
    assert hint(one) is None


def test_every_number_that_is_known_by_name_has_one_line() -> None:
    assert set(cuda_hint._NUMBERS.values()) == set(cuda_hint._HINTS)
    assert all(re.fullmatch(r"[^\n]{20,200}", line) for line in cuda_hint._HINTS.values())


def test_troubleshooting_has_a_row_for_every_number_with_a_hint() -> None:
    document = Path(__file__).resolve().parents[3] / "docs/use/troubleshooting.md"
    section = document.read_text().partition("## An error of CUDA\n")[2].partition("\n## ")[0]
    named = {(int(number), name) for number, name in re.findall(r"\b(\d+), `([A-Za-z]+)`", section)}
    assert named == {
        (number, name.removeprefix("cudaError"))
        for name, number in cuda_hint._NUMBERS.items()
        if name.startswith("cudaError")
    }
