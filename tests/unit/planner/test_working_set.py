# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes touched in a window, against a count that keeps every byte apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.planner.workload.events import BY_THE_CPU, TOUCH, Slab
from rmm_uvm.planner.workload.working_set import working_set

from .workloads import BASE, MIB, etl, event, workload


def test_bytes_touched_twice_in_a_window_count_once() -> None:
    events = [event("touch", 0, 8 * MIB, t) for t in (0.0, 0.1, 0.2)]
    events.append(event("touch", 4 * MIB, 8 * MIB, 0.3))
    recorded = workload(events, peak_bytes=12 * MIB, touches_assumed=False)
    assert working_set(recorded, 1.0) == (12 * MIB, 1.0)


def test_bytes_touched_in_two_windows_do_not_add_up() -> None:
    events = [event("touch", 0, 8 * MIB, 0.0), event("touch", 8 * MIB, 6 * MIB, 5.0)]
    recorded = workload(events, peak_bytes=14 * MIB, touches_assumed=False)
    assert working_set(recorded, 1.0).nbytes == 8 * MIB
    assert working_set(recorded, 10.0).nbytes == 14 * MIB


def test_touches_of_the_cpu_and_allocations_do_not_count() -> None:
    by_cpu = list(event("touch", 0, 8 * MIB, 0.0))
    by_cpu[1] = BY_THE_CPU
    events = [tuple(by_cpu), event("allocate", 0, 2 * MIB, 0.0)]
    assert working_set(workload(events, peak_bytes=2 * MIB), 1.0).nbytes == 0
    events.append(event("touch", 0, 2 * MIB, 0.0))
    assert working_set(workload(events, peak_bytes=2 * MIB), 1.0).nbytes == 2 * MIB


def test_window_by_default_is_a_twentieth_and_ten_seconds_at_most() -> None:
    assert working_set(etl(seconds=20.0)).window_seconds == 1.0
    assert working_set(etl(seconds=3600.0)).window_seconds == 10.0
    assert working_set(etl(seconds=0.0)).window_seconds > 0


def test_windows_are_never_more_than_their_numbers_hold() -> None:
    recorded = etl(seconds=1e6)
    found = working_set(recorded, 1e-6)
    assert found.window_seconds == 1e6 / 32768
    assert found.nbytes == recorded.peak_live_bytes // 2


def test_slabs_further_apart_than_an_address_has_bits_are_told_apart() -> None:
    far = [BASE + (number << 49) for number in range(100)]
    touched = [
        (TOUCH, 0, 0, 0, address, 3 * MIB, number * 10**8) for number, address in enumerate(far)
    ]
    recorded = workload(
        touched,
        peak_bytes=300 * MIB,
        touches_assumed=False,
        slabs=tuple(Slab(address, 4 * MIB) for address in far),
    )
    assert working_set(recorded, 1.0).nbytes == 10 * 3 * MIB
    assert working_set(recorded, 10.0).nbytes == 100 * 3 * MIB


touches = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(0, 30)), min_size=1, max_size=40
)


@given(touches, st.integers(1, 10))
def test_any_touches_have_the_working_set_of_a_count_byte_by_byte(
    ranges: list[tuple[int, int, int]], window: int
) -> None:
    events = sorted((event("touch", at, n, float(t)) for at, n, t in ranges), key=lambda e: e[-1])
    recorded = workload(events, peak_bytes=100, seconds=31.0, touches_assumed=False)
    by_window: dict[int, set[int]] = {}
    for at, n, t in ranges:
        by_window.setdefault(t // window, set()).update(range(at, at + n))
    expected = max(map(len, by_window.values()))
    assert working_set(recorded, float(window)).nbytes == expected
