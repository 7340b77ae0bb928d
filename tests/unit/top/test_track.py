# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Rates and the last minute."""

from __future__ import annotations

from rmm_uvm.top.track import Track


def test_history_older_than_a_minute_is_dropped() -> None:
    track = Track()
    for second in range(200):
        track.add({"host_to_device_bytes": second * 10, "device_to_host_bytes": 0}, second, second)
    history = track.history(199.0)
    assert len(history) == 61
    assert history[0] == (60.0, 10.0)
    assert history[-1] == (0.0, 10.0)


def test_counts_that_begin_anew_give_no_rate() -> None:
    track = Track()
    track.add({"host_to_device_bytes": 100}, 10.0, 0.0)
    track.add({"host_to_device_bytes": 5}, 1.0, 1.0)  # another monitor of the same process
    assert track.in_bytes_per_second is None
    track.add({"host_to_device_bytes": 9}, 2.0, 2.0)
    assert track.in_bytes_per_second == 4.0


def test_counts_that_fall_are_no_negative_rate() -> None:
    track = Track()
    track.add({"host_to_device_bytes": 100}, 1.0, 1.0)
    track.add({"host_to_device_bytes": 0}, 2.0, 2.0)
    assert track.in_bytes_per_second == 0.0


def test_faults_of_both_processors_are_added() -> None:
    track = Track()
    track.add({"cpu_faults": 0, "gpu_faults": 0}, 0.0, 0.0)
    assert track.faults_per_second is None
    track.add({"cpu_faults": 4, "gpu_faults": 6}, 2.0, 2.0)
    assert track.faults_per_second == 5.0


def test_unknown_figures_have_unknown_rates() -> None:
    track = Track()
    for second in range(2):
        track.add({"cpu_faults": None}, second, second)
    assert track.faults_per_second is None
    assert track.in_bytes_per_second is None
