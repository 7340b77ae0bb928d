# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mixed load of endurance/gpu.py: its operations on a simulated device, and its verdicts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm

from .residency_scripts import missed, run_alone, script

benchmark = script("endurance/gpu")
load = script("endurance/load")
contents = script("endurance/load_contents")
judge = script("endurance/load_verdicts")
MIB = 1 << 20
RESIDENT = "resident memory of the process grew, bytes"
HELD = "memory that malloc does not keep free grew, bytes"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    where = tmp_path_factory.mktemp("load") / "load.json"
    status = run_alone("endurance/gpu", "--simulated", "--rounds", "9", "--json", str(where))
    return status, json.loads(where.read_text())


@pytest.mark.timeout(400)
def test_load_on_a_simulated_device_keeps_contents_and_gives_everything_back(
    ran: tuple[int, dict[str, Any]],
) -> None:
    status, result = ran
    rows = result["rows"]
    # Of so short a run the first part is what Python takes for itself.
    assert missed(result["verdicts"]) <= {RESIDENT, HELD}
    assert status == len(missed(result["verdicts"]))
    assert [row["rounds"] for row in rows] == [3, 6, 9]
    assert rows[-1]["operations"] == 9 * 200 * benchmark.THREADS
    assert rows[-1]["checks"] > rows[-1]["operations"] // 2


def test_worker_does_everything_that_it_may_do() -> None:
    one = worker()
    done: set[str] = set()
    for name in load._WEIGHTS:
        method = getattr(one, f"_{name}")
        setattr(one, f"_{name}", lambda *given, name=name, do=method: done.add(name) or do(*given))
    one.run(one.mr, lambda count: count >= 400)
    one.free_all()
    assert done == set(load._WEIGHTS)
    assert one.operations == 400
    assert one.finish() == 0
    assert one.mr.get_allocated_bytes() == 0


def test_worker_holds_no_more_than_it_may() -> None:
    one = worker(most_live_bytes=4 * MIB)
    held: list[int] = []
    one.run(one.mr, lambda count: held.append(one.live_bytes) or count >= 200)  # type: ignore[func-returns-value]
    assert MIB < max(held) <= 4 * MIB
    one.free_all()


def test_worker_without_room_goes_on() -> None:
    one = worker(most_live_bytes=256 * MIB)
    for _ in range(14):
        one._hold(one.mr, 4 * MIB)
    assert one.refused >= 14 - 48 // 4
    one.run(one.mr, lambda count: count >= 50)
    one.free_all()
    assert one.finish() == 0


def worker(most_live_bytes: int = 24 * MIB) -> Any:
    device = rmm_uvm.simulated_device("64MiB", backing=True)
    mr = rmm_uvm.managed_pool(
        driver=device,
        initial_pool_size="16MiB",
        maximum_pool_size="48MiB",
        device_budget="16MiB",
    )
    made = load.Worker(1, contents.SimulatedContents(device), most_live_bytes, 4 * MIB)
    made.mr = mr
    return made


@pytest.mark.parametrize("from_host", [False, True])
def test_contents_that_were_lost_are_counted(from_host: bool) -> None:
    one = worker()
    one._hold(one.mr, MIB)
    [held] = one._held
    look = one._from_host if from_host else one._use
    look(held)
    assert one.finish() == 0
    one.mr.driver.discard(*held.region)
    look(held)
    assert one.finish() == 1
    one._write(held)
    one.free_all()
    assert one.finish() == 1


def test_contents_of_another_buffer_are_counted() -> None:
    one = worker()
    one._hold(one.mr, 256)
    one._hold(one.mr, 256)
    first, second = one._held
    first.value, second.value = second.value, first.value
    one.free_all()
    assert one.finish() == 2


def rows(**changed: float) -> list[dict[str, float]]:
    """Return samples of a run that reaches every bound, but for what changes in the last one."""
    growing = ("checks", "to_device_bytes", "to_host_bytes", "dropped_bytes", "frame_passes")
    still = ("wrong", "frames_wrong", "failed_calls", "accounted_bytes")
    made = [
        {
            **dict.fromkeys(growing, 100 * number),
            **dict.fromkeys(still, 0),
            **{"rss_bytes": 500 * MIB, "held_bytes": 490 * MIB, "descriptors": 40, "threads": 9},
            "free_device_bytes": 1000 * MIB,
        }
        for number in range(1, 9)
    ]
    return [*made[:-1], {**made[-1], **changed}]


