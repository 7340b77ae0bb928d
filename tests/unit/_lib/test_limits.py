# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The cap on the managed memory of a process."""

from __future__ import annotations

import pytest

import rmm_uvm
from rmm_uvm._lib.limits import managed_limit_bytes, process_account
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "expected_bytes"), [("24GiB", 24 << 30), (" 1000 ", 1000), ("", None), ("  ", None)]
)
def test_limit_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, expected_bytes: int | None
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", text)
    assert managed_limit_bytes() == expected_bytes
    assert process_account().limit_bytes == expected_bytes


@pytest.mark.parametrize("text", ["0", "-1", "much", "50%"])
def test_limit_that_is_no_size_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", text)
    with pytest.raises(ConfigurationError, match="RMM_UVM_MANAGED_LIMIT"):
        process_account()


def test_process_account_is_one() -> None:
    assert process_account() is process_account()


def test_account_over_its_limit_refuses_and_says_how_much_is_used() -> None:
    account = ManagedAccount(3 * MIB)
    mr = ManagedMemoryResource(rmm_uvm.simulated_device("64MiB"), account=account)
    pointer = mr.allocate(2 * MIB)
    with pytest.raises(MemoryError, match=r"2\.0 MiB of 3\.0 MiB in use: free some, or ask for"):
        mr.allocate(2 * MIB)
    assert account.used_bytes == 2 * MIB
    mr.deallocate(pointer, 2 * MIB)
    assert account.used_bytes == 0


def test_account_is_given_back_when_the_driver_refuses() -> None:
    device, account = rmm_uvm.simulated_device("64MiB"), ManagedAccount(3 * MIB)
    device.fail_call("allocate_managed", "out_of_memory")
    mr = ManagedMemoryResource(device, account=account)
    with pytest.raises(MemoryError):
        mr.allocate(2 * MIB)
    assert account.used_bytes == 0


def test_lowered_limit_keeps_memory_and_refuses_more() -> None:
    account = ManagedAccount()
    mr = ManagedMemoryResource(rmm_uvm.simulated_device("64MiB"), account=account)
    pointer = mr.allocate(2 * MIB)
    account.limit_bytes = MIB
    with pytest.raises(MemoryError):
        mr.allocate(1)
    account.limit_bytes = None
    mr.deallocate(mr.allocate(1), 1)
    mr.deallocate(pointer, 2 * MIB)
