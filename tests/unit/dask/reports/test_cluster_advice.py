# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Advice across workers: what only shows when they are compared, and nothing twice."""

from __future__ import annotations

import dataclasses

import pytest

from rmm_uvm.dask.reports.advice import ClusterAdvice, cluster_advice, cluster_verdict, sums_of
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.recording.finding import Finding
from rmm_uvm.report import words

from ...report import recordings
from . import clusters
from .clusters import GIB, run, worker


def advised(workers: list[WorkerRecording], kind: str) -> ClusterAdvice:
    (found,) = [one for one in cluster_advice(workers) if one.kind == kind]
    return found


def kinds(workers: list[WorkerRecording]) -> list[str]:
    return [one.kind for one in cluster_advice(workers)]


def test_even_workers_on_which_all_fits_have_nothing_to_do() -> None:
    workers = clusters.even()

    assert cluster_advice(workers) == ()
    assert cluster_verdict(workers) == "nothing to do: everything fitted"


def test_workers_that_cannot_be_watched_get_no_advice_and_no_praise() -> None:
    assert cluster_verdict([]) == "no advice: no worker could be watched"
    assert cluster_verdict([worker()]) == "no advice: no worker could be watched"
    mixed = [*clusters.even(), worker("9", recordings.blind())]
    assert cluster_verdict(mixed) == "nothing to do: no threshold was passed"


def test_overflow_names_the_worst_worker_and_the_pool_to_enlarge() -> None:
    workers = clusters.even()
    workers[1] = dataclasses.replace(workers[1], comm={"received_overflow_bytes": 3 * GIB})
    workers[2] = dataclasses.replace(workers[2], comm={"sent_overflow_bytes": GIB})
    found = advised(workers, "overflow")

    assert found.workers == ("1", "2")
    assert "4.00 GiB of what workers sent and received" in found.message
    assert "most on worker 1 (3.00 GiB)" in found.message
    assert found.remedy.startswith("make ipc-pool-size larger than 256.00 MiB")


def test_overflow_without_an_ipc_pool_asks_for_one() -> None:
    overflowing = worker("0", run(0.5), ipc_pool_bytes=0, comm={"sent_overflow_bytes": 1})

    assert advised([overflowing], "overflow").remedy == "set ipc-pool-size on every worker"


def test_waiting_for_the_pool_is_advice_when_it_takes_a_part_of_the_time() -> None:
    workers = clusters.even()  # watched for 30 s
    workers[0] = dataclasses.replace(workers[0], comm={"chunk_wait_seconds": 1.0})
    assert kinds(workers) == []

    workers[1] = dataclasses.replace(workers[1], comm={"chunk_wait_seconds": 15.0})
    workers[2] = dataclasses.replace(workers[2], comm={"chunk_wait_seconds": 2.0})
    found = advised(workers, "ipc_pool")
    assert found.workers == ("1", "2")
    assert "worker 1 waited 15.0 s" in found.message
    assert "so it was on 1 more worker" in found.message


def test_waiting_beside_overflow_is_said_once() -> None:
    comm = {"chunk_wait_seconds": 15.0, "sent_overflow_bytes": 1}
    workers = [dataclasses.replace(one, comm=comm) for one in clusters.even()]

    assert kinds(workers) == ["overflow"]


@pytest.mark.parametrize(
    ("factors", "skewed"),
    [((0.5, 0.5, 0.9), False), ((1.4, 1.4, 1.5), False), ((0.5, 0.5, 1.6), True)],
)
def test_skew_is_advice_when_one_exceeds_its_device_and_others_do_not(
    factors: tuple[float, ...], skewed: bool
) -> None:
    workers = [worker(str(n), run(factor)) for n, factor in enumerate(factors)]

    assert ("skew" in kinds(workers)) == skewed


def test_skew_that_even_spreading_would_cure_says_so() -> None:
    curable = [worker("0", run(0.5)), worker("1", run(0.5)), worker("2", run(1.6))]
    assert advised(curable, "skew").message.endswith("everything would have fitted")
    assert "worker 2 held up to 1.6" in advised(curable, "skew").message
    assert advised(curable, "skew").workers == ("2",)

    incurable = [worker("0", run(0.9)), worker("1", run(0.9)), worker("2", run(3.0))]
    assert "everything would have fitted" not in advised(incurable, "skew").message


