# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the page says of each worker: everything known, nothing made up, and in proportion."""

from __future__ import annotations

import dataclasses
import math
import types
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.dashboard.history import HISTORY_SECONDS, History, Rates
from rmm_uvm.dask.dashboard.page import workers_seen
from rmm_uvm.dask.dashboard.rows import ClusterFigure, WorkerRow, WorkerSeen, cards, rows
from rmm_uvm.dask.worker.figures import NAME, NO_PRELOAD, WorkerFigures

GIB = 1 << 30
FULL = WorkerFigures(
    device_id=0,
    device_name="NVIDIA H200",
    simulated=False,
    devices_total=1,
    footprint_bytes=3 * GIB,
    resident_bytes=2 * GIB,
    capacity_bytes=2 * GIB,
    resident_exact=False,
    oversubscription_factor=1.5,
    host_to_device_bytes_per_second=2.4e10,
    device_to_host_bytes_per_second=0.0,
    evicted_bytes_estimate=5 * GIB,
    evicted_bytes_estimate_per_second=1e9,
    findings_total=2,
    finding="device 0: pages leave; use fewer",
    finding_kind="eviction",
    ipc_pool_bytes=GIB // 4,
    comm={"sent_staged_bytes": GIB, "received_staged_bytes": GIB, "received_overflow_bytes": GIB},
)


def seen(figures: WorkerFigures, name: str = "0", history: Any = ()) -> WorkerSeen:
    return WorkerSeen(f"tcp://10.0.0.1:{name}", name, "running", figures, history)


def row_of(figures: WorkerFigures, **keywords: Any) -> WorkerRow:
    (row,) = rows([dataclasses.replace(seen(figures), **keywords)], 0.0)
    return row


def test_worker_that_tells_everything_has_everything_in_its_row() -> None:
    row = row_of(FULL)

    assert row.reason == row.status == ""
    assert row.device == "0: NVIDIA H200"
    assert (row.footprint, row.capacity, row.factor) == ("3.00 GiB", "2.00 GiB", "1.50")
    assert row.resident == "2.00 GiB (estimate)"
    assert (row.to_device, row.to_host) == ("24.0 GB/s", "0 kB/s")
    assert (row.evicted, row.evicted_rate) == ("5.00 GiB", "1.0 GB/s")
    assert (row.ipc_pool, row.staged, row.overflow) == ("256.00 MiB", "2.00 GiB", "1.00 GiB")
    assert row.direct == row.waits == ""
    assert (row.findings_total, row.finding) == (2, FULL.finding)


def test_worker_that_knows_nothing_but_its_device_says_unknown_and_not_0() -> None:
    row = row_of(WorkerFigures(device_id=0))

    shown = (row.footprint, row.capacity, row.resident, row.to_device, row.evicted, row.ipc_pool)
    assert shown == ("unknown",) * 6
    assert row.bar is None
    assert row.factor == ""


def test_worker_without_the_package_has_one_sentence() -> None:
    row = row_of(WorkerFigures.from_metrics({}), status="paused")

    assert row.reason == NO_PRELOAD
    assert row.status == "paused"


def test_worker_without_an_ipc_pool_says_so() -> None:
    assert row_of(dataclasses.replace(FULL, ipc_pool_bytes=0)).ipc_pool == "no IPC pool"


def test_what_is_not_watched_stands_in_the_row() -> None:
    notes = row_of(dataclasses.replace(FULL, missing={"kernel_counters": "no device"})).notes

    assert notes == ("not watched: kernel_counters: no device",)


def test_names_with_control_characters_are_shown_without() -> None:
    row = row_of(dataclasses.replace(FULL, finding="\x1b[2J" + 500 * "x"), name="a\x00b")

    assert row.name == "a\ufffdb"
    assert len(row.finding) <= 300
    assert "\x1b" not in row.finding


def test_bars_of_all_workers_share_one_scale() -> None:
    small = dataclasses.replace(FULL, footprint_bytes=GIB, resident_bytes=4 * GIB)
    shown = rows([seen(FULL, "0"), seen(small, "1")], 0.0)

    bars = [row.bar for row in shown]
    assert bars[0] is not None
    assert bars[1] is not None
    assert (bars[0].resident, bars[0].elsewhere, bars[0].capacity) == (2 / 3, 1 / 3, 2 / 3)
    assert (bars[1].resident, bars[1].elsewhere) == (1 / 3, 0.0)  # slabs with room in them


def test_footprint_of_unknown_place_is_neither_here_nor_there() -> None:
    bar = row_of(dataclasses.replace(FULL, resident_bytes=None)).bar

    assert bar is not None
    assert (bar.resident, bar.elsewhere, bar.unplaced) == (0.0, 0.0, 1.0)


sizes = st.none() | st.integers(0, 1 << 50)


