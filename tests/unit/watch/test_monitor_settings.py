# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a monitor accepts: checked when it is made, before anything is opened."""

from __future__ import annotations

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.watch.judging.thresholds import Thresholds
from rmm_uvm.watch.monitor import Monitor


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"interval_seconds": 0}, "interval_seconds=0"),
        ({"interval_seconds": float("nan")}, "interval_seconds=nan"),
        ({"interval_seconds": "fast"}, "interval_seconds='fast'"),
        ({"interval_seconds": True}, "interval_seconds=True"),
        ({"interval_seconds": 1e9}, "interval_seconds"),
        ({"history": 1}, "history=1"),
        ({"history": 1.5}, "history=1.5"),
        ({"history": 10**12}, "at most"),
        ({"faults": "yes"}, "faults='yes'"),
        ({"attribution": 1}, "attribution=1"),
        ({"publish": None}, "publish=None"),
        ({"on_finding": "shout"}, "on_finding='shout'"),
        ({"thresholds": {"footprint": 2}}, "thresholds="),
        ({"devices": -1}, "devices=-1"),
        ({"devices": ()}, "devices="),
        ({"devices": (0, 0)}, "devices="),
        ({"devices": "0"}, "devices='0'"),
        ({"devices": (True,)}, "devices="),
        ({"driver": "cpu"}, "driver='cpu'"),
        ({"driver": 5}, "driver=5"),
        ({"driver": "simulated:lots"}, "driver"),
        ({"trace": ""}, "trace=''"),
        ({"trace": 5}, "trace=5"),
    ],
)
def test_bad_argument_is_named_in_one_line(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Monitor(**keywords)  # type: ignore[arg-type]

    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_driver_of_another_device_is_refused() -> None:
    driver = rmm_uvm.simulated_device("64MiB", device=1)

    with pytest.raises(ConfigurationError, match="serves device 1"):
        Monitor(devices=0, driver=driver)


def test_driver_alone_says_which_device() -> None:
    m = Monitor(driver=rmm_uvm.simulated_device("64MiB", device=1))

    assert m._settings.devices == (1,)


def test_thresholds_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_WARN_FOOTPRINT", "2")

    assert Monitor()._settings.thresholds.footprint_factor == 2.0
    assert Monitor(thresholds=Thresholds())._settings.thresholds.footprint_factor == 1.0


def test_bad_threshold_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_WARN_FOOTPRINT", "lots")

    with pytest.raises(ConfigurationError, match="RMM_UVM_WARN_FOOTPRINT"):
        Monitor()


def test_settings_are_described_for_people() -> None:
    described = Monitor(on_finding=print, faults=True)._settings.described()

    assert described["findings"] == "a function"
    assert described["faults"] == "counted"
