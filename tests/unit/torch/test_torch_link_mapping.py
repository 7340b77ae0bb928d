# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the CUDA driver is told so that kernels use memory through the link, and a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from cuda.bindings import driver as cuda

import rmm_uvm
from rmm_uvm.torch.embeddings.row_memory import map_through_link, unmap

MIB = 1 << 20


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what the CUDA driver is told; it agrees to everything but memory at address 0."""
    calls: list[Any] = []

    def advise(address: int, nbytes: int, advice: Any, location: Any) -> tuple[Any]:
        calls.append((address, nbytes, advice.name, location.type.name, location.id))
        codes = cuda.CUresult
        return (codes.CUDA_SUCCESS if address else codes.CUDA_ERROR_INVALID_VALUE,)

    monkeypatch.setattr(cuda, "cuMemAdvise", advise)
    return calls


def test_mapping_and_taking_it_back_are_about_the_device_of_the_driver(told: list[Any]) -> None:
    driver = rmm_uvm.simulated_device("64MiB", device=1)
    assert map_through_link(driver, 8 * MIB, 4 * MIB) == ""
    assert unmap(driver, 8 * MIB, 4 * MIB) == ""
    where = ("CU_MEM_LOCATION_TYPE_DEVICE", 1)
    assert told == [
        (8 * MIB, 4 * MIB, "CU_MEM_ADVISE_SET_ACCESSED_BY", *where),
        (8 * MIB, 4 * MIB, "CU_MEM_ADVISE_UNSET_ACCESSED_BY", *where),
    ]


def test_mapping_that_is_refused_is_a_reason_and_no_exception(told: list[Any]) -> None:
    driver = rmm_uvm.simulated_device("64MiB")
    reason = map_through_link(driver, 0, 4 * MIB)
    assert reason == "cuMemAdvise: CUDA_ERROR_INVALID_VALUE for a mapping of 4194304 bytes"
    assert len(told) == 1
