# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Snapshots and windows: pure functions of samples."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.watch.snapshot import NEEDS, TOTALS, snapshot_of, window_between

MIB = 1 << 20
FACTS = RecordedDevice(3, "NVIDIA H200", "GPU-1", 64 * MIB, 60 * MIB)
ALL = Known.COUNTERS | Known.FAULTS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT


def sample(known: Known = ALL, **values: int) -> np.void:
    row = np.zeros(1, SAMPLE_DTYPE)
    row["device_id"], row["known"] = 3, int(known)
    for name, value in values.items():
        row[name] = value
    return row[0]


def test_names_that_need_bits_are_fields_of_samples() -> None:
    assert set(NEEDS) == set(SAMPLE_DTYPE.names) - {"time_ns", "device_id", "known"}
    assert set(TOTALS) < set(NEEDS)


def test_snapshot_of_everything_known_has_every_field() -> None:
    values = {name: number + 1 for number, name in enumerate(NEEDS)}

    snapshot = snapshot_of(sample(time_ns=1_500_000_000, **values), FACTS)

    assert {name: getattr(snapshot, name) for name in NEEDS} == values
    assert (snapshot.device_id, snapshot.time_seconds) == (3, 1.5)
    assert (snapshot.capacity_bytes, snapshot.device_total_bytes) == (60 * MIB, 64 * MIB)


@pytest.mark.parametrize("bit", [Known.COUNTERS, Known.FAULTS, Known.FOOTPRINT, Known.RESIDENT])
def test_snapshot_without_a_bit_has_none_for_its_fields(bit: Known) -> None:
    snapshot = snapshot_of(sample(ALL & ~bit), FACTS)

    for name, needed in NEEDS.items():
        assert (getattr(snapshot, name) is None) == bool(needed & bit), name


def test_evicted_bytes_without_device_memory_are_unknown() -> None:
    snapshot = snapshot_of(sample(ALL & ~Known.DEVICE), FACTS)

    assert snapshot.evicted_bytes_estimate is None
    assert snapshot.device_to_host_bytes == 0


def test_oversubscription_factor_is_footprint_over_capacity() -> None:
    assert snapshot_of(sample(footprint_bytes=90 * MIB), FACTS).oversubscription_factor == 1.5


@pytest.mark.parametrize("known", [ALL & ~Known.FOOTPRINT, ALL])
def test_oversubscription_factor_without_footprint_or_capacity_is_none(known: Known) -> None:
    facts = RecordedDevice(3, "unknown", "", 0, 0) if known & Known.FOOTPRINT else FACTS

    assert snapshot_of(sample(known), facts).oversubscription_factor is None


def test_snapshot_repr_shows_figures_and_what_is_unknown() -> None:
    text = repr(snapshot_of(sample(ALL & ~Known.COUNTERS, footprint_bytes=90 * MIB), FACTS))

    assert "90.00 MiB (1.50 x capacity)" in text
    assert "(estimate)" in text
    assert "to the host           unknown" in text
    assert max(map(len, text.splitlines())) <= 80


def test_snapshot_html_is_a_table_and_escaped() -> None:
    html = snapshot_of(sample(), FACTS)._repr_html_()

    assert html.startswith("<table>")
    assert "device 3" in html


def test_snapshot_to_dict_is_json_with_all_fields() -> None:
    causes = {"host_to_device_bytes": {"user": 5}}
    snapshot = snapshot_of(sample(footprint_bytes=30 * MIB), FACTS, causes, {"resident": 2})

    read = json.loads(json.dumps(snapshot.to_dict()))

    assert read["oversubscription_factor"] == 0.5
    assert read["causes"] == causes
    assert read["prefetch_skipped"] == {"resident": 2}
    assert set(NEEDS) < set(read)


def test_window_between_snapshots_has_the_growth_and_rates() -> None:
    before = snapshot_of(sample(time_ns=10**9, host_to_device_bytes=5, gpu_faults=1), FACTS)
    after = snapshot_of(sample(time_ns=3 * 10**9, host_to_device_bytes=25, gpu_faults=4), FACTS)

    window = window_between(before, after, np.empty(0, SAMPLE_DTYPE))

    assert (window.seconds, window.host_to_device_bytes, window.gpu_faults) == (2.0, 20, 3)
    assert window.host_to_device_bytes_per_second == 10.0
    assert json.loads(json.dumps(window.to_dict()))["host_to_device_bytes_per_second"] == 10.0
    assert "2.00 s" in repr(window)


