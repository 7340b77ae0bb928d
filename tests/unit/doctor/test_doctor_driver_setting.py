# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's conclusions where the environment says which driver is asked for."""

from __future__ import annotations

import io
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

import rmm_uvm
from rmm_uvm.cli.doctor import command, render
from rmm_uvm.cli.settings import settings_reason
from rmm_uvm.doctor import Capability, CudaFacts, examine
from rmm_uvm.errors import ConfigurationError

from .test_doctor import FakeProbe, examined


@pytest.mark.parametrize(
    ("setting", "changes", "installable"),
    [
        ("simulated:64MiB", {"cuda": CudaFacts(reason="no libcuda")}, True),
        ("simulated:64MiB", {}, True),
        ("cuda", {"cuda": CudaFacts(reason="no libcuda")}, False),
        ("simulated:63MiB", {}, False),
        ("foo", {}, False),
        ("simulated", {"packages": {}}, False),
        ("simulated", {"extension": Capability.no("it is broken")}, False),
    ],
)
def test_status_is_that_of_the_device_which_the_environment_asks_for(
    setting: str, changes: dict[str, Any], installable: bool
) -> None:
    report = examined(driver_setting=setting, **changes)
    assert report.is_installable is installable
    console = Console(width=200, file=io.StringIO())
    console.print(render(report))
    page = console.file.getvalue().partition("would install")[2]
    assert ("nothing: " in page) is not installable


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (
            "simulated:64MiB",
            "RMM_UVM_DRIVER=simulated:64MiB: a pool on a simulated device of 64.00",
        ),
        ("simulated", "RMM_UVM_DRIVER=simulated: a pool on a simulated device of 16.00 GiB"),
        ("simulated:banana", "nothing: RMM_UVM_DRIVER=simulated:banana: SIZE='banana': expected"),
        (
            "simulated:63MiB",
            "nothing: RMM_UVM_DRIVER=simulated:63MiB: a simulated device has a mul",
        ),
        ("foo", "nothing: RMM_UVM_DRIVER=foo: use 'cuda', 'simulated', 'simulated:SIZE' or "),
        ("cuda", "maximum"),
        ("", "maximum"),
    ],
)
def test_driver_of_the_environment_is_what_would_be_installed_on(setting: str, told: str) -> None:
    report = examined(driver_setting=setting)
    assert report.to_dict()["driver_setting"] == setting
    console = Console(width=200, file=io.StringIO())
    console.print(render(report))
    page = console.file.getvalue()
    assert told in page.partition("would install")[2]


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"DEVICE_BUDGET": "128MiB"}, "device_budget is 128.00 MiB, the device has 64.00 MiB"),
        ({"DEVICE_BUDGET": "0.5", "NEIGHBORS": "0"}, "device 0 is the device itself"),
        ({"DEVICE_BUDGET": "0.5", "NEIGHBORS": "1"}, "there is no device 1"),
        ({"MANAGED_LIMIT": "1MiB"}, "a managed pool"),
        ({"NEIGHBORS": "foo"}, "RMM_UVM_NEIGHBORS='foo'"),
        ({"HARVEST_LIMIT": "1"}, "RMM_UVM_HARVEST_LIMIT='1'"),
        ({"EVICTION": "foo"}, "RMM_UVM_EVICTION='foo'"),
        ({"MANAGED_LIMIT": "junk"}, "RMM_UVM_MANAGED_LIMIT='junk'"),
        ({"COUNTERS": "maybe"}, "RMM_UVM_COUNTERS is 'maybe'"),
        ({"WARN_BUDGET": "maybe"}, "RMM_UVM_WARN_BUDGET is 'maybe'"),
    ],
)
def test_variables_that_reinitialize_refuses_are_told_by_the_command(
    variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    assert CliRunner().invoke(command).exit_code == 0
    for name, value in variables.items():
        monkeypatch.setenv(f"RMM_UVM_{name}", value)
    with pytest.raises(ConfigurationError) as refused:
        rmm_uvm.reinitialize(libraries=())
    done = CliRunner().invoke(command)
    assert done.exit_code == 1
    page = " ".join(done.output.partition("would install")[2].split())
    assert page == f"nothing: {refused.value}"
    assert told in page


def test_variables_are_not_looked_at_where_nothing_can_be_installed_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_EVICTION", "foo")
    assert settings_reason(examined(driver_setting="simulated", packages={})) == ""
    assert "RMM_UVM_EVICTION" in settings_reason(examined(driver_setting="simulated"))
    assert "RMM_UVM_EVICTION" in settings_reason(examined(cuda=CudaFacts(reason="no libcuda")))


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"DEVICE_BUDGET": "1TiB"}, "device_budget is 1.00 TiB"),
        ({"DEVICE_BUDGET": "0.5", "NEIGHBORS": "0"}, "device 0 is the device itself"),
        ({"DEVICE_BUDGET": "0.5", "NEIGHBORS": "1"}, "there is no device 1"),
        ({"DEVICE_BUDGET": "0.5", "NEIGHBORS": "auto"}, ""),
    ],
)
def test_gpu_is_not_opened_for_what_shows_without(
    variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"RMM_UVM_{name}", value)
    reason = settings_reason(examined())
    assert told in reason
    assert bool(reason) is bool(told)


def test_cap_below_any_pool_is_told_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1MiB")
    assert "1.00 MiB are left" in settings_reason(examine(FakeProbe()))
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1GiB")
    assert settings_reason(examine(FakeProbe())) == ""