@given(st.lists(st.tuples(sizes, sizes, sizes), max_size=5))
def test_bars_never_leave_their_cell(
    levels: list[tuple[int | None, int | None, int | None]],
) -> None:
    workers = [
        seen(WorkerFigures(device_id=0, footprint_bytes=f, resident_bytes=r, capacity_bytes=c))
        for f, r, c in levels
    ]
    for row in rows(workers, 0.0):
        if row.bar is not None:
            total = row.bar.resident + row.bar.elsewhere + row.bar.unplaced
            assert 0 <= total <= 1 + 1e-9
            assert row.bar.capacity is None or 0 <= row.bar.capacity <= 1


rates = st.none() | st.floats(0, 1e12)


@given(st.lists(st.tuples(st.floats(0, HISTORY_SECONDS), rates, rates), max_size=8))
def test_lines_never_leave_their_box(
    points: list[tuple[float, float | None, float | None]],
) -> None:
    history = [
        Rates(seconds, there, back, None) for seconds, there, back in sorted(points, key=str)
    ]
    (row,) = rows([seen(FULL, history=history)], HISTORY_SECONDS)
    for corners in (row.line.to_device, row.line.to_host):
        for corner in corners.split():
            x, y = map(float, corner.split(","))
            assert 0 <= x <= 100
            assert 0 <= y <= 20


def values(shown: list[ClusterFigure]) -> dict[str, tuple[str, bool]]:
    return {card.title: (card.value, card.alarming) for card in shown}


def test_cards_sum_what_is_known_and_count_who_is_silent() -> None:
    told = values(cards([seen(FULL, "0"), seen(FULL, "1"), seen(WorkerFigures(), "2")]))

    assert told["Workers"] == ("3", False)
    assert cards([seen(WorkerFigures())])[0].note == "1 without figures"
    two_devices = [seen(FULL), seen(dataclasses.replace(FULL, device_id=1, comm={}))]
    told_of_two = values(cards(two_devices))
    assert told_of_two["Workers"] == ("1", False)
    assert told_of_two["Footprint"] == told["Footprint"]
    assert told["Footprint"] == ("6.00 GiB", True)
    assert told["To the devices"] == ("48.0 GB/s", False)
    assert told["Between workers"] == ("4.00 GiB", True)  # received; sent were 2
    (between,) = [one for one in cards([seen(FULL)]) if one.title == "Between workers"]
    assert between.note == "1.00 GiB past the IPC pools"
    assert told["Findings"] == ("4", True)


def test_cards_of_transfers_through_the_pools_alarm_nobody() -> None:
    comm = {"sent_staged_bytes": GIB, "received_staged_bytes": GIB}
    told = values(cards([seen(dataclasses.replace(FULL, comm=comm))]))

    assert told["Between workers"] == ("1.00 GiB", False)


def test_cards_without_workers_say_unknown_and_not_0() -> None:
    told = values(cards([]))

    assert told["Workers"] == ("0", False)
    assert told["Footprint"] == told["To the hosts"] == ("unknown", False)
    assert told["Between workers"] == ("unknown", False)


def test_history_forgets_what_is_old_and_who_left() -> None:
    history = History()
    told = dataclasses.replace(FULL, host_to_device_bytes_per_second=1.0)
    for second in range(int(2 * HISTORY_SECONDS)):
        history.note({"a": told, "b": told} if second < 150 else {"a": told}, float(second))

    kept = history.of("a", 0)
    assert kept[-1].seconds - kept[0].seconds == HISTORY_SECONDS
    assert history.of("b", 0) == ()
    assert history.of_all() == tuple(point for point in kept)


def test_each_device_of_a_worker_has_its_history_and_counts_in_that_of_all() -> None:
    history = History()
    other = dataclasses.replace(FULL, device_id=1, host_to_device_bytes_per_second=2.0)
    first = dataclasses.replace(FULL, host_to_device_bytes_per_second=1.0, others=(other,))
    history.note({"a": first}, 1.0)
    assert [history.of("a", device)[0].host_to_device for device in (0, 1)] == [1.0, 2.0]
    assert history.of_all()[0].host_to_device == 3.0


def test_history_of_all_sums_what_is_known() -> None:
    history = History()
    silent = WorkerFigures()
    history.note({"c": silent}, 1.0)
    history.note({"a": FULL, "b": FULL, "c": silent}, 2.0)
    nothing, both = history.of_all()

    assert (nothing.seconds, nothing.host_to_device) == (1.0, None)
    assert math.isclose(both.host_to_device or 0.0, 4.8e10)


def test_worker_with_two_devices_has_a_row_for_each() -> None:
    other = dataclasses.replace(FULL, device_id=1, footprint_bytes=GIB, comm={})
    sent = dataclasses.replace(FULL, others=(other,)).to_dict()
    worker = types.SimpleNamespace(
        address="tcp://a", name="0", status=types.SimpleNamespace(name="running"),
        metrics={NAME: sent},
    )  # fmt: skip
    scheduler = types.SimpleNamespace(workers={"tcp://a": worker})
    shown = rows(workers_seen(scheduler, History()), 0.0)
    assert [(row.name, row.device, row.footprint) for row in shown] == [
        ("0", "0: NVIDIA H200", "3.00 GiB"),
        ("0", "1: NVIDIA H200", "1.00 GiB"),
    ]
