# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whichever call of the driver fails: done or undone, somebody is told, and again it works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmm_uvm
from rmm_uvm._lib.monitor import Sampler, Slot
from rmm_uvm.errors import DriverError, UvmError

from . import harness
from . import world as worlds
from .harness import Course, Operation, driver_call, tried, without_failure
from .installing import INSTALLING
from .operations import OPERATIONS, pool
from .tools import ASKING
from .world import SIMULATED, World

# Each with an operation that meets it: a call that none of them meets would never fail.
# Not `free_managed`: what a driver does not take back stays with it, and no program can help that;
# the books are held against it in cpp/tests/mr/failure_tests.cpp.
CALLS = {
    "memory": "reinitialize",
    "unmanaged_bytes": "follow others (auto)",
    "allocate_managed": "reinitialize",
    "allocate_device": "ipc_pool",
    "prefetch": "touch (budget)",
    "migrate": "touch (direct)",
    "discard": "drop what is dead (budget)",
    "discard_and_prefetch": "grow (budget)",
    "advise": "advise (no budget)",
    "not_on_host": "use unseen (budget)",
    "order": "drop what is dead (budget)",
    "mark": "touch (budget)",
    "own_stream": "touch (budget)",
    "graph_of": "allocate in a capture (budget)",
    "synchronize": "drop what is dead (budget)",
    "neighbor_memory": "touch (neighbour)",
    "read_neighbor_load": "overfill (neighbour)",
    "measure_links": "managed_pool (in place)",
    "find_memory": "ipc_pool",
    "ipc_memory_handle": "export",
    "make_ipc_event": "export",
    "record": "export",
    "open_neighbor": "managed_pool (neighbour)",
    "available": "monitor of causes and faults",  # whether the counters are
    "request_faults": "monitor of causes and faults",
    "start": "monitor of causes and faults",  # of the events with causes
    "open_moves": "monitor of lines",
}
# Those of transfers fail in tests/unit/_lib/test_transfers.py, and in the lifetimes of IPC handles.
OF_TRANSFERS = {
    *("copy", "take_staging", "wait_for", "done", "wait", "make_wait"),
    *("open_ipc_memory", "close_ipc_memory", "open_ipc_event"),
}
# It fails in tests/unit/watch/test_moves_in_windows.py: a thread calls it once pages move.
OF_WINDOWS = {"begin"}
OF_PROGRAMS = {
    "touch",
    "cpu_touch",
    "compute",
}  # what kernels and the host do, no operation of ours
# What is told of a call that has no message of its own.
SAID = {"allocate_device": SIMULATED, "neighbor_memory": "measuring links to device"}
BY_NAME = {operation.name: operation for operation in [*INSTALLING, *ASKING, *OPERATIONS]}
# What a driver that has no figures of loads answers, as the simulated one does without a fault.
_NO_FAILURES = [("read_neighbor_load", "not_supported")]
# A budget that follows others goes by free memory then: its statistics tell.
_NO_FAILURES += [("unmanaged_bytes", "not_supported")]
# Without counters a pool goes by free memory: why, the driver's `counters_available` tells.
_NO_FAILURES += [("available", code) for code in ("out_of_memory", "not_supported", "driver_error")]
_ALL = 100  # more than an operation makes


def meets(operation: Operation, call: str, folder: Path) -> bool:
    """Return whether an operation makes a call of the driver."""
    course = without_failure(operation, folder)
    fault = driver_call(call, "driver_error")
    return tried(operation, fault, folder, course, names=[call], quiet=True).met


def failures_of(calls_made: int) -> Iterator[tuple[str, int, int]]:
    """Return how a call may fail: with what code, after how many others, and how many of them."""
    yield "out_of_memory", 0, 1
    yield "not_supported", 0, calls_made
    for number in range(calls_made):
        yield "driver_error", number, 1


