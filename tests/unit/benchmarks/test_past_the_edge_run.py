# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/past_the_edge/run.py`: runs, twins, and what comes of them on a simulated device."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy
import pandas
import polars
import pytest
import rmm

import rmm_uvm

from .scripts import REPOSITORY, script

loop = script("benchmarks", "past_the_edge/run")
programs = script("benchmarks", "past_the_edge/programs")
measuring = script("benchmarks", "common/past_the_edge/measure")
memory = script("benchmarks", "common/past_the_edge/memory")
rounds = script("benchmarks", "common/past_the_edge/rounds")
runner = script("benchmarks", "common/past_the_edge/runner")
sides = script("benchmarks", "common/past_the_edge/sides")
verdicts = script("benchmarks", "common/past_the_edge/verdicts")

MIB = 1 << 20
BUDGET = 64 * MIB
BASELINES = [side.name for side in sides.BASELINES if side.budgeted]
SMALL = ("--simulated", "--budget", "64MiB", "--pieces", "8")


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Run children as calls; return what they were asked for."""
    asked: list[dict[str, Any]] = []

    def called(_: Any, request: dict[str, Any], _most_seconds: float) -> dict[str, Any]:
        asked.append(request)
        return dict(json.loads(json.dumps(loop.child(json.loads(json.dumps(request))))))

    monkeypatch.setattr(runner.Processes, "run", called)
    return asked


@pytest.mark.usefixtures("in_this_process")
def test_simulated_loop_is_a_result_where_the_budget_binds(tmp_path: Path) -> None:
    status = loop.main([*SMALL, "--sides", "resident,lru,fault-driven", "--json", f"{tmp_path}/a"])

    told = json.loads((tmp_path / "a").read_text())
    assert status == 0, [ratio["reasons"] for ratio in told["ratios"]]
    assert [(ratio["of"], ratio["over"]) for ratio in told["ratios"]] == [
        ("lru", "fault-driven"),
        ("lru", "resident"),
        ("fault-driven", "resident"),
    ]
    assert told["ratios"][0]["seconds_ratio"] < 1
    lru = told["sides"][1]
    assert lru["evicted_bytes"] > BUDGET // 2
    assert 1.5 <= lru["factor"] < 1.7
    assert {"versions", "commit", "date"} <= set(told["environment"])


@pytest.mark.usefixtures("in_this_process")
def test_ratios_are_over_both_baselines(tmp_path: Path) -> None:
    names = "lru,fault-driven,fault-driven-prefetched"
    status = loop.main([*SMALL, "--sides", names, "--json", f"{tmp_path}/a"])

    told = json.loads((tmp_path / "a").read_text())
    assert status == 0, [ratio["reasons"] for ratio in told["ratios"]]
    assert [(ratio["of"], ratio["over"]) for ratio in told["ratios"]] == [
        ("lru", "fault-driven"),
        ("lru", "fault-driven-prefetched"),
    ]
    plain, prefetched = told["sides"][1:]
    assert prefetched["seconds"] < plain["seconds"]


def test_prefetched_memory_is_there_before_it_is_used() -> None:
    device = rmm_uvm.simulated_device("256MiB")
    for name, there in (("fault-driven", 0), ("fault-driven-prefetched", 8 * MIB)):
        of_side, _ = sides.open_simulated(sides.SIDES[name], device, BUDGET, 96 * MIB)
        address = of_side.mr.allocate(8 * MIB)
        assert device.resident_bytes(address, 8 * MIB) == there
        of_side.mr.deallocate(address, 8 * MIB)
        of_side.close()


@pytest.mark.usefixtures("in_this_process")
def test_loop_that_nobody_sees_is_told_to_leak(tmp_path: Path) -> None:
    status = loop.main([*SMALL, "--sides", "unseen,fault-driven", "--json", f"{tmp_path}/a"])

    told = json.loads((tmp_path / "a").read_text())
    assert status == 1
    assert "of the budget lay beyond it" in told["ratios"][0]["reasons"][0]


def test_sides_take_turns_and_each_repetition_is_watched_and_has_its_twins() -> None:
    ordered = runner.jobs([sides.RESIDENT, sides.DEFAULT], 2, [[4, 0], [5, 1]])

    assert [(job.side.name, job.repetition, job.stop, job.watched) for job in ordered] == [
        ("resident", 0, None, False),
        ("default", 0, None, False),
        ("default", 0, None, True),
        ("default", 0, [4, 0], False),
        ("resident", 1, None, False),
        ("default", 1, None, False),
        ("default", 1, None, True),
        ("default", 1, [5, 1], False),
    ]
    assert len({job.key for job in ordered}) == len(ordered)


def test_loop_goes_on_with_what_is_missing(
    tmp_path: Path, in_this_process: list[dict[str, Any]]
) -> None:
    arguments = [*SMALL, "--sides", "lru,fault-driven", "--json", f"{tmp_path}/a"]
    assert loop.main([*arguments, "--time-limit", "0"]) == 1
    first = len(in_this_process)

    loop.main([*arguments, "--missing"])

    # The first repetition was cut short: it is measured anew, in turn.
    assert (first, len(in_this_process)) == (1, 21)
    told = json.loads((tmp_path / "a").read_text())
    assert (len(told["runs"]), len(told["stops"])) == (10, 10)


@pytest.mark.usefixtures("in_this_process")
def test_rows_of_other_settings_are_not_gone_on_with(tmp_path: Path) -> None:
    arguments = [*SMALL, "--sides", "lru", "--json", f"{tmp_path}/a", "--time-limit", "0"]
    loop.main(arguments)

    with pytest.raises(SystemExit, match="is of another rounds, moments: measure all anew"):
        loop.main([*arguments, "--missing", "--rounds", "8"])


def test_only_a_repetition_that_was_cut_short_is_measured_anew() -> None:
    wanted = runner.jobs([sides.DEFAULT, sides.LRU], 2, [[4, 0]])
    whole = [{"side": name, "repetition": 0} for name in ("default", "lru")]
    cut = [{"side": "default", "repetition": 1}, {"side": "lru", "repetition": 1, "failed": "so"}]
    others = [
        {"side": "unseen", "repetition": 1},
        {"side": "lru", "repetition": 0, "moment": [4, 0]},
        {"side": "lru", "repetition": 1, "watched": True},
    ]

    assert runner.in_turn([*whole, *cut, *others], wanted) == [*whole, *others]


def test_failed_process_is_a_row_that_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such card')")

    with runner.Processes(broken) as processes:
        assert processes.run({}, 60)["failed"] == "no such card"


def test_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import threading; threading.Event().wait()")

    with runner.Processes(slow) as processes:
        assert processes.run({}, 0.5)["failed"] == "it took more than 0 s"


TELLS_ITS_BEGIN = """
import json, os, pathlib, sys
_, _, modules, _, answer = sys.argv
pathlib.Path("began-" + str(os.getpid())).write_text(modules)
asked = json.loads(sys.stdin.readline())
pathlib.Path(answer).write_text(json.dumps({"pid": os.getpid(), **asked}))
"""


@pytest.mark.parametrize(("modules", "begun"), [((), 2), (("json", "csv"), 3)])
def test_next_process_begins_ahead_only_where_it_has_modules_to_import(
    modules: tuple[str, ...], begun: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "tells.py"
    script.write_text(TELLS_ITS_BEGIN)

    def began() -> list[Path]:
        return list(tmp_path.glob("began-*"))

    with runner.Processes(script, modules) as processes:
        rows = [processes.run({"number": number}, 60) for number in range(2)]
        end = time.monotonic() + 30
        while len(began()) < begun and time.monotonic() < end:
            time.sleep(0.01)

    assert [row["number"] for row in rows] == [0, 1]
    assert rows[0]["pid"] != rows[1]["pid"]
    assert len(began()) == begun
    assert {file.read_text() for file in began()} == {",".join(modules)}
    others = {int(file.name.partition("-")[2]) for file in began()} - {row["pid"] for row in rows}
    assert not any(Path(f"/proc/{pid}").exists() for pid in others)  # who waited was ended


def test_child_is_a_process_of_its_own() -> None:
    request = {
        **{"side": "lru", "program": "cudf", "simulated": True, "stop": None, "moments": [[4, 2]]},
        **{"budget_bytes": BUDGET, "data_bytes": 96 * MIB, "pieces": 8, "rounds": 5},
        "sample_ms": 4,
        "watched": False,
    }

    run = REPOSITORY / "benchmarks/past_the_edge/run.py"
    with runner.Processes(run, ["csv"]) as processes:
        row = processes.run(request, 60)

    assert len(row["rounds"]) == 5
    assert row["moved_at"]["4.2"][0] > BUDGET


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (None, "set RMM_UVM_MANAGED_LIMIT"),
        ("2GiB", "12884901888 bytes of managed memory are needed"),
        ("32GiB", "at most 24 GiB"),
    ],
)
def test_no_run_without_a_limit_on_managed_memory_that_suffices(
    limit: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = rmm_uvm.simulated_device("80GiB")
    monkeypatch.setattr(rmm_uvm, "cuda_driver", lambda _: device)
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT", raising=False)
    if limit is not None:
        monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", limit)

    with pytest.raises(SystemExit, match=said):
        loop.main(["--json", str(tmp_path / "a")])

    assert not (tmp_path / "a").exists()


class Held:
    """A program that holds memory on the device, whatever the budget is."""

    operations = 2

    def __init__(self, of_side: Any, nbytes: int) -> None:
        self._memory, self._bytes = of_side, nbytes

    def make(self) -> None:
        self._address = self._memory.mr.allocate(self._bytes)
        self._memory.driver.touch(self._address, self._bytes, True)

    def operation(self, number: int) -> int:
        self._memory.driver.touch(self._address, self._bytes)
        self._memory.driver.compute(0.001)
        return number

    def drop(self) -> None:
        self._memory.mr.deallocate(self._address, self._bytes)


def held_on_device(nbytes: int, stop: tuple[int, int] | None) -> dict[str, Any]:
    device = rmm_uvm.simulated_device("256MiB")
    mr = rmm_uvm.managed_pool(driver=device, maximum_pool_size="128MiB")
    of_side = memory.SimulatedMemory(device, mr)
    program = Held(of_side, nbytes)
    plan = measuring.Plan(BUDGET, rounds=5, moments=[(4, 1)], stop=stop, sample_seconds=0)
    row = measuring.measure(program, of_side, plan)
    program.drop()
    return dict(row)


def test_operations_are_timed_where_a_program_wants_that(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "operation_seconds" not in held_on_device(MIB, None)["rounds"][0]

    monkeypatch.setattr(Held, "EACH_TIMED", True, raising=False)
    for each in held_on_device(MIB, None)["rounds"]:
        assert each["operation_seconds"] == pytest.approx([0.001] * Held.operations, rel=0.1)
        assert sum(each["operation_seconds"]) <= each["seconds"]


@pytest.mark.parametrize(("of_budget", "result"), [(1.01, True), (1.03, False)])
def test_side_that_holds_more_than_the_budget_is_no_result(of_budget: float, result: bool) -> None:
    nbytes = int(of_budget * BUDGET) // 4096 * 4096
    run, twin = (held_on_device(nbytes, stop) for stop in (None, (4, 1)))
    runs = [{**run, "side": "held", "repetition": number} for number in range(5)]
    twins = [
        {**twin, "side": "held", "repetition": number, "moment": [4, 1]} for number in range(5)
    ]

    side = {"name": "held", "budgeted": True, "fault_driven": False}
    told = verdicts.side_row(side, runs, [], twins, BUDGET)

    assert told["result"] is result
    by_judge = [told["beyond"][judge]["most_bytes"] for judge in ("stops", "page_tables")]
    assert by_judge == [nbytes - BUDGET] * 2
    assert len(told["reasons"]) == (0 if result else 2)


def play_adaptor(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    """Let RMM's prefetch adaptor, which calls CUDA, prefetch on a simulated device."""
    adaptor = functools.partial(sides._prefetching, driver=device)
    monkeypatch.setattr(rmm.mr, "PrefetchResourceAdaptor", adaptor)


