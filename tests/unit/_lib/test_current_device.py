# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Making a device current for one scope, with recorded calls in place of CUDA's."""

from __future__ import annotations

import types
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm._lib.current_device import current_device
from rmm_uvm.errors import DriverError

OK, BAD = 0, 101


class Driver:
    """Stands in for a driver of GPU 3."""

    info = types.SimpleNamespace(simulated=False, device_id=3)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Record the calls that reach CUDA."""
    import cuda.bindings

    seen: list[tuple[str, Any]] = []

    def record(name: str, *result: Any) -> Any:
        def call(*arguments: Any) -> Any:
            seen.append((name, arguments))
            return result

        return call

    fake = types.SimpleNamespace(
        CUresult=types.SimpleNamespace(CUDA_SUCCESS=OK),
        cuDeviceGet=record("get", OK, "device"),
        cuDevicePrimaryCtxRetain=record("retain", OK, "context"),
        cuCtxPushCurrent=record("push", OK),
        cuCtxPopCurrent=record("pop", OK, "context"),
        cuDevicePrimaryCtxRelease=record("release", OK),
    )
    monkeypatch.setattr(cuda.bindings, "driver", fake, raising=False)
    return seen


def test_primary_context_is_pushed_and_popped(calls: list[tuple[str, Any]]) -> None:
    with current_device(Driver()):
        assert [name for name, _ in calls] == ["get", "retain", "push"]
    assert calls == [
        ("get", (3,)),
        ("retain", ("device",)),
        ("push", ("context",)),
        ("pop", ()),
        ("release", ("device",)),
    ]


def test_context_is_popped_after_an_error(calls: list[tuple[str, Any]]) -> None:
    with pytest.raises(KeyError), current_device(Driver()):
        raise KeyError
    assert [name for name, _ in calls][-2:] == ["pop", "release"]


def test_device_that_cannot_be_made_current_is_a_driver_error(
    calls: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import cuda.bindings

    monkeypatch.setattr(cuda.bindings.driver, "cuDevicePrimaryCtxRetain", lambda _: (BAD, None))
    scope = current_device(Driver())
    with pytest.raises(DriverError, match="device 3 cannot be made current"):
        scope.__enter__()
    assert [name for name, _ in calls] == ["get"]


def test_simulated_device_calls_nothing(calls: list[tuple[str, Any]]) -> None:
    with current_device(rmm_uvm.simulated_device("64MiB")):
        pass
    assert calls == []
