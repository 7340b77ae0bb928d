# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy: footprint over the capacity, and host memory for what does not fit."""

from __future__ import annotations

import pytest

from rmm_uvm.recording.sample import Known

from .samples import EXACT, GIB, OVER, QUIET, Samples


def test_nothing_gives_nothing() -> None:
    assert Samples().kinds() == []
    assert Samples().add(100).kinds() == []


def test_footprint_over_capacity_is_found_once_with_figure_threshold_and_remedy() -> None:
    (finding,) = Samples(footprint_bytes=20 * GIB).add(50).findings()
    assert (finding.kind, finding.value, finding.threshold) == ("footprint", 1.25, 1.0)
    assert str(finding) == (
        "device 0: 20.00 GiB are allocated and 16.00 GiB fit on the device: 1.25 times as much "
        "(threshold 1); process the data in parts, or expect migrations"
    )


def test_footprint_at_capacity_is_not_found() -> None:
    assert Samples(footprint_bytes=16 * GIB).add(50).kinds() == []


def test_footprint_that_is_not_known_is_not_found() -> None:
    samples = Samples(EXACT & ~Known.FOOTPRINT, footprint_bytes=20 * GIB)
    assert samples.add(5).kinds() == []


@pytest.mark.parametrize(
    ("between_bytes", "pause_seconds", "count"),
    [
        (15 * GIB, 120.0, 1),  # above 0.9: not armed again
        (14 * GIB, 120.0, 2),
        (14 * GIB, 20.0, 1),  # armed, and within the minute
    ],
)
def test_footprint_is_found_again_only_after_it_fell_and_a_minute_passed(
    between_bytes: int, pause_seconds: float, count: int
) -> None:
    samples = Samples(footprint_bytes=20 * GIB).add()
    samples.add(seconds=pause_seconds, footprint_bytes=between_bytes)
    samples.add(footprint_bytes=20 * GIB)
    assert samples.kinds() == ["footprint"] * count


def test_footprint_still_over_when_the_minute_has_passed_is_found() -> None:
    samples = Samples(footprint_bytes=20 * GIB).add().add(footprint_bytes=GIB)
    samples.add(footprint_bytes=20 * GIB, seconds=1).add(700)
    first, second = samples.findings()
    assert second.time_seconds - first.time_seconds == pytest.approx(60, abs=0.2)


def test_host_memory_too_small_is_found() -> None:
    samples = Samples(**OVER).add(5)
    (finding,) = samples.findings(QUIET, host_available_bytes=3 * GIB)
    assert (finding.kind, finding.value, finding.threshold) == ("host_memory", 4 * GIB, 3 * GIB)
    assert "4.00 GiB do not fit on the device" in finding.message
    assert "which has 3.00 GiB left" in finding.message
    assert finding.remedy == "allocate less, or the kernel may end the process"


def test_host_memory_of_a_container_is_told_with_the_file_of_its_limit() -> None:
    source = "/sys/fs/cgroup/memory.max"
    (finding,) = (
        Samples(**OVER)
        .add(5)
        .findings(QUIET, host_available_bytes=3 * GIB, host_limit_source=source)
    )
    assert finding.remedy.startswith(f"raise the container's memory limit ({source})")


@pytest.mark.parametrize("available_bytes", [4 * GIB, None])
def test_host_memory_that_suffices_or_is_not_known_is_not_found(
    available_bytes: int | None,
) -> None:
    assert Samples(**OVER).add(5).kinds(QUIET, host_available_bytes=available_bytes) == []


def test_host_memory_does_not_count_twice_what_lies_there_already() -> None:
    samples = Samples(**OVER, device_to_host_bytes=4 * GIB).add(5)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == []


@pytest.mark.parametrize("freed", ["managed_bytes", "footprint_bytes"])
def test_host_memory_does_not_count_what_was_evicted_and_freed(freed: str) -> None:
    # Without managed bytes the footprint tells how much there is.
    levels = {**OVER, "footprint_bytes": 12 * GIB}
    levels |= {"managed_bytes": 0} if freed == "footprint_bytes" else {}
    samples = Samples(**levels).add(5, device_to_host_bytes=GIB)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == []
    samples.add(**{"device_to_host_bytes": 0, "footprint_bytes": 0, freed: 0})
    samples.add(**{"footprint_bytes": 20 * GIB, freed: 20 * GIB})
    (finding,) = samples.findings(QUIET, host_available_bytes=GIB)
    assert (finding.kind, finding.value) == ("host_memory", 4 * GIB)
    assert "of which 4.00 GiB must still go to the host" in finding.message


def test_host_memory_counts_what_is_kept_on_the_host_whatever_came_before() -> None:
    # Data that were made on the host came first, and are no part of what left.
    samples = Samples(**{**OVER, "footprint_bytes": 12 * GIB}).add(5, host_to_device_bytes=GIB)
    samples.add(4, host_to_device_bytes=0, device_to_host_bytes=GIB)
    samples.add(device_to_host_bytes=0, footprint_bytes=20 * GIB)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == []


def test_host_memory_is_told_again_after_all_has_fitted_for_a_minute() -> None:
    samples = Samples(**OVER).add().add(seconds=60, footprint_bytes=GIB)
    samples.add(footprint_bytes=20 * GIB)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == ["host_memory"] * 2