def test_bottleneck_is_the_worker_that_moves_more_than_the_others() -> None:
    workers = [worker("0", run(0.5)), worker("1", run(0.5)), worker("2", run(3.0))]
    found = advised(workers, "bottleneck")

    assert found.workers == ("2",)
    assert "times the median of the others" in found.message
    assert "look at worker 2 first" in found.remedy


def moving(name: str, part_of_a_lot: int) -> WorkerRecording:
    recording = run(3.0)
    for column in ("host_to_device_bytes", "device_to_host_bytes"):
        recording.samples[column] = recording.samples[column] // 100 * part_of_a_lot
    return worker(name, recording)


def test_bottleneck_beside_workers_of_which_half_moved_nothing_names_the_next_one() -> None:
    workers = [moving("0", 0), moving("1", 40), moving("2", 100), moving("3", 0)]
    message = advised(workers, "bottleneck").message
    next_bytes = words.size(sums_of(workers[1]).moved_bytes)

    assert message.endswith(f", worker 1 {next_bytes}, and 2 of the 3 others none")


def test_bottleneck_beside_workers_that_moved_nothing_says_so() -> None:
    two = [moving("0", 100), moving("1", 0)]
    assert advised(two, "bottleneck").message.endswith("between device and host, the other none")
    three = advised([*two, moving("2", 0)], "bottleneck").message
    assert three.endswith("between device and host, the others none")


def test_workers_that_move_alike_or_little_have_no_bottleneck() -> None:
    assert "bottleneck" not in kinds([worker("0", run(3.0)), worker("1", run(3.0))])
    assert "bottleneck" not in kinds([worker("0", run(3.0))])
    little, none = run(0.1), run(0.1)
    for name in ("host_to_device_bytes", "device_to_host_bytes"):
        little.samples[name] //= 1000
        none.samples[name] = 0
    assert "bottleneck" not in kinds([worker("0", little), worker("1", none)])


def test_finding_of_many_workers_is_said_once_with_the_worst() -> None:
    workers = []
    for number, value in enumerate((2.0, 7.0, 3.0)):
        found = Finding("eviction", 0, 1.0, value, 1.0, f"{value} GB/s leave", "use less")
        workers.append(worker(str(number), dataclasses.replace(run(0.6), findings=(found, found))))
    found = advised([*workers, worker("3", run(0.6))], "eviction")

    assert found.message == "3 of 4 workers, at worst worker 1: 7.0 GB/s leave"
    assert found.workers == ("1", "2", "0")


def test_sources_that_fail_differently_are_two_things_and_come_last() -> None:
    def failing(name: str, text: str) -> WorkerRecording:
        monitor = Finding("monitor", 0, 1.0, 1.0, 0.0, text, "install it")
        return worker(name, dataclasses.replace(run(0.6), findings=(monitor,)))

    evicting = Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use less")
    workers = [failing("0", "no NVML"), failing("1", "no counters")]
    workers.append(worker("2", dataclasses.replace(run(0.6), findings=(evicting,))))

    assert kinds(workers) == ["eviction", "monitor", "monitor"]


def test_sums_of_a_worker_with_two_devices_are_of_the_fuller_one() -> None:
    sums = sums_of(worker("0", recordings.two_devices()))

    assert sums.factor is not None
    assert 1.3 < sums.factor < 1.5
    assert sums.capacity_bytes == recordings.device(0).capacity_bytes
    assert sums.moved_bytes == sum(
        (getattr(sums.figures, name) or 0)
        for name in ("host_to_device_bytes", "device_to_host_bytes")
    )


def test_sums_of_a_silent_worker_are_unknown_and_not_0() -> None:
    sums = sums_of(worker("0", comm={"sent_overflow_bytes": 5}))

    assert (sums.factor, sums.moved_bytes, sums.peak_footprint_bytes) == (None, None, None)
    assert sums.overflow_bytes == 5
