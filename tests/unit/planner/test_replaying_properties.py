# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the program: a replay does what the real chain did, counts right, and repeats itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm._lib.replay import Replayer
from rmm_uvm.drivers import SimulatedDevice

from .programs import (
    BLOCK_BYTES,
    DRIVER_ONLY,
    MIB,
    MODES,
    POLICIES,
    Actions,
    Recorder,
    actions,
    replayed,
    workload_of,
)

POOL_BYTES = 48 * MIB
DEVICE_BYTES = 16 * MIB


def recorded(program: Actions, prefetch: str, device_bytes: int = DEVICE_BYTES) -> Recorder:
    """Run a program on the real chain."""
    recorder = Recorder(SimulatedDevice(device_bytes, machine=DRIVER_ONLY), POOL_BYTES, prefetch)
    recorder.run(program)
    return recorder


@pytest.mark.parametrize("prefetch", MODES)
@settings(max_examples=60, deadline=None)
@given(program=actions)
def test_replay_moves_what_the_real_chain_moved(prefetch: str, program: Actions) -> None:
    recorder = recorded(program, prefetch)
    seen = recorder.device.statistics()
    result = replayed(
        workload_of(recorder.events, [recorder.slab]),
        DEVICE_BYTES // BLOCK_BYTES,
        prefetch=prefetch,
    )
    assert (result.to_device_bytes, result.to_host_bytes, result.evicted_bytes) == (
        seen["host_to_device_bytes"],
        seen["device_to_host_bytes"],
        seen["evicted_bytes"],
    )
    assert result.gpu_faults == seen["gpu_faults"]
    assert result.host_page_bytes == seen["host_page_bytes"]
    assert result.migration_seconds == pytest.approx(seen["modelled_ns"] / 1e9, abs=1e-8)
    recorder.close()


def test_replay_on_another_card_than_the_real_one_moves_something_else() -> None:
    program = [("allocate", 4 * MIB), ("write", 0)] * 8
    recorder = recorded(program, "auto")
    result = replayed(workload_of(recorder.events, [recorder.slab]), 64)
    assert recorder.device.statistics()["evicted_bytes"] > 0
    assert result.evicted_bytes == 0
    recorder.close()


@settings(max_examples=60, deadline=None)
@given(program=actions, prefetch=st.sampled_from(MODES), policy=st.sampled_from(POLICIES))
def test_card_as_large_as_everything_evicts_nothing(
    program: Actions, prefetch: str, policy: str
) -> None:
    recorder = recorded(program, "never", 2 * POOL_BYTES)
    workload = workload_of(recorder.events, [recorder.slab])
    blocks = POOL_BYTES // BLOCK_BYTES
    result = replayed(workload, blocks, prefetch=prefetch, policy=policy)
    assert (result.evicted_bytes, result.evicted_blocks, result.dropped_bytes) == (0, 0, 0)
    assert result.peak_resident_bytes <= POOL_BYTES
    assert result.peak_live_bytes == workload.peak_live_bytes
    recorder.close()


@settings(max_examples=60, deadline=None)
@given(program=actions, prefetch=st.sampled_from(MODES), policy=st.sampled_from(POLICIES))
def test_replay_counts_right_and_repeats_itself(
    program: Actions, prefetch: Any, policy: Any
) -> None:
    recorder = recorded(program, "never")
    workload = workload_of(recorder.events, [recorder.slab])
    blocks = DEVICE_BYTES // BLOCK_BYTES
    result = replayed(workload, blocks, prefetch=prefetch, policy=policy)
    assert result == replayed(workload, blocks, prefetch=prefetch, policy=policy)
    assert result.peak_live_bytes == workload.peak_live_bytes
    assert result.stages[0].peak_live_bytes == workload.peak_live_bytes
    assert result.timeline.live_bytes.max() == workload.peak_live_bytes
    assert result.evicted_bytes <= result.to_host_bytes
    assert result.timeline.to_device_bytes[-1] == result.to_device_bytes
    assert result.timeline.to_host_bytes[-1] == result.to_host_bytes
    live = sum(nbytes for _, nbytes in recorder.live)
    assert result.timeline.live_bytes[-1] >= live
    recorder.close()


@settings(max_examples=40, deadline=None)
@given(program=actions, cuts=st.lists(st.integers(0, 200), max_size=6), drop=st.booleans())
def test_how_events_are_cut_into_calls_changes_nothing(
    program: Actions, cuts: list[int], drop: bool
) -> None:
    recorder = recorded(program, "never")
    events = workload_of(recorder.events, [recorder.slab]).events.tobytes()
    recorder.close()

    def outcome(offsets: list[int]) -> tuple[Any, ...]:
        replayer = Replayer(
            rmm_uvm.simulated_device(DEVICE_BYTES),
            [recorder.slab],
            prefetch="auto",
            discard_dead=drop,
            stage_count=1,
            last_time_ns=1000 * len(recorder.events),
        )
        ends = [*sorted(min(32 * at, len(events)) for at in offsets), len(events)]
        for begin, end in zip([0, *ends], ends, strict=False):
            replayer.feed(events[begin:end])
        replayer.finish()
        return replayer.statistics(), replayer.stages(), replayer.points()

    assert outcome([]) == outcome(cuts)


@settings(max_examples=40, deadline=None)
@given(program=actions, prefetch=st.sampled_from(MODES))
def test_dropping_dead_blocks_never_copies_more_to_the_host(
    program: Actions, prefetch: str
) -> None:
    recorder = recorded(program, "never")
    workload = workload_of(recorder.events, [recorder.slab])
    kept, dropped = (
        replayed(workload, DEVICE_BYTES // BLOCK_BYTES, prefetch=prefetch, policy=policy)
        for policy in POLICIES
    )
    recorder.close()
    assert dropped.peak_live_bytes == kept.peak_live_bytes
    assert dropped.to_host_bytes <= kept.to_host_bytes


def test_half_an_event_is_refused() -> None:
    replayer = Replayer(
        rmm_uvm.simulated_device("16MiB"),
        [(1 << 46, BLOCK_BYTES)],
        prefetch="auto",
        discard_dead=False,
        stage_count=1,
        last_time_ns=0,
    )
    with pytest.raises(ValueError, match="33 are not whole events"):
        replayer.feed(bytes(33))
    assert replayer.feed(b"") is True
