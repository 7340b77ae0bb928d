# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hot blocks of a managed embedding are on the device, the others are used through the link."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import rmm_uvm
from rmm_uvm.support.units import VA_BLOCK_BYTES
from rmm_uvm.torch import ManagedEmbedding, ManagedEmbeddingBag
from rmm_uvm.torch.embeddings.hot_blocks import chosen
from rmm_uvm.torch.embeddings.lookup_counts import LookupCounts
from rmm_uvm.torch.embeddings.row_memory import runs_of
from rmm_uvm.torch.embeddings.row_order import RowOrder, exchange_places, exchanged_rows

MIB = 1 << 20
ROWS_OF_BLOCK = VA_BLOCK_BYTES // 256  # rows of 64 numbers


def made(
    blocks: int = 8, *, budget: str | None = "8MiB", device: Any = None, **words: Any
) -> tuple[ManagedEmbedding, Any]:
    """Return a table of whole blocks and its simulated device."""
    device = rmm_uvm.simulated_device("64MiB") if device is None else device
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget)
    table = ManagedEmbedding(blocks * ROWS_OF_BLOCK, 64, mr=mr, sparse=True, **words)
    return table, device


def on_device(table: Any, device: Any) -> list[int]:
    """Return which blocks are on the device, as the device itself says."""
    memory = table._table.memory
    starts = [memory.address + VA_BLOCK_BYTES * block for block in range(memory.blocks)]
    return [
        block
        for block, start in enumerate(starts)
        if device.resident_bytes(start, VA_BLOCK_BYTES) == VA_BLOCK_BYTES
    ]


def look_up(table: Any, *blocks: int, batches: int = 1) -> None:
    """Look up some rows of each block; the first named most often."""
    for _ in range(batches):
        ids = [
            torch.arange(40 - place) + block * ROWS_OF_BLOCK for place, block in enumerate(blocks)
        ]
        with torch.no_grad():
            table(torch.cat(ids))


# --- the choice --------------------------------------------------------------------------------


@given(
    heat=st.lists(st.integers(0, 50), min_size=1, max_size=12),
    hot=st.sets(st.integers(0, 11)),
    room=st.integers(0, 14),
    moves=st.none() | st.integers(0, 4),
)
def test_choice_keeps_to_room_and_moves_and_leaves_nothing_much_hotter_out(
    heat: list[int], hot: set[int], room: int, moves: int | None
) -> None:
    hot = {block for block in hot if block < len(heat)}
    found = chosen(torch.tensor(heat, dtype=torch.float32), hot, room, moves)
    assert len(found) <= room
    assert found <= set(range(len(heat)))
    assert moves is None or len(found - hot) <= moves
    if moves is None and found and len(found) < len(heat):
        coldest = min(heat[block] * (1.25 if block in hot else 1) for block in found)
        outside = set(range(len(heat))) - found
        assert all(heat[block] <= coldest or heat[block] == 0 for block in outside)


def test_block_that_is_a_little_hotter_does_not_drive_out_one_that_is_there() -> None:
    assert chosen(torch.tensor([100.0, 110.0]), {0}, 1) == {0}
    assert chosen(torch.tensor([100.0, 130.0]), {0}, 1) == {1}


def test_block_without_a_lookup_is_not_brought_unless_all_fit() -> None:
    assert chosen(torch.tensor([0.0, 3.0, 0.0]), set(), 2) == {1}
    assert chosen(torch.tensor([0.0, 3.0, 0.0]), set(), 3) == {0, 1, 2}


@given(st.sets(st.integers(0, 40)))
def test_runs_of_numbers_are_the_numbers(numbers: set[int]) -> None:
    runs = list(runs_of(numbers))
    assert [n for first, length in runs for n in range(first, first + length)] == sorted(numbers)
    assert all(a[0] + a[1] < b[0] for a, b in itertools.pairwise(runs))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
