# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What ``rapids doctor`` is told."""

from __future__ import annotations

import importlib.metadata
import warnings
from dataclasses import replace
from typing import Any

import pytest

from rmm_uvm.cli import doctor, rapids
from rmm_uvm.doctor import DoctorReport, examine
from rmm_uvm.errors import AvailabilityError

from ..doctor.test_doctor import FakeProbe


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Any:
    def be(report: DoctorReport) -> None:
        monkeypatch.setattr(rapids, "report_of_here", lambda: report)

    return be


def test_rapids_doctor_finds_the_check() -> None:
    (found,) = (
        each
        for each in importlib.metadata.entry_points(group="rapids_doctor_check")
        if each.name == "rmm_uvm"
    )
    assert found.load() is rapids.rmm_uvm_check
    assert (rapids.rmm_uvm_check.__doc__ or "").startswith("Check that rmm-uvm can install")


def test_machine_in_order_is_named_without_a_warning(here: Any) -> None:
    report = examine(FakeProbe(), lambda *_: ())
    here(replace(report, features=tuple(f for f in report.features if f.available)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rapids.rmm_uvm_check(verbose=True) == "on device 0: NVIDIA H200"


def test_what_is_off_is_warned_of_with_its_reason(here: Any) -> None:
    report = examine(FakeProbe(), lambda *_: ())
    off = replace(report.features[1], name="discard", available=False, reason="it is too old")
    here(replace(report, features=(report.features[0], off)))
    with pytest.warns(UserWarning, match="rmm-uvm: discard is off: it is too old"):
        rapids.rmm_uvm_check()


def test_machine_without_a_gpu_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    report = doctor.report_of_here()
    with pytest.raises(AvailabilityError, match="`rmm-uvm doctor` tells more") as raised:
        rapids.rmm_uvm_check()
    assert str(raised.value).startswith(report.feature("managed_pool").reason)


def test_setting_that_cannot_be_used_is_the_reason(here: Any) -> None:
    report = examine(FakeProbe(), lambda *_: ())
    here(replace(report, settings_reason="RMM_UVM_MANAGED_LIMIT='x': not a size"))
    with pytest.raises(AvailabilityError, match="RMM_UVM_MANAGED_LIMIT='x': not a size"):
        rapids.rmm_uvm_check()


def test_simulated_device_that_was_asked_for_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    assert rapids.rmm_uvm_check() == (
        "on a simulated device, as RMM_UVM_DRIVER=simulated:64MiB asks"
    )