class OnDevice:
    """A program as on a GPU, which finds its memory where RMM says, and a device that it uses."""

    device: Any = None
    STEPS = operations = 2
    made: ClassVar[list[tuple[int, int, bool]]] = []

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        self._bytes, self._pieces = data_bytes // pieces, pieces
        self.made.append((data_bytes, pieces, announced))
        self._held: list[tuple[Any, int]] = []

    def make(self) -> None:
        mr = rmm.mr.get_per_device_resource(0)
        if type(mr) is rmm.mr.CudaMemoryResource:
            return  # loading kernels before there is a pool: no GPU, no memory
        self._held = [(mr, mr.allocate(self._bytes)) for _ in range(self._pieces)]

    def operation(self, number: int) -> int:
        for _, address in self._held:
            rmm_uvm.touch((address, self._bytes))
            self.device.touch(address, self._bytes, True)
        return number

    def drop(self) -> None:
        for mr, address in self._held:
            mr.deallocate(address, self._bytes)
        self._held = []


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> type[OnDevice]:
    device = rmm_uvm.simulated_device("512MiB")
    monkeypatch.setattr(OnDevice, "device", device)
    monkeypatch.setattr(OnDevice, "made", [])
    monkeypatch.setattr(rmm_uvm, "cuda_driver", lambda _: device)
    play_adaptor(monkeypatch, device)
    monkeypatch.setattr(memory.Memory, "synchronize", lambda of_side: of_side.driver.synchronize())
    monkeypatch.setitem(loop.PROGRAMS, "cudf", OnDevice)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    return OnDevice


