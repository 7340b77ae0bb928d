# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Stages: nesting, threads, coroutines, decorators, and what keeps them."""

from __future__ import annotations

import _thread
import asyncio
import gc
import itertools
import linecache
import math
import os
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError, NotEnteredWarning
from rmm_uvm.watch import stages
from rmm_uvm.watch.stages import StageLog, stage


@pytest.fixture
def log() -> Iterator[StageLog]:
    ticks = itertools.count()
    log = StageLog(lambda: float(next(ticks)))
    stages.subscribe(log)
    yield log
    stages.unsubscribe(log)


@pytest.fixture
def no_nvtx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    stages._nvtx.cache_clear()
    yield
    stages._nvtx.cache_clear()


def noted(log: StageLog) -> list[tuple[str, int]]:
    return [(found.name, found.depth) for found in log.stages()]


def test_stage_is_exported_and_nests(log: StageLog) -> None:
    with rmm_uvm.stage("etl"), rmm_uvm.stage("join"):
        pass
    with rmm_uvm.stage("train"):
        pass

    assert noted(log) == [("etl", 0), ("join", 1), ("train", 0)]
    etl, join, _ = log.stages()
    assert etl.begin_seconds < join.begin_seconds < join.end_seconds < etl.end_seconds
    assert etl.thread == threading.current_thread().name


def test_stage_is_what_its_block_is_given(log: StageLog) -> None:
    begun = rmm_uvm.stage("etl")
    with begun as given:
        assert given is begun
    assert noted(log) == [("etl", 0)]


def test_stage_that_lasts_has_no_end(log: StageLog) -> None:
    with stage("etl"):
        assert math.isnan(log.stages()[0].end_seconds)


def test_stage_left_by_an_exception_ends(log: StageLog) -> None:
    with pytest.raises(ZeroDivisionError), stage("etl"):
        1 / 0  # noqa: B018

    assert not math.isnan(log.stages()[0].end_seconds)
    with stage("next"):
        pass
    assert noted(log)[-1] == ("next", 0)


@pytest.mark.parametrize("name", ["", None, 3])
def test_stage_without_a_name_raises(name: object) -> None:
    with pytest.raises(ConfigurationError, match="give it a name"):
        stage(name)  # type: ignore[arg-type]


def test_stage_unwatched_leaves_no_trace(no_nvtx: None) -> None:
    with stage("etl"):
        pass

    assert stages._logs == {}
    assert stages._innermost.get() is None


def test_stage_begun_before_the_monitor_is_not_noted_and_nests(no_nvtx: None) -> None:
    log = StageLog(lambda: 0.0)
    with stage("before"):
        stages.subscribe(log)
        with stage("inner"):
            pass
        stages.unsubscribe(log)

    assert noted(log) == [("inner", 1)]


def test_stage_as_decorator_runs_at_each_call(log: StageLog) -> None:
    @stage("work")
    def work(value: int) -> int:
        """Documented."""
        return work(value - 1) if value else 7

    assert work(1) == 7
    assert noted(log) == [("work", 0), ("work", 1)]
    assert work.__doc__ == "Documented."


def test_stage_on_a_coroutine_covers_its_awaits(log: StageLog) -> None:
    @stage("outer")
    async def outer() -> None:
        await asyncio.gather(inner("a"), inner("b"))

    async def inner(name: str) -> None:
        with stage(name):
            await asyncio.sleep(0)
            with stage(name + name):
                await asyncio.sleep(0)

    asyncio.run(outer())

    assert sorted(noted(log)) == [("a", 1), ("aa", 2), ("b", 1), ("bb", 2), ("outer", 0)]
    assert not any(math.isnan(found.end_seconds) for found in log.stages())


def test_stage_in_threads_nests_by_thread(log: StageLog) -> None:
    def work() -> None:
        with stage("thread"):
            pass

    with stage("main"):
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()

    assert noted(log) == [("main", 0), ("thread", 0)]
    assert log.stages()[1].thread == "worker"


def test_stage_object_entered_twice_is_two_stages(log: StageLog) -> None:
    again = stage("again")
    with again, again:
        pass

    assert noted(log) == [("again", 0), ("again", 1)]
    assert not any(math.isnan(found.end_seconds) for found in log.stages())


def test_stage_of_a_generator_left_half_way_does_not_disturb_others(log: StageLog) -> None:
    def values() -> Iterator[int]:
        with stage("generator"):
            yield 1
            yield 2

    with stage("outer"):
        unfinished = values()
        next(unfinished)
    with stage("after"):
        pass

    assert ("after", 0) in noted(log)
    unfinished.close()


def test_log_that_is_full_keeps_the_newest_and_counts(no_nvtx: None) -> None:
    log = StageLog(lambda: 0.0, most=2)
    stages.subscribe(log)
    for number in range(5):
        with stage(str(number)):
            pass
    stages.unsubscribe(log)

    assert [name for name, _ in noted(log)] == ["3", "4"]
    assert log.dropped == 3
    assert log.described() == {"stages dropped": "3 older ones"}


class Writer:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def stage_begin(self, name: str) -> None:
        self.calls.append(f"begin {name}")

    def stage_end(self) -> None:
        self.calls.append("end")


def test_log_with_a_writer_tells_it_but_not_in_a_forked_child(
    no_nvtx: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, edges = Writer(), []
    log = StageLog(lambda: 0.0, writer=writer, edge=lambda: edges.append(1))
    stages.subscribe(log)
    with stage("a"):
        pass
    with stage("b"), monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with stage("of the child"):
            pass
        innermost = stages._innermost.get()
        assert innermost is not None
        innermost.owner.__exit__(None, None, None)
    stages.unsubscribe(log)

    assert writer.calls == ["begin a", "end", "begin b"]
    assert len(edges) == 3
    assert [noted.name for noted in log.stages()] == ["a", "b"]


def test_stage_with_nvtx_begins_and_ends_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    fake = types.ModuleType("nvtx")
    fake.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    fake.start_range = lambda message, domain: calls.append((message, domain)) or 5  # type: ignore[attr-defined]
    fake.end_range = calls.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    stages._nvtx.cache_clear()
    with stage("etl"):
        pass
    stages._nvtx.cache_clear()

    assert calls == [("etl", "rmm_uvm"), 5]


def test_stage_with_a_broken_nvtx_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.ModuleType("nvtx")
    fake.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    stages._nvtx.cache_clear()
    with stage("etl"):
        pass
    stages._nvtx.cache_clear()


def test_stage_without_nvtx_has_no_range(no_nvtx: None) -> None:
    assert stages._nvtx() is None


def test_stage_that_is_only_called_warns_of_that_line() -> None:
    with pytest.warns(NotEnteredWarning, match=r"write `with rmm_uvm.stage\('etl'\):`") as caught:
        rmm_uvm.stage("etl")
    assert [one.filename for one in caught] == [__file__]
    assert 'rmm_uvm.stage("etl")' in linecache.getline(__file__, caught[0].lineno)


def test_stage_that_is_all_that_a_thread_does_warns_too() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _thread.start_new_thread(rmm_uvm.stage, ("etl",))  # nobody calls it
        end = time.monotonic() + 10
        while not len(caught) and time.monotonic() < end:
            time.sleep(0.01)
    assert [one.category for one in caught] == [NotEnteredWarning]


@pytest.mark.filterwarnings("error")
def test_stage_that_was_entered_or_decorates_warns_of_nothing() -> None:
    with stage("etl"):
        pass
    stage("etl")(int)
    with pytest.raises(ConfigurationError):
        stage("")
    gc.collect()
