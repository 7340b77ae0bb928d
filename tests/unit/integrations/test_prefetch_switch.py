# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The rule and the thread that switch libcudf's prefetch."""

from __future__ import annotations

import threading

from rmm_uvm.integrations.prefetch_switch import PrefetchSwitch, SwitchState, next_state

LITTLE, MUCH = 1 << 20, 1 << 30


def test_next_state_much_left_switches_on() -> None:
    assert next_state(SwitchState(), MUCH).on


def test_next_state_little_left_stays_off() -> None:
    assert not next_state(SwitchState(), LITTLE).on


def test_next_state_little_left_while_on_stays_on() -> None:
    assert next_state(SwitchState(on=True, quiet_looks=5), LITTLE) == SwitchState(on=True)


def test_next_state_long_quiet_switches_off_only_then() -> None:
    state, looks = SwitchState(on=True), 0
    while state.on:
        state, looks = next_state(state, 0), looks + 1
    assert looks == 6


def test_look_switches_once_for_each_change() -> None:
    total, switched = [0], []
    switch = PrefetchSwitch(lambda: total[0], switched.append)
    switch.look()
    total[0] += MUCH
    switch.look()
    total[0] += MUCH
    switch.look()
    for _ in range(10):
        switch.look()
    assert switched == [True, False]


def test_stop_ends_the_thread_and_can_be_repeated() -> None:
    before = threading.active_count()
    switch = PrefetchSwitch(lambda: 0, lambda on: None)
    switch.start()
    assert threading.active_count() == before + 1
    switch.stop()
    switch.stop()
    assert threading.active_count() == before


def test_stop_before_start_is_harmless() -> None:
    PrefetchSwitch(lambda: 0, lambda on: None).stop()