def test_hottest_ids_are_in_the_first_rows_once_rows_have_changed_places(
    counts: list[int], data: st.DataObject
) -> None:
    total = len(counts)
    order = RowOrder(total, torch.device("cpu"))
    values = torch.arange(total).reshape(-1, 1) * 10  # the value of an id
    rows = values.clone()
    for _ in range(2):  # the second time from an order that is not the first
        hot_rows = data.draw(st.integers(0, total))
        outside, inside = exchanged_rows(order.row_of, torch.tensor(counts), hot_rows)
        exchange_places(rows, outside, inside)
        order.exchange(outside, inside)
        assert torch.equal(rows[order.rows(torch.arange(total)).long()], values)
        assert torch.equal(order.in_id_order(rows), values)
        assert torch.equal(order.in_row_order(values), rows)
        inside_counts = [counts[id_] for id_ in range(total) if order.row_of[id_] < hot_rows]
        best = sorted(counts, reverse=True)[:hot_rows]
        assert sum(inside_counts) == sum(best)
        counts = counts[::-1]


def test_shares_of_a_hashed_zipf_table_are_those_of_the_document() -> None:
    rows, rows_of_block, piece = 1 << 25, 8192, 1 << 22
    heat = torch.zeros(rows // rows_of_block, dtype=torch.float64)
    in_order = torch.zeros_like(heat)
    for first in range(0, rows, piece):
        rank = torch.arange(first, first + piece)
        share = (rank + 1).double() ** -1.05
        heat.index_add_(0, rank * 2_654_435_761 % rows // rows_of_block, share)
        in_order.index_add_(0, rank // rows_of_block, share)
    quarter = heat.numel() // 4
    hashed, ordered = (
        float(one.topk(quarter).values.sum() / one.sum()) for one in (heat, in_order)
    )
    text = (Path(__file__).parents[3] / "docs" / "use" / "embeddings.md").read_text()
    text = " ".join(text.split())
    assert f"takes {ordered:.0%}".replace("%", " %") in text
    assert (
        f"Hashed, the hottest quarter of the blocks takes {hashed:.0%}".replace("%", " %") in text
    )


def test_counts_of_blocks_and_ids_are_exact_and_decay() -> None:
    counts = LookupCounts(10, VA_BLOCK_BYTES // 2, 5, torch.device("cpu"), by_row=True)
    ids = torch.tensor([[0, 1, 1], [9, 2, 2]])
    counts.set_resident({1})
    counts.add(ids, ids)
    assert counts.heat.tolist() == [3, 2, 0, 0, 1]
    assert counts.of_ids is not None
    assert counts.of_ids.tolist() == [1, 2, 2, 0, 0, 0, 0, 0, 0, 1]
    assert counts.totals() == (6, 2)
    assert counts.look() is None  # nothing was asked for
    counts.begin_look()
    seen = counts.look()
    assert seen is not None
    assert seen.tolist() == [3, 2, 0, 0, 1]
    assert counts.heat.tolist() == [1.5, 1, 0, 0, 0.5]
    assert counts.look() is None  # it was given
    counts.begin_look()
    counts.recount(torch.tensor([8, 9, 2, 3, 4, 5, 6, 7, 0, 1]))
    assert counts.look() is None  # it was of the rows before
    assert counts.heat.tolist() == [1, 2, 0, 0, 3]


def test_part_of_a_large_batch_stands_for_its_blocks_and_all_its_ids_are_counted() -> None:
    counts = LookupCounts(4, VA_BLOCK_BYTES, 4, torch.device("cpu"), by_row=True)
    ids = torch.tensor([1, 3]).repeat(1 << 17)
    for _ in range(4):
        counts.add(ids, ids)
    assert counts.heat.tolist() == [0, 1 << 19, 0, 1 << 19]
    assert counts.of_ids is not None
    assert counts.of_ids.tolist() == [0, 1 << 19, 0, 1 << 19]
    assert counts.totals() == (4 << 16, 0)


# --- on a simulated device ---------------------------------------------------------------------


def test_hot_blocks_come_and_stay_and_cold_ones_are_used_on_the_host() -> None:
    table, device = made(hot_bytes=4 * MIB)
    assert on_device(table, device) == []
    moved = device.statistics()
    look_up(table, 5, 2, 7, batches=8)
    assert on_device(table, device) == [2, 5]
    after = device.statistics()
    assert after["host_to_device_bytes"] - moved["host_to_device_bytes"] == 4 * MIB
    assert after["gpu_faults"] == moved["gpu_faults"]  # block 7 is used through its mapping
    address = table._table.memory.address
    assert device.advised(address + 7 * VA_BLOCK_BYTES)[1] == "host"
    assert device.advised(address + 5 * VA_BLOCK_BYTES)[1] != "host"


def test_hot_blocks_follow_what_is_looked_up() -> None:
    table, device = made(hot_bytes=4 * MIB, sample_every=1, place_every=4)
    look_up(table, 5, 2, batches=8)
    assert on_device(table, device) == [2, 5]
    look_up(table, 0, 1, batches=40)
    assert on_device(table, device) == [0, 1]
    assert table.hit_statistics().moved_bytes == 12 * MIB


def test_pinned_hot_blocks_do_not_leave_for_others_of_the_pool() -> None:
    table, device = made(hot_bytes=4 * MIB)
    look_up(table, 5, 2, batches=8)
    mr = table._table.memory.mr
    other = mr.allocate(6 * MIB)
    rmm_uvm.touch((other, 6 * MIB), mr=mr)
    assert on_device(table, device) == [2, 5]
    mr.deallocate(other, 6 * MIB)


def test_default_is_what_the_budget_allows_shared_by_the_tables_of_the_pool() -> None:
    table, _ = made(8, budget="16MiB")
    assert table._table.allowed_bytes() == 15 * MIB
    mr = table._table.memory.mr
    second = ManagedEmbeddingBag(24 * ROWS_OF_BLOCK, 64, mr=mr)
    assert table._table.allowed_bytes() == 15 * MIB // 4
    assert second._table.allowed_bytes() == 15 * MIB * 3 // 4
    del second
    gc.collect()
    assert table._table.allowed_bytes() == 15 * MIB


def test_hot_bytes_past_the_budget_pin_no_more_than_the_budget_has() -> None:
    table, device = made(hot_bytes=14 * MIB)
    look_up(table, *range(8), batches=8)
    assert on_device(table, device) == [0, 1, 2]
    counts = table._table.memory.pool.managed_mr.residency.residency()
    assert counts["pinned_bytes"] == 6 * MIB
    assert counts["over_budget"] == 0
    free, device = made(budget=None, hot_bytes=14 * MIB)  # the twin
    look_up(free, *range(8), batches=8)
    assert on_device(free, device) == [0, 1, 2, 3, 4, 5, 6]


def test_table_that_fits_is_on_the_device_at_once() -> None:
    table, device = made(3, budget=None)
    assert on_device(table, device) == [0, 1, 2]
    look_up(table, 1)
    assert table.hit_statistics().hit_fraction == 1.0
    small, device = made(3, budget=None, hot_bytes=4 * MIB)  # the twin
    assert on_device(small, device) == []


def test_default_without_a_budget_leaves_room_for_what_others_hold() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    mr = rmm_uvm.managed_pool(driver=device, maximum_pool_size="160MiB", device_budget=None)
    table = ManagedEmbedding(40 * ROWS_OF_BLOCK, 64, mr=mr)
    alone_bytes = table._table.allowed_bytes()
    assert alone_bytes <= 48 * MIB
    other = mr.allocate(20 * MIB)
    assert table._table.allowed_bytes() == pytest.approx(alone_bytes - 15 * MIB, abs=2 * MIB)
    mr.deallocate(other, 20 * MIB)


def test_table_larger_than_the_budget_is_no_request_to_warn_of() -> None:
    table, _ = made()
    mr = table._table.memory.mr
    rmm_uvm.residency_statistics(mr)  # would warn, and warnings are errors here
    other = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="8MiB")
    address = other.allocate(18 * MIB)
    with pytest.warns(rmm_uvm.errors.BudgetWarning):  # the twin
        rmm_uvm.residency_statistics(other)
    other.deallocate(address, 18 * MIB)


def test_hot_bytes_zero_keeps_nothing_and_reads_through_the_link() -> None:
    table, device = made(hot_bytes=0)
    look_up(table, 5, 2, batches=8)
    table.place()
    assert table.reorder() == 0
    assert on_device(table, device) == []
    found = table.hit_statistics()
    assert found.hit_fraction == 0.0
    assert found.link_bytes == found.lookups * 256


def test_reorder_puts_ids_that_are_spread_over_all_blocks_together() -> None:
    table, device = made(hot_bytes=4 * MIB, sample_every=1)
    hot_ids = torch.arange(0, 8 * ROWS_OF_BLOCK, 8)  # an eighth of each block
    before = table.weight.detach().clone()
    for _ in range(8):
        table(hot_ids)
    table.reset_statistics()
    table(hot_ids)
    assert table.hit_statistics().hit_fraction == pytest.approx(0.25)
    assert table.reorder() > 0
    assert on_device(table, device) == [0, 1]
    table.reset_statistics()
    assert torch.equal(table(hot_ids), before[hot_ids])
    assert table.hit_statistics().hit_fraction == 1.0
    assert torch.equal(table.state_dict()["weight"], before)


def test_sample_every_that_is_set_holds_from_then_on_and_a_bad_one_is_refused() -> None:
    table, _ = made(hot_bytes=4 * MIB)
    look_up(table, 5, batches=10)
    assert table.hit_statistics().sampled_lookups == 8 * 40
    table.sample_every = 1
    look_up(table, 5, batches=10)
    assert table.hit_statistics().sampled_lookups == 18 * 40
    with pytest.raises(rmm_uvm.errors.ConfigurationError, match="sample_every=0: expected"):
        table.sample_every = 0


def test_reorder_without_counts_of_ids_is_refused() -> None:
    table, _ = made(count_ids=False)
    with pytest.raises(rmm_uvm.errors.ConfigurationError, match="count_ids=False: there is"):
        table.reorder()


def test_statistics_say_lookups_samples_bytes_and_that_they_are_estimated() -> None:
    table, _ = made(hot_bytes=4 * MIB)
    assert table.hit_statistics().hit_fraction is None
    assert "hits unknown of 0 sampled" in str(table.hit_statistics())
    look_up(table, 5, 2, 7, batches=16)
    found = table.hit_statistics()
    assert (found.lookups, found.sampled_lookups) == (16 * 117, 9 * 117)
    assert (found.hot_bytes, found.table_bytes, found.moved_bytes) == (4 * MIB, 16 * MIB, 4 * MIB)
    assert found.hit_fraction is not None
    assert found.link_bytes == int((1 - found.hit_fraction) * found.lookups * 256)
    assert "(estimated)" in str(found)
    table.reset_statistics()
    assert table.hit_statistics().lookups == 0
    assert table.hit_statistics().hot_bytes == 4 * MIB


def test_device_without_concurrent_access_is_degraded_with_a_reason() -> None:
    device = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False)
    table, _ = made(device=device, budget=None)
    ids = torch.tensor([1, 5])
    assert torch.equal(table(ids), table.weight[ids])
    found = table.hit_statistics()
    assert found.reason
    assert f"no mapping     {found.reason}" in str(found)
    assert made()[0].hit_statistics().reason == ""


def test_migration_that_fails_changes_no_number() -> None:
    table, device = made(hot_bytes=4 * MIB)
    device.fail_call("prefetch")
    ids = torch.arange(40) + 5 * ROWS_OF_BLOCK
    for _ in range(8):
        assert torch.equal(table(ids), table.weight[ids])


def test_memory_and_pins_go_back_with_the_module() -> None:
    table, device = made(hot_bytes=4 * MIB)
    look_up(table, 5, 2, batches=8)
    mr = table._table.memory.mr
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 4 * MIB
    assert mr.get_allocated_bytes() == 18 * MIB
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    table.reorder(optimizer)
    del table, optimizer
    gc.collect()
    assert mr.get_allocated_bytes() == 0
    assert rmm_uvm.residency_statistics(mr).pinned_bytes == 0
    assert device.statistics()["managed_bytes"] > 0  # of the pool, which lives


def test_compiled_lookup_is_the_same_and_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = made()
    ids = torch.tensor([1, 5])
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(table(ids), table.weight[ids])
    assert table.hit_statistics().lookups == 0
    monkeypatch.undo()
    table(ids)
    assert table.hit_statistics().lookups == 2
