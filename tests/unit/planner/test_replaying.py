# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One replay: what it returns, what it refuses, that it can be watched and interrupted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.planner.trials.replaying import replay
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    BY_THE_CPU,
    FREE,
    REPLAY_DTYPE,
    TOUCH,
    WRITES,
    Slab,
)

from .programs import BASE, BLOCK_BYTES, MACHINE, MODES, by_hand, replayed, workload_of

# Two allocations of 40 blocks each, written and read in turns.
TWO_TURNS = by_hand(
    (ALLOCATE, 0, 0, 40),
    (TOUCH, WRITES, 0, 40),
    (ALLOCATE, 0, 40, 40),
    (TOUCH, WRITES, 40, 40),
    (TOUCH, 0, 0, 40),
    (TOUCH, 0, 40, 40),
    (FREE, 0, 0, 40),
    (FREE, 0, 40, 40),
    slab_blocks=80,
)


@pytest.mark.parametrize("prefetch", MODES)
def test_replay_on_a_card_that_holds_everything_moves_nothing(prefetch: str) -> None:
    result = replayed(TWO_TURNS, 128, prefetch=prefetch)
    assert (result.to_device_bytes, result.to_host_bytes, result.evicted_blocks) == (0, 0, 0)
    assert result.peak_live_bytes == TWO_TURNS.peak_live_bytes == 80 * BLOCK_BYTES
    assert result.device_bytes == 128 * BLOCK_BYTES
    assert result.out_of_memory is None
    assert (result.gpu_faults > 0) is (prefetch == "never")


@pytest.mark.parametrize("prefetch", MODES)
def test_replay_on_a_smaller_card_evicts_and_takes_longer(prefetch: str) -> None:
    fitting, small = (replayed(TWO_TURNS, blocks, prefetch=prefetch) for blocks in (128, 64))
    assert small.evicted_bytes >= 16 * BLOCK_BYTES
    assert small.evicted_blocks * BLOCK_BYTES >= small.evicted_bytes > 0
    assert small.to_device_bytes > 0
    assert small.peak_resident_bytes <= 64 * BLOCK_BYTES
    assert small.migration_seconds > fitting.migration_seconds > 0


def test_replay_without_a_live_byte_to_keep_copies_nothing_back() -> None:
    program = by_hand(
        (ALLOCATE, 0, 0, 60),
        (TOUCH, WRITES, 0, 60),
        (FREE, 0, 0, 60),
        (ALLOCATE, 0, 60, 60),
        (TOUCH, WRITES, 60, 60),
        slab_blocks=120,
    )
    kept = replayed(program, 64, policy="driver")
    dropped = replayed(program, 64, policy="discard-dead")
    assert kept.to_host_bytes > 0
    assert dropped.to_host_bytes == 0
    # No copy, but what leaves takes host memory all the same, for the first time here.
    assert dropped.host_page_bytes == kept.host_page_bytes > 0
    assert dropped.migration_seconds < kept.migration_seconds


