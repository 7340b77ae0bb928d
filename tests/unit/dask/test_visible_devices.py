# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA_VISIBLE_DEVICES: what is odd about it, in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.worker.refusals import (
    count_visible_devices,
    mig_remark,
    visible_devices_problem,
)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "0",
        "0,1,2,3",
        "3, 1",
        "GPU-84fd49f2-48ad-50e8-9f2e-3bf0dfd47ccb",
        "GPU-84fd49f2,GPU-d6ac2d46",
        "MIG-41b3359c-e721-56e5-8009-12e5797ed514",
        "MIG-GPU-84fd49f2-48ad-50e8-9f2e-3bf0dfd47ccb/1/0",
    ],
)
def test_list_that_cuda_reads_has_no_problem(value: str | None) -> None:
    assert visible_devices_problem(value) == ""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "hides every GPU"),
        (" ", "hides every GPU"),
        ("-1", "hides every GPU"),
        ("NoDevFiles", "hides every GPU"),
        ("0,-1,1", "'-1' is neither a number nor a UUID"),
        ("0,", "'' is neither a number nor a UUID"),
        ("0;1", "'0;1' is neither"),
        ("all", "'all' is neither"),
        ("0,GPU-84fd49f2", "mixes numbers and UUIDs"),
        ("1,0,1", "names 1 twice"),
        ("GPU-84fd49f2,GPU-84fd49f2", "names GPU-84fd49f2 twice"),
    ],
)
def test_list_that_cuda_does_not_read_is_told_in_one_line(value: str, reason: str) -> None:
    problem = visible_devices_problem(value)
    assert reason in problem
    assert problem.startswith(f"CUDA_VISIBLE_DEVICES is {value!r}: ")
    assert "\n" not in problem


@given(st.lists(st.integers(min_value=0, max_value=15), min_size=1))
def test_numbers_are_fine_unless_one_comes_twice(numbers: list[int]) -> None:
    value = ",".join(map(str, numbers))
    assert (visible_devices_problem(value) == "") == (len(set(numbers)) == len(numbers))
    assert count_visible_devices(value) == len(numbers)


def test_mig_is_remarked_on_and_other_devices_are_not() -> None:
    assert "CUDA IPC between instances does not exist" in mig_remark("MIG-41b3359c")
    assert mig_remark("GPU-41b3359c") == mig_remark(None) == ""


def test_hidden_devices_count_as_none_and_an_unset_list_is_unknown() -> None:
    assert count_visible_devices("") == 0
    assert count_visible_devices(None) is None
