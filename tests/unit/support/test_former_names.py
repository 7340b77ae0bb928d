# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Former names of public modules are the modules of today."""

from __future__ import annotations

import importlib
import pickle

import pytest

from rmm_uvm import _FORMER_NAMES as FORMER_NAMES

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
