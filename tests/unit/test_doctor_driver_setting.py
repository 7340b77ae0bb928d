# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The doctor's conclusions where the environment says which driver is asked for."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from rmm_uvm.cli.doctor import render
from rmm_uvm.doctor import Capability, CudaFacts

from .test_doctor import examined


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
        ("foo", "nothing: RMM_UVM_DRIVER=foo: use 'cuda', 'simulated' or 'simulated:SIZE'"),
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