def test_replay_adds_up_stages_in_their_order() -> None:
    events = TWO_TURNS.events.copy()
    events["stage"] = [0, 0, 1, 1, 2, 2, 2, 2]
    workload = dataclasses.replace(TWO_TURNS, events=events, stages=("", "load", "join"))
    result = replayed(workload, 64)
    assert [one.name for one in result.stages] == ["", "load", "join"]
    for name in ("to_device_bytes", "to_host_bytes", "evicted_bytes"):
        assert sum(getattr(one, name) for one in result.stages) == getattr(result, name)
    assert sum(one.migration_seconds for one in result.stages) == pytest.approx(
        result.migration_seconds, rel=1e-6
    )
    peaks = [one.peak_live_bytes // BLOCK_BYTES for one in result.stages]
    assert peaks == [40, 80, 80]


def test_replay_of_an_empty_recording_takes_the_slabs_only() -> None:
    result = replayed(workload_of([], [Slab(BASE, 4 * BLOCK_BYTES)]), 16)
    assert (result.peak_live_bytes, result.to_device_bytes) == (0, 0)
    assert result.peak_resident_bytes == 4 * BLOCK_BYTES
    assert result.timeline.live_bytes.max() == 0


def test_timeline_of_a_long_recording_has_a_thousand_points_and_its_peak() -> None:
    turns = 5000
    lines = [(ALLOCATE, 0, 0, 1), (TOUCH, WRITES, 0, 1), (FREE, 0, 0, 1)] * turns
    lines[3000:3000] = [(ALLOCATE, 0, 1, 3), (FREE, 0, 1, 3)]
    timeline = replayed(by_hand(*lines, slab_blocks=4), 8).timeline
    assert 900 <= len(timeline.seconds) <= 1000
    assert timeline.seconds[0] == 0
    assert timeline.seconds[-1] == pytest.approx((len(lines) - 1) * 1e-6)
    assert (np.diff(timeline.seconds) >= 0).all()
    assert timeline.live_bytes.max() == 3 * BLOCK_BYTES  # one event among 15 000
    for column in (timeline.to_device_bytes, timeline.to_host_bytes):
        assert (np.diff(column.astype(np.int64)) >= 0).all()


def test_replay_ends_where_no_memory_is_left() -> None:
    workload = dataclasses.replace(TWO_TURNS, stages=("etl",))
    result = replayed(workload, 64, host_bytes=4 * BLOCK_BYTES)
    assert result.out_of_memory is not None
    assert (result.out_of_memory.record, result.out_of_memory.stage) == (3, "etl")
    assert result.out_of_memory.nbytes == 40 * BLOCK_BYTES
    assert result.host_page_bytes <= 4 * BLOCK_BYTES


def test_replay_with_enough_host_memory_does_not_end() -> None:
    assert replayed(TWO_TURNS, 64, host_bytes="1GiB").out_of_memory is None


def test_touch_by_the_cpu_moves_pages_to_the_host() -> None:
    program = by_hand(
        (ALLOCATE, 0, 0, 4), (TOUCH, WRITES, 0, 4), (TOUCH, BY_THE_CPU, 0, 2), slab_blocks=4
    )
    assert replayed(program, 64).to_host_bytes == 2 * BLOCK_BYTES


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([(ALLOCATE, 0, 0, 1), (TOUCH, 0, 79.5, 1)], r"program\.trace: event 1 .* no slab"),
        ([(ALLOCATE, 0, 0, 2), (ALLOCATE, 0, 1, 2)], r"event 1 .* are allocated"),
        ([(FREE, 0, 0, 2)], r"event 0 .* not allocated"),
    ],
)
def test_replay_of_an_unusable_event_names_it(
    lines: list[tuple[int, int, float, float]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        replayed(by_hand(*lines, slab_blocks=80), 64)


def test_replay_of_an_unknown_kind_or_stage_names_the_event() -> None:
    for field in ("kind", "stage"):
        events = TWO_TURNS.events.copy()
        events[field][5] = 7
        with pytest.raises(DataError, match="event 5 "):
            replayed(dataclasses.replace(TWO_TURNS, events=events), 64)


@pytest.mark.parametrize(
    "slabs",
    [
        [Slab(BASE, BLOCK_BYTES - 1)],
        [Slab(BASE + 256, BLOCK_BYTES)],
        [Slab(BASE, 2 * BLOCK_BYTES), Slab(BASE + BLOCK_BYTES, BLOCK_BYTES)],
        [Slab(BASE, 0)],
    ],
)
def test_replay_in_slabs_that_cannot_be_is_refused(slabs: list[Slab]) -> None:
    with pytest.raises(DataError, match="slab"):
        replayed(workload_of([], slabs), 64)


def test_replay_of_other_events_is_refused() -> None:
    strange = np.zeros(3, dtype=[("kind", "u1")])
    with pytest.raises(DataError, match="REPLAY_DTYPE"):
        replayed(dataclasses.replace(TWO_TURNS, events=strange), 64)


@pytest.mark.parametrize(
    "how",
    [
        {"prefetch": "sometimes"},
        {"policy": "discard"},
        {"device_bytes": 0},
        {"device_bytes": BLOCK_BYTES - 1},
        {"device_bytes": "a lot"},
    ],
)
def test_replay_with_settings_that_do_not_exist_is_refused(how: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        replay(TWO_TURNS, MACHINE, **{"device_bytes": "1GiB", **how})  # type: ignore[arg-type]


def test_card_is_rounded_down_to_whole_blocks() -> None:
    result = replay(TWO_TURNS, MACHINE, device_bytes=64 * BLOCK_BYTES + 12345)
    assert result.device_bytes == 64 * BLOCK_BYTES


def test_events_that_are_not_contiguous_are_replayed_all_the_same() -> None:
    doubled = np.repeat(TWO_TURNS.events, 2)
    thinned = dataclasses.replace(TWO_TURNS, events=doubled[::2])
    assert not thinned.events.flags.c_contiguous
    assert replayed(thinned, 64) == replayed(TWO_TURNS, 64)


def long_program(turns: int = 20_000) -> list[tuple[int, int, float, float]]:
    return [(ALLOCATE, 0, 0, 1), (TOUCH, WRITES, 0, 1), (FREE, 0, 0, 1)] * turns


def test_progress_is_told_from_the_beginning_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    workload = by_hand(*long_program(), slab_blocks=2)
    replayed(workload, 8, progress=lambda done, total: told.append((done, total)))
    done = [one for one, _ in told]
    assert done[0] == 0
    assert done[-1] == len(workload.events) == told[-1][1]
    assert done == sorted(set(done))
    assert len(done) > 5


def test_interrupt_ends_a_replay_between_two_looks() -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replayed(by_hand(*long_program(), slab_blocks=2), 8, progress=interrupt)


def test_events_are_as_large_as_the_compiled_layer_says() -> None:
    from rmm_uvm._lib.replay import EVENT_BYTES

    assert REPLAY_DTYPE.itemsize == EVENT_BYTES