def asked_on_device(
    side: str, stop: list[int] | None = None, *, watched: bool = False
) -> dict[str, Any]:
    return {
        **{"side": side, "program": "cudf", "simulated": False, "stop": stop, "moments": [[4, 1]]},
        **{"budget_bytes": BUDGET, "data_bytes": 96 * MIB, "pieces": 3, "rounds": 4},
        "sample_ms": 1,
        "watched": watched,
    }


@pytest.mark.parametrize("side", ["default", "announced", "unseen", *BASELINES])
def test_run_on_a_gpu_installs_measures_and_gives_back(
    side: str, on_device: type[OnDevice]
) -> None:
    before = rmm.mr.get_per_device_resource(0)
    row = loop.child(asked_on_device(side, watched=True))

    assert row["page_tables"]["live_peak_bytes"] in (None, 96 * MIB)
    assert (row["beside_bytes"], row["beside_unknown"], row["blind"]) == (0, "", "")
    assert list(row["moved_at"]) == ["4.1"]
    assert rmm.mr.get_per_device_resource(0) is before
    # First a piece of a third, so that kernels are loaded.
    assert on_device.made == [(32 * MIB, 1, False), (96 * MIB, 3, side == "announced")]


@pytest.mark.usefixtures("on_device")
def test_nothing_looks_on_while_time_is_taken() -> None:
    row = loop.child(asked_on_device("lru"))

    assert row["page_tables"]["samples"] == 0
    assert row["page_tables"]["live_peak_bytes"] is None