def test_every_call_that_can_fail_is_met_here_or_where_it_is_told() -> None:
    with pytest.raises(ValueError, match="call must be") as refused:
        rmm_uvm.simulated_device("2MiB").fail_call("")
    known = set(re.findall(r"'(\w+)'", str(refused.value)))
    assert known == {*CALLS, *OF_TRANSFERS, *OF_WINDOWS, *OF_PROGRAMS, "free_managed"}


@pytest.mark.parametrize(("call", "name"), CALLS.items())
def test_call_that_may_fail_is_met_by_an_operation(call: str, name: str, tmp_path: Path) -> None:
    assert meets(BY_NAME[name], call, tmp_path)


def test_call_that_an_operation_does_not_make_is_not_met(tmp_path: Path) -> None:
    assert not meets(BY_NAME["touch (budget)"], "migrate", tmp_path)


def mistakes(operation: Operation, call: str, folder: Path, course: Course) -> list[str]:
    """Do an operation while a call of the driver fails, in each way; return what was wrong."""
    wrong = []
    for code, skip, times in failures_of(_ALL):
        outcome = tried(
            operation,
            driver_call(call, code, skip, times),
            folder,
            course,
            names=[call, SAID.get(call, call)],
            quiet=call in operation.quiet or (call, code) in _NO_FAILURES,
        )
        wrong += [f"{call} {skip}, {code}: {each}" for each in outcome.wrong]
        if not outcome.met:
            return wrong
    return [*wrong, f"{call}: {_ALL} of them, and there are more"]


@pytest.mark.parametrize("name", BY_NAME)
def test_operation_whose_driver_call_fails_is_done_or_undone(name: str, tmp_path: Path) -> None:
    course = without_failure(BY_NAME[name], tmp_path)
    for call in CALLS:
        assert mistakes(BY_NAME[name], call, tmp_path, course) == []


def test_operation_that_is_silent_and_keeps_memory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "PATIENCE_SECONDS", 0.1)
    # What keeps the test above honest: silence is seen, and memory that is left.
    lost: list[object] = []

    def lose(world: World, _subject: object) -> None:
        try:
            world.device.synchronize()
        except DriverError:
            lost.append(pool(world))

    operation = Operation("loses", lambda _world: None, lose)
    course = without_failure(operation, tmp_path)
    fault = driver_call("synchronize", "driver_error")
    outcome = tried(operation, fault, tmp_path, course, names=["synchronize"])
    lost.clear()
    assert outcome.met
    untold, wasted, *_ = outcome.wrong
    assert untold.startswith("done, and nobody is told what failed: managed_bytes is")
    assert wasted.startswith("done, but managed_bytes is")


def test_operation_that_keeps_a_thread_of_cpp_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Sampler] = []

    def keep(world: World, _subject: object) -> None:
        try:
            world.device.synchronize()
        except DriverError:
            kept.append(Sampler([Slot(0, world.device)], 10**12, 16))
            kept[0].start()
            raise

    operation = Operation("keeps", lambda _world: None, keep)
    course = without_failure(operation, tmp_path)
    fault = driver_call("synchronize", "driver_error")
    monkeypatch.setattr(worlds, "PATIENCE_SECONDS", 0.1)
    outcome = tried(operation, fault, tmp_path, course, names=["synchronize"])
    kept.pop().stop()
    assert any(each.startswith("raised, and threads is") for each in outcome.wrong)


def test_operation_whose_message_does_not_say_what_failed_is_found(tmp_path: Path) -> None:
    def fail(world: World, _subject: object) -> None:
        try:
            world.device.synchronize()
        except DriverError:
            raise UvmError("it did not work at all") from None

    operation = Operation("says nothing", lambda _world: None, fail)
    course = without_failure(operation, tmp_path)
    fault = driver_call("synchronize", "driver_error")
    outcome = tried(operation, fault, tmp_path, course, names=["synchronize"])
    assert outcome.wrong == [f"a message that does not say what failed: {outcome.error!r}"]
