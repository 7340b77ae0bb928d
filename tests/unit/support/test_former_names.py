# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Former names of public modules are the modules of today."""

from __future__ import annotations

import importlib
import pickle
import re
import sys

import pytest

from rmm_uvm import _FORMER_NAMES as FORMER_NAMES
from rmm_uvm.support import former_names

WITHOUT_DASK = {old: new for old, new in FORMER_NAMES.items() if ".dask." not in new}


@pytest.mark.parametrize("old", sorted(WITHOUT_DASK))
def test_former_name_is_the_module_of_today(old: str) -> None:
    assert importlib.import_module(old) is importlib.import_module(FORMER_NAMES[old])


def test_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"rmm_uvm\.never_was"):
        importlib.import_module("rmm_uvm.never_was")


def test_pickle_with_a_former_name_loads() -> None:
    from rmm_uvm.recording.finding import Finding

    text = pickle.dumps(Finding, protocol=0)
    former = text.replace(b"rmm_uvm.recording.finding", b"rmm_uvm.watch.finding")
    assert former != text
    assert pickle.loads(former) is Finding


def test_pickle_with_a_former_name_of_a_class_loads() -> None:
    from rmm_uvm.recording.recorded import RecordedDevice

    device = RecordedDevice(0, "GPU", "GPU-0", 2 << 20, 2 << 20)
    text = pickle.dumps(device, protocol=0)
    former = text.replace(
        b"rmm_uvm.recording.recorded\nRecordedDevice", b"rmm_uvm.watch.recording\nDeviceFacts"
    )
    assert former != text
    assert pickle.loads(former) == device


@pytest.mark.parametrize("module", ["", ".generate", ".shadow.engine", ".cluster"])
def test_former_name_of_a_package_that_left_is_the_one_of_today(module: str) -> None:
    today = importlib.import_module(f"rmm_uvm_mortgage{module}")
    assert importlib.import_module(f"rmm_uvm.mortgage{module}") is today


def test_module_that_never_was_in_a_package_that_left_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"mortgage\.never_was"):
        importlib.import_module("rmm_uvm.mortgage.never_was")


def test_former_name_of_what_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if re.match(r"rmm_uvm[._]mortgage\b", name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(former_names, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("rmm_uvm.mortgage.generate")
    assert str(caught.value) == (
        "rmm_uvm.mortgage is rmm_uvm_mortgage now, which is not installed: "
        "pip install 'rmm-uvm-mortgage[cpu]'"
    )