def test_program_that_asks_for_it_warms_up_with_all_data(
    on_device: type[OnDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_device, "WARMED_UP_WHOLE", True, raising=False)
    loop.child(asked_on_device("default"))

    assert on_device.made == [(96 * MIB, 1, False), (96 * MIB, 3, False)]


def test_torch_warms_up_with_tensors_of_full_size(
    on_device: type[OnDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[str] = []

    @contextlib.contextmanager
    def warming(side: Any, _driver: Any, _data_bytes: int) -> Iterator[None]:
        yield
        warmed.append(side.name)

    monkeypatch.setattr(loop, "warming_torch_up", warming)
    monkeypatch.setitem(loop.PROGRAMS, "swin-b", on_device)
    loop.child({**asked_on_device("announced"), "program": "swin-b"})

    assert on_device.made == [(96 * MIB, 1, False), (96 * MIB, 3, True)]
    assert warmed == ["announced"]


@pytest.mark.usefixtures("on_device")
def test_twin_on_a_gpu_ends_at_its_stop() -> None:
    before = rmm.mr.get_per_device_resource(0)
    row = loop.child(asked_on_device("lru", stop=[4, 1]))

    assert len(row["rounds"]) == 3
    assert row["stop"]["live_bytes"] == 96 * MIB
    assert row["stop"]["live_resident_bytes"] < 96 * MIB
    assert rmm.mr.get_per_device_resource(0) is before


def whole_round(program: Any) -> int:
    total = 0
    for number in range(program.operations):
        total = rounds.checksum(total, program.operation(number))
    return total


def test_frames_give_the_same_sums_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    program = programs.PROGRAMS["cudf"](24 * 32 * 1000, 24)
    program.make()

    assert program.operations == 96
    assert whole_round(program) == whole_round(program) != 0
    other = programs.PROGRAMS["cudf"](24 * 32 * 1001, 24)
    other.make()
    assert whole_round(other) != whole_round(program)


class OnTheCard(numpy.ndarray):  # type: ignore[type-arg]
    """As CuPy's arrays are filled."""

    def set(self, values: Any) -> None:
        self[:] = values


class Stream:
    """Of CuPy, which notes what is waited for."""

    waits: ClassVar[list[str]] = []

    def __init__(self, name: str = "beside", **_: Any) -> None:
        self._name = name

    def record(self) -> str:
        return self._name

    def wait_event(self, event: str) -> None:
        self.waits.append(f"{self._name} for {event}")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("way", ["pinned", "buffered"])
def test_frames_by_hand_give_the_same_sums(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asnumpy(array: Any, out: Any) -> None:
        out[:] = array

    cuda = types.SimpleNamespace(
        set_allocator=lambda _: None,
        alloc_pinned_memory=bytearray,
        Stream=Stream,
        get_current_stream=lambda: Stream("here"),
    )
    empty = lambda size, dtype: numpy.empty(size, dtype).view(OnTheCard)  # noqa: E731
    cupy = types.SimpleNamespace(cuda=cuda, asnumpy=asnumpy, empty=empty)
    monkeypatch.setattr(Stream, "waits", [])
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    allocators = types.SimpleNamespace(rmm_cupy_allocator=None)
    monkeypatch.setitem(sys.modules, "rmm.allocators.cupy", allocators)
    kind = programs.PROGRAMS["cudf"]
    plain, by_hand = kind(4 * 32 * 1000, 4), kind(4 * 32 * 1000, 4, instead=way)
    for program in (plain, by_hand):
        program.make()

    assert whole_round(by_hand) == whole_round(by_hand) == whole_round(plain)
    waits = ["here for beside", "beside for here"] * 8
    assert Stream.waits == (waits if way == "buffered" else [])
    by_hand.drop()


def test_program_has_what_it_names_in_place_of_a_budget_on_a_gpu(tmp_path: Path) -> None:
    for more, there in (
        (["--program", "cupy"], "nothing in place of a budget, here"),
        (["--simulated"], "nothing in place of a budget, here"),
        (["--program", "pds-h-eager"], "polars-streaming"),
    ):
        with pytest.raises(SystemExit, match=f"has no by-hand: {there}"):
            loop.main(["--sides", "default,by-hand", "--json", f"{tmp_path}/a", *more])


def test_each_alternative_is_somebodys() -> None:
    there = {way for ways in programs.INSTEAD.values() for way in ways}
    assert there == {side.instead for side in sides.ALTERNATIVES}
    assert len({side.instead for side in sides.ALTERNATIVES}) == len(sides.ALTERNATIVES)


def test_what_people_use_instead_is_watched_once() -> None:
    ordered = runner.jobs([sides.RESIDENT, sides.SIDES["by-hand"]], 2, [[4, 0]])

    assert [(job.side.name, job.repetition, job.watched) for job in ordered] == [
        ("resident", 0, False),
        ("by-hand", 0, False),
        ("by-hand", 0, True),
        ("resident", 1, False),
        ("by-hand", 1, False),
    ]


def test_device_memory_that_is_not_managed_is_what_is_taken_of_what_was_free() -> None:
    device = rmm_uvm.simulated_device("256MiB")
    mr = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    free_bytes = device.memory()[0]
    of_side = memory.Memory(device, mr, managed=False, free_before_bytes=free_bytes)
    address = mr.allocate(64 * MIB)

    assert of_side.sample().held_bytes == 64 * MIB
    mr.deallocate(address, 64 * MIB)
    assert of_side.sample().held_bytes == 0


class HeldOfTheDevice(Held):
    """The same of memory that is not managed, and always there."""

    def make(self) -> None:
        self._address = self._memory.mr.allocate(self._bytes)

    def operation(self, number: int) -> int:
        self._memory.driver.compute(0.001)
        return number


@pytest.mark.parametrize(("managed", "beyond_bytes"), [(False, 6 * MIB), (True, 11 * MIB)])
def test_what_is_beside_counts_once(managed: bool, beyond_bytes: int) -> None:
    device = rmm_uvm.simulated_device("256MiB")
    free_bytes = None if managed else device.memory()[0]
    mr: Any = rmm_uvm.managed_pool(driver=device, maximum_pool_size="128MiB")
    if not managed:
        mr = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    of_side = memory.SimulatedMemory(device, mr, managed=managed, free_before_bytes=free_bytes)
    program = (Held if managed else HeldOfTheDevice)(of_side, 70 * MIB)
    plan = measuring.Plan(BUDGET, rounds=5, sample_seconds=0)
    row = measuring.measure(program, of_side, plan, lambda: (5 * MIB, ""))
    program.drop()

    assert row["beside_bytes"] == 5 * MIB
    assert row["page_tables"]["most_bytes"] == beyond_bytes


def test_pinned_memory_is_handed_out_behind_the_devices() -> None:
    device, host = (rmm_uvm.simulated_device("64MiB") for _ in range(2))
    upstreams = [rmm_uvm.mr.SimulatedCudaMemoryResource(each) for each in (device, host)]
    limited = rmm.mr.LimitingResourceAdaptor(upstreams[0], 8 * MIB)
    mr = sides.pinned_behind(limited, 0, rmm.mr.LimitingResourceAdaptor(upstreams[1], 8 * MIB))

    first, second = mr.allocate(8 * MIB), mr.allocate(4 * MIB)
    free = [each.memory()[0] for each in (device, host)]
    with pytest.raises(MemoryError):
        mr.allocate(5 * MIB)
    mr.deallocate(second, 4 * MIB)
    mr.deallocate(first, 8 * MIB)

    assert free == [56 * MIB, 60 * MIB]
    assert [each.memory()[0] for each in (device, host)] == [64 * MIB] * 2


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have queries be streamed by Polars on the CPU; return the budgets that were asked for."""
    asked: list[int] = []
    engine = types.SimpleNamespace(shutdown=lambda: asked.append(-1))
    collect = polars.LazyFrame.collect

    def streaming_engine(budget_bytes: int) -> Any:
        asked.append(budget_bytes)
        return engine

    def collected(frame: Any, engine: Any) -> Any:
        assert engine.shutdown
        return collect(frame)

    monkeypatch.setattr(polars.LazyFrame, "collect", collected)
    streaming = script("benchmarks", "tpch/streaming")
    monkeypatch.setattr(streaming, "streaming_engine", streaming_engine)
    return asked


@pytest.mark.usefixtures("polars_warm")
def test_frames_by_polars_give_the_same_sums(
    on_the_cpu: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    plain = programs.PROGRAMS["cudf"](4 * 32 * 1000, 4)
    streamed = programs.INSTEAD["cudf"]["streaming"](4 * 32 * 1000, 4, BUDGET)
    for program in (plain, streamed):
        program.make()

    assert whole_round(streamed) == whole_round(streamed) == whole_round(plain)
    streamed.drop()
    assert on_the_cpu == [BUDGET, -1]


def test_frames_on_dask_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    class Cluster:
        def __init__(self, **settings: Any) -> None:
            made.append(settings)

        def close(self) -> None:
            made.append({"closed": True})

    class Future:
        def __init__(self, value: Any) -> None:
            self.result = lambda: value

    class Client:
        def __init__(self, _cluster: Cluster) -> None:
            self.close = lambda: None

        def submit(self, function: Any, *args: Any, pure: bool = True) -> Future:
            given = [each.result() if isinstance(each, Future) else each for each in args]
            return Future(function(*given))

    distributed = types.SimpleNamespace(Client=Client, wait=lambda _: None)
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    monkeypatch.setitem(sys.modules, "dask_cudf", pandas)
    monkeypatch.setitem(sys.modules, "dask_cuda", types.SimpleNamespace(LocalCUDACluster=Cluster))
    plain = programs.PROGRAMS["cudf"](4 * 32 * 1000, 4)
    there = programs.INSTEAD["cudf"]["dask"](4 * 32 * 1000, 4, BUDGET)
    for program in (plain, there):
        program.make()

    assert whole_round(there) == whole_round(plain)
    there.drop()
    assert made[0]["rmm_maximum_pool_size"] == BUDGET > made[0]["device_memory_limit"]
    assert made[1] == {"closed": True}


class Proxied:
    """The first rows of a frame, as cudf.pandas has it: columns would fall back to the CPU."""

    def __init__(self, frame: pandas.DataFrame, rows: int) -> None:
        self._frame = frame.head(rows)

    def __len__(self) -> int:
        return len(self._frame)

    def as_cpu_object(self) -> pandas.DataFrame:
        return self._frame


@pytest.mark.usefixtures("polars_warm")
def test_eager_and_streamed_queries_have_the_same_answers(
    on_the_cpu: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engines = script("benchmarks", "tpch/engines")
    columns = {"a": [3, 1, 2], "mkt_share": [0.3349, 0.7, 0.1], "text": ["x", "yz", None]}
    frame = polars.DataFrame(columns)
    # One of the queries in pandas rounds its answer.
    whole = {n: pandas.DataFrame(columns).round(2 if n == 8 else 9) for n in range(1, 23)}
    eager = {f"q{n}": functools.partial(Proxied, whole[n], n % 3 + 1) for n in whole}
    lazy = {f"q{n}": frame.lazy().head(n % 3 + 1) for n in range(1, 23)}
    monkeypatch.setattr(engines, "cudf_queries", lambda _: (eager, {}))
    monkeypatch.setattr(engines, "pdsh_frames", lambda _: (lazy, {}))
    module = script("benchmarks", "past_the_edge/programs/pds_h_eager")
    monkeypatch.setattr(module, "accelerated_pandas", lambda: None)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    plain = programs.PROGRAMS["pds-h-eager"](8 * MIB, 1)
    streamed = programs.INSTEAD["pds-h-eager"]["streaming"](8 * MIB, 1, BUDGET)
    for program in (plain, streamed):
        program.make()

    assert plain.operations == streamed.operations == 22
    answers = whole_round(streamed)
    assert whole_round(plain) == answers
    assert [plain.operation(n) for n in (0, 1, 2)] == [2, 3, 1]  # rows, from then on
    whole[9].loc[0, "mkt_share"] = 0.3351
    other = programs.PROGRAMS["pds-h-eager"](8 * MIB, 1)
    other.make()
    assert whole_round(other) != answers
    for program in (plain, streamed, other):
        program.drop()
    assert [path.name for path in tmp_path.iterdir()] == ["rmm-uvm-pds-h-0.01"]
    assert on_the_cpu == [BUDGET, -1]


def test_arrays_are_written_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", numpy)
    one, other = (programs.PROGRAMS["cupy"](6 * 8 * 1000, 6) for _ in range(2))
    one.make()
    other.make()

    first, second = whole_round(one), whole_round(one)
    assert first != second
    assert [whole_round(other), whole_round(other)] == [first, second]


def test_merge_and_sort_has_its_peak_while_the_sorted_copy_is_live(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    program = programs.PROGRAMS["merge-and-sort"](128 * 3000, 1)
    program.make()

    assert program.operations == 4
    rows = [program.operation(number) for number in (0, 1)]
    assert rows == [3000, 3000]  # each row has its match
    frames = [*program._pairs[0], program._merged, program._sorted]
    assert sum(frame.memory_usage(index=False).sum() for frame in frames) == 128 * 3000
    by_group = program._sorted[["group", "key"]]
    assert by_group.equals(by_group.sort_values(["group", "key"]))
    assert whole_round(program) == whole_round(program) != 0
    program.drop()


def test_merge_and_sort_of_several_pairs_keeps_to_its_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    program = programs.PROGRAMS["merge-and-sort"](176 * 1000, 2)
    program.make()

    assert [len(frame) for pair in program._pairs for frame in pair] == [1000] * 4
    assert whole_round(program) == whole_round(program) != 0


@pytest.fixture
def plain_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cudf.pandas installed already, and pandas be itself."""
    accelerated = types.SimpleNamespace(LOADED=True)
    monkeypatch.setitem(sys.modules, "cudf", types.SimpleNamespace(pandas=accelerated))
    monkeypatch.setitem(sys.modules, "cudf.pandas", accelerated)


@pytest.mark.usefixtures("plain_pandas")
def test_frames_of_pandas_give_the_same_sums_in_every_round() -> None:
    program = programs.PROGRAMS["cudf-pandas"](4 * 40 * 1000, 4)
    program.make()

    assert program.operations == 20
    kept = [program.operation(number) for number in range(4)]
    assert 0 < kept[3] < kept[0]  # the filter takes a part
    assert whole_round(program) == whole_round(program) != 0


@pytest.mark.usefixtures("plain_pandas")
def test_frames_of_pandas_have_the_bytes_that_were_asked_for() -> None:
    program = programs.PROGRAMS["cudf-pandas"](4 * 40 * 16_000, 4)
    program.make()

    [frame, *_] = program._frames
    characters = frame["remark"].str.len().sum()
    assert len(frame) * (3 * 8 + 4) + characters == pytest.approx(40 * 16_000, rel=1e-3)


def test_cudf_pandas_is_installed_without_a_memory_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[str | None, str | None]] = []

    def install() -> None:
        names = ("CUDF_PANDAS_RMM_MODE", "CUDF_PANDAS_FAIL_ON_FALLBACK")
        told.append((os.environ.get(names[0]), os.environ.get(names[1])))

    for name in ("CUDF_PANDAS_RMM_MODE", "CUDF_PANDAS_FAIL_ON_FALLBACK"):
        monkeypatch.setenv(name, "")  # so that it is taken back
    accelerated = types.SimpleNamespace(LOADED=False, install=install)
    monkeypatch.setitem(sys.modules, "cudf", types.SimpleNamespace(pandas=accelerated))
    monkeypatch.setitem(sys.modules, "cudf.pandas", accelerated)
    programs.PROGRAMS["cudf-pandas"](4 * 40 * 1000, 4)

    assert told == [("cuda", "1")]


@pytest.fixture(scope="module")
def polars_warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have Polars open what it keeps: no test of its own leaves that behind."""
    path = tmp_path_factory.mktemp("polars") / "a.parquet"
    polars.DataFrame({"a": [1, 2]}).write_parquet(path)
    polars.read_parquet(path).lazy().group_by("a").len().collect(engine="in-memory")


@pytest.mark.usefixtures("polars_warm")
def test_queries_are_given_the_memory_of_the_side_and_answer_alike(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engines: list[dict[str, Any]] = []

    def on_cpu(**keywords: Any) -> str:
        engines.append(keywords)
        return "in-memory"

    monkeypatch.setattr(polars, "GPUEngine", on_cpu)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    program = programs.PROGRAMS["pds-h"](64 * MIB // 8, 1)
    program.make()
    sums = [program.operation(number) for number in range(program.operations)]

    assert len(sums) == 8
    assert len(set(sums)) == 8
    assert [program.operation(number) for number in range(program.operations)] == sums
    mr = rmm.mr.get_per_device_resource(0)
    assert all(one["memory_resource"] is mr and one["raise_on_fail"] for one in engines)
    assert [path.name for path in tmp_path.iterdir()] == ["rmm-uvm-pds-h-0.01"]
    program.drop()


def test_checksum_of_an_answer_is_blind_to_the_order_that_floats_are_added_in() -> None:
    whole_number = script("benchmarks", "past_the_edge/programs/pds_h").whole_number
    answer = {"name": ["a", "b"], "sum": [1.25e9, 0.5], "count": [1, 2]}
    other = {**answer, "sum": [1.25e9 * (1 + 1e-13), 0.5]}

    assert whole_number(polars.DataFrame(answer)) == whole_number(polars.DataFrame(other))
    changed = {**answer, "sum": [1.26e9, 0.5]}
    assert whole_number(polars.DataFrame(answer)) != whole_number(polars.DataFrame(changed))
    assert whole_number(polars.DataFrame({"sum": [None]}, schema={"sum": polars.Float64})) == 1


def test_boosting_predicts_the_same_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xgboost")
    boosting = script("benchmarks", "past_the_edge/programs/boosting")
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    monkeypatch.setitem(boosting.SETTINGS, "device", "cpu")
    monkeypatch.setattr(boosting, "CUSTOMERS", 500)
    program = programs.PROGRAMS["xgboost"](2 * 32 * 2000, 2)
    program.make()

    assert program.operations == 6
    first = [program.operation(number) for number in range(6)]
    assert first[:2] == [500, boosting.ROUNDS]
    assert first[2] != first[5] != 0
    assert [program.operation(number) for number in range(6)] == first
    program.drop()
    assert program._booster is not None  # its memory is counted beside


def test_what_libraries_keep_is_given_back_where_they_were_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed: list[str] = []
    pool = types.SimpleNamespace(free_all_blocks=lambda: freed.append("arrays"))
    cupy = types.SimpleNamespace(get_default_memory_pool=lambda: pool)
    kept = types.SimpleNamespace(cache_clear=lambda: freed.append("scalars"))
    scalars = types.SimpleNamespace(pa_scalar_to_plc_scalar=kept)
    for name in ("cupy", "cudf.utils.scalar"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    loop._forget_cached()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cudf.utils.scalar", scalars)
    loop._forget_cached()

    assert freed == ["arrays", "scalars"]


def test_what_a_program_uses_is_announced_where_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    touched: list[Any] = []
    monkeypatch.setattr(rmm_uvm, "touch", touched.append)
    monkeypatch.setitem(sys.modules, "cudf", pandas)
    for announced in (True, False):
        program = programs.PROGRAMS["cudf"](4 * 32 * 1000, 4, announced=announced)
        program.make()
        whole_round(program)

    assert [len(frame) for frame in touched] == [1000] * 4


@pytest.mark.parametrize("name", ["default", "lru", "announced", *BASELINES])
def test_side_is_installed_for_rmm_and_given_back_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = rmm_uvm.simulated_device("256MiB")
    play_adaptor(monkeypatch, device)
    free_bytes = device.memory()[0]
    before = rmm.mr.get_per_device_resource(0)
    of_side, give_back = sides.open_memory(sides.SIDES[name], device, BUDGET, 96 * MIB)
    assert rmm.mr.get_per_device_resource(0) is of_side.mr
    address = of_side.mr.allocate(8 * MIB)
    device.touch(address, 8 * MIB)
    assert of_side.sample().live_bytes == 8 * MIB
    of_side.mr.deallocate(address, 8 * MIB)
    of_side.close()

    assert memory.beside_bytes(device, free_bytes, give_back) == (0, "")
    assert rmm.mr.get_per_device_resource(0) is before


def test_memory_that_the_driver_gives_back_late_is_not_beside() -> None:
    told = iter([900, 950, 1000])
    driver = types.SimpleNamespace(memory=lambda: (next(told), 1000))

    assert memory.beside_bytes(driver, 1000, lambda: None) == (0, "")


def test_memory_beside_managed_memory_is_what_is_missing_at_the_end() -> None:
    driver = types.SimpleNamespace(memory=lambda: (900, 1000))

    assert memory.beside_bytes(driver, 1000, lambda: None) == (100, "")


def test_memory_beside_cannot_be_told_while_managed_memory_is_alive() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="32MiB", maximum_pool_size="32MiB")

    told, why = memory.beside_bytes(device, 1000, lambda: None)

    assert told is None
    assert "of managed memory are alive" in why
    del mr