def test_window_since_the_start_has_the_totals() -> None:
    until = snapshot_of(sample(time_ns=10**9, device_to_host_bytes=25), FACTS)

    window = window_between(None, until, np.empty(0, SAMPLE_DTYPE))

    assert (window.begin_seconds, window.device_to_host_bytes) == (0.0, 25)


def test_window_of_no_length_has_no_rate() -> None:
    until = snapshot_of(sample(), FACTS)

    assert window_between(until, until, np.empty(0, SAMPLE_DTYPE)).seconds == 0
    window = window_between(until, until, np.empty(0, SAMPLE_DTYPE))
    assert window.device_to_host_bytes_per_second is None


def test_window_with_an_end_that_is_unknown_is_unknown() -> None:
    before = snapshot_of(sample(ALL & ~Known.COUNTERS), FACTS)
    after = snapshot_of(sample(time_ns=1, device_to_host_bytes=25), FACTS)

    assert window_between(before, after, np.empty(0, SAMPLE_DTYPE)).device_to_host_bytes is None


def test_window_over_a_restarted_counter_is_not_negative() -> None:
    before = snapshot_of(sample(device_to_host_bytes=25), FACTS)
    after = snapshot_of(sample(time_ns=1, device_to_host_bytes=5), FACTS)

    assert window_between(before, after, np.empty(0, SAMPLE_DTYPE)).device_to_host_bytes == 0


def test_window_peak_is_the_most_of_samples_inside() -> None:
    rows = np.array(
        [
            sample(time_ns=0, footprint_bytes=99),
            sample(time_ns=5, footprint_bytes=50),
            sample(ALL & ~Known.FOOTPRINT, time_ns=6, footprint_bytes=77),
            sample(time_ns=9, footprint_bytes=98),
        ]
    )
    before = snapshot_of(sample(time_ns=4, footprint_bytes=10), FACTS)
    after = snapshot_of(sample(time_ns=8, footprint_bytes=20), FACTS)

    assert window_between(before, after, rows).peak_footprint_bytes == 50


def test_window_causes_are_subtracted() -> None:
    before = snapshot_of(sample(), FACTS, {"host_to_device_bytes": {"user": 5}, "cpu_faults": 1})
    after = snapshot_of(
        sample(time_ns=1),
        FACTS,
        {"host_to_device_bytes": {"user": 7, "eviction": 2}, "cpu_faults": 4},
    )

    causes = window_between(before, after, np.empty(0, SAMPLE_DTYPE)).causes

    assert causes == {"host_to_device_bytes": {"user": 2, "eviction": 2}, "cpu_faults": 3}


def test_window_since_another_device_raises() -> None:
    other = snapshot_of(sample(), RecordedDevice(0, "", "", 1, 1))

    with pytest.raises(ConfigurationError, match="snapshot of device 0"):
        window_between(other, snapshot_of(sample(), FACTS), np.empty(0, SAMPLE_DTYPE))


def test_window_since_a_later_time_raises() -> None:
    later = snapshot_of(sample(time_ns=10**9), FACTS)

    with pytest.raises(ConfigurationError, match="same monitor"):
        window_between(later, snapshot_of(sample(), FACTS), np.empty(0, SAMPLE_DTYPE))


def test_snapshot_factor_is_finite_for_huge_values() -> None:
    factor = snapshot_of(sample(footprint_bytes=2**63), FACTS).oversubscription_factor

    assert factor is not None
    assert math.isfinite(factor)


def test_run_id_is_not_shown() -> None:
    snapshot = snapshot_of(sample(), FACTS, run_id="secret")

    assert "_run_id" not in snapshot.to_dict()
    assert "secret" not in repr(snapshot) + snapshot._repr_html_() + str(snapshot.to_dict())
    assert pickle.loads(pickle.dumps(snapshot))._run_id == "secret"