def test_run_that_keeps_everything_reaches_every_bound() -> None:
    assert missed(judge.load_verdicts(rows(), with_frames=True)) == set()


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"checks": 700}, "contents were looked at in every part"),
        ({"wrong": 1}, "no contents were lost"),
        ({"frames_wrong": 1}, "frames were computed right"),
        ({"frame_passes": 700}, "frames were computed right"),
        ({"to_host_bytes": 700}, "memory moved both ways, and was dropped, in every part"),
        ({"failed_calls": 1}, "no call of the driver failed"),
        ({"rss_bytes": 517 * MIB}, RESIDENT),
        ({"held_bytes": 495 * MIB}, HELD),
        ({"descriptors": 41}, "open files that came"),
        ({"threads": 10}, "threads that came"),
        ({"free_device_bytes": 871 * MIB}, "device memory that was not given back, bytes"),
        ({"accounted_bytes": 256}, "no managed memory is left each time"),
    ],
)
def test_run_that_keeps_something_or_loses_it_misses_its_bound(
    changed: dict[str, float], verdict: str
) -> None:
    assert missed(judge.load_verdicts(rows(**changed), with_frames=True)) == {verdict}


def test_run_without_frames_is_not_asked_for_any() -> None:
    assert missed(judge.load_verdicts(rows(frame_passes=700), with_frames=False)) == set()


def test_run_that_fails_keeps_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    samples = []

    def give_back(run: Any, real: Any = benchmark.Run.give_back) -> None:
        real(run)
        samples.append(run.rows[-1])
        if len(samples) == 2:
            raise RuntimeError("the GPU is gone")

    monkeypatch.setattr(benchmark.Run, "give_back", give_back)
    where = tmp_path / "load.json"
    words = ["--simulated", "--rounds", "9", "--operations", "40", "--json", str(where)]
    assert benchmark.main(words) > 0
    result = json.loads(where.read_text())
    assert result["rows"] == samples
    assert result["verdicts"]["the run came to its end"] is False
    assert "the GPU is gone" in capsys.readouterr().err


def test_frames_without_room_are_counted_and_the_load_goes_on() -> None:
    def no_room(_rows: int, number: int) -> int:
        if number:
            raise MemoryError("no room")
        return 0

    made = dataclasses.replace(benchmark.Load.simulated(), frames=no_room)
    found: list[dict[str, float]] = []
    benchmark.endure(made, benchmark.counted_rounds(40, benchmark.ROUNDS_A_SAMPLE), found)
    assert found[0]["frame_passes"] == 1
    assert found[0]["frames_refused"] > 0


def test_rounds_by_the_clock_end_with_whole_samples() -> None:
    rounds = list(benchmark.timed_rounds(0.001, 0.0))
    assert len(rounds) % benchmark.ROUNDS_A_SAMPLE == 0
    assert all(ended(0) for ended in rounds)


def test_results_say_whether_there_was_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        def memory(self) -> tuple[int, int]:
            return 100 << 30, 140 << 30

    monkeypatch.setattr(rmm_uvm, "cuda_driver", lambda _: Device())
    with pytest.raises(SystemExit, match="RMM_UVM_MANAGED_LIMIT"):
        benchmark.Load.on_gpu()


@pytest.mark.parametrize(("limit", "pool_gib"), [("24GiB", 6), ("12GiB", 6), ("8GiB", 4)])
def test_two_pools_stay_under_the_limit_and_twelve_gib(
    limit: str, pool_gib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Device:
        def memory(self) -> tuple[int, int]:
            return 100 << 30, 140 << 30

    monkeypatch.setattr(rmm_uvm, "cuda_driver", lambda _: Device())
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", limit)
    assert benchmark.Load.on_gpu().pool_bytes == pool_gib << 30


def test_words_of_the_host_are_looked_at_as_kernels_write_them() -> None:
    import numpy as np

    words = np.arange(4096, dtype=np.uint64) + np.uint64(7 << 32)
    there = contents.words_at(words.ctypes.data, 4096)
    assert (there == words).all()
    there[3] = 1  # it is the memory, and no copy of it
    assert words[3] == 1
    assert Path(benchmark.__file__).name == "gpu.py"
