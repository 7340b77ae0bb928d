# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of one pool share what its budget lets them pin."""

from __future__ import annotations

import threading

import pytest
import torch

import rmm_uvm
from rmm_uvm.torch import ManagedEmbedding

MIB = 1 << 20


@pytest.mark.parametrize(
    "asked", [("8MiB", "8MiB"), ("4MiB", "4MiB"), ("8MiB", None), (None, None)]
)
def test_tables_of_a_pool_pin_no_more_than_its_budget_allows(
    asked: tuple[str | None, str | None],
) -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", device_budget="8MiB", maximum_pool_size="64MiB"
    )
    tables = [ManagedEmbedding(200_000, 16, mr=mr, hot_bytes=one) for one in asked]
    ids = torch.arange(0, 200_000, 100)
    for _ in range(20):
        for table in tables:
            table(ids)
    for table in tables:
        table.place()
    found = rmm_uvm.residency_statistics(mr)
    assert found is not None
    assert found.pinned_bytes <= 8 * MIB * 15 // 16
    assert found.pinned_bytes >= 4 * MIB
    assert found.over_budget == 0
    assert sum(table.hit_statistics().hot_bytes for table in tables) == found.pinned_bytes


def test_table_that_goes_leaves_its_share_to_the_others() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", device_budget="8MiB", maximum_pool_size="64MiB"
    )
    first, second = (ManagedEmbedding(200_000, 16, mr=mr, hot_bytes="6MiB") for _ in "ab")
    ids = torch.arange(0, 200_000, 100)
    for table in (first, second):
        table(ids)
        table.place()
    assert second.hit_statistics().hot_bytes == 0
    del first
    del table
    second.place()
    assert second.hit_statistics().hot_bytes == 6 * MIB


def test_table_that_changes_its_type_has_what_the_one_before_had() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:128MiB", device_budget="64MiB", maximum_pool_size="256MiB"
    )
    table = ManagedEmbedding(50 << 14, 16, mr=mr, hot_bytes="50MiB")
    assert table.hit_statistics().hot_bytes == 50 * MIB
    table.half()
    assert table.hit_statistics().hot_bytes == 26 * MIB  # whole blocks


def test_two_threads_that_place_tables_of_a_pool_pin_no_more_than_it_allows() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", device_budget="8MiB", maximum_pool_size="128MiB"
    )
    tables = [ManagedEmbedding(200_000, 16, mr=mr, hot_bytes="6MiB") for _ in range(4)]
    ids = torch.arange(0, 200_000, 100)
    for table in tables:
        table(ids)
    threads = [threading.Thread(target=table.place) for table in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rmm_uvm.residency_statistics(mr)
    assert found is not None
    assert 0 < found.pinned_bytes <= 8 * MIB * 15 // 16
