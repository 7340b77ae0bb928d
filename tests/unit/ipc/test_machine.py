# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which machine this is, and which GPUs it has, asked of a made-up libcuda."""

from __future__ import annotations

import types
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import cuda.bindings
import pytest

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.ipc import machine


class Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NO_DEVICE = 100


def libcuda(uuids: list[bytes], init: Result = Result.CUDA_SUCCESS) -> Any:
    ok = Result.CUDA_SUCCESS
    return types.SimpleNamespace(
        cuInit=lambda flags: (init,),
        cuDeviceGetCount=lambda: (ok, len(uuids)),
        cuDeviceGet=lambda ordinal: (ok, 10 + ordinal),
        cuDeviceGetUuid=lambda device: (ok, types.SimpleNamespace(bytes=uuids[device - 10])),
    )


FIRST, SECOND, THIRD = (bytes([number]) * 16 for number in (1, 2, 3))


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda.bindings, "driver", libcuda([FIRST, SECOND]))


@pytest.mark.usefixtures("two_gpus")
def test_device_that_is_there_is_visible() -> None:
    assert machine.visible(FIRST)
    assert machine.visible(SECOND)


@pytest.mark.usefixtures("two_gpus")
def test_device_that_is_not_there_is_named() -> None:
    found = machine.visible(THIRD)
    assert not found
    assert found.reason == (
        "GPU-03030303-0303-0303-0303-030303030303 is not visible here, 2 others are: name it in "
        "CUDA_VISIBLE_DEVICES too"
    )


def test_libcuda_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = libcuda([FIRST], init=Result.CUDA_ERROR_NO_DEVICE)
    monkeypatch.setattr(cuda.bindings, "driver", driver)
    assert "cuInit answered CUDA_ERROR_NO_DEVICE" in machine.visible(FIRST).reason


@pytest.fixture
def _machine_forgotten() -> Iterator[None]:
    machine.machine_id.cache_clear()
    yield
    machine.machine_id.cache_clear()


@pytest.mark.usefixtures("_machine_forgotten")
def test_machine_is_the_same_each_time_and_16_bytes() -> None:
    assert len(machine.machine_id()) == 16
    assert machine.machine_id() == machine.machine_id()


@pytest.mark.usefixtures("_machine_forgotten")
@pytest.mark.parametrize("content", [None, "", "no identity"])
def test_machine_that_is_not_told_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "boot_id"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(machine, "_BOOT_ID", path)
    with pytest.raises(AvailabilityError, match="does not tell which machine"):
        machine.machine_id()
