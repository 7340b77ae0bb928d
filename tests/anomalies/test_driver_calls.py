# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whichever call of the driver fails: done or undone, somebody is told, and again it works."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmm_uvm.errors import DriverError

from .harness import Operation, driver_call, tried, without_failure
from .installing import INSTALLING
from .operations import OPERATIONS, pool
from .world import World

# Not `free_managed`: what a driver does not take back stays with it, and no program can help that;
# the books are held against it in cpp/tests/mr/failure_tests.cpp.
CALLS = (
    "memory",
    "allocate_managed",
    "allocate_device",
    "prefetch",
    "discard",
    "discard_and_prefetch",
    "advise",
    "order",
    "mark",
    "own_stream",
    "synchronize",
    "neighbor_memory",
    "read_neighbor_load",
    "measure_links",
    "find_memory",
    "ipc_memory_handle",
    "make_ipc_event",
    "record",
)
# What a driver that has no figures of loads answers, as the simulated one does without a fault.
_NO_FAILURES = (("read_neighbor_load", "not_supported"),)
_ALL = 100  # more than an operation makes
_SKIPS = (0, 1, 2, 3, 5, 8, 13, 21)


@pytest.mark.parametrize("operation", [*INSTALLING, *OPERATIONS], ids=lambda each: each.name)
def test_operation_whose_driver_call_fails_is_done_or_undone(
    operation: Operation, tmp_path: Path
) -> None:
    after = without_failure(operation, tmp_path)
    wrong = []
    once = [("driver_error", number, 1) for number in _SKIPS]
    failures = [("out_of_memory", 0, 1), ("not_supported", 0, _ALL), *once]
    for call in CALLS:
        for code, skip, times in failures:
            outcome = tried(
                operation,
                driver_call(call, code, skip, times),
                tmp_path,
                after,
                quiet=call in operation.quiet or (call, code) in _NO_FAILURES,
            )
            wrong += [f"{call} {skip}, {code}: {each}" for each in outcome.wrong]
            if not outcome.met:
                break
    assert wrong == []


def test_operation_that_is_silent_and_keeps_memory_is_found(tmp_path: Path) -> None:
    # What keeps the test above honest: silence is seen, and memory that is left.
    lost: list[object] = []

    def lose(world: World, _subject: object) -> None:
        try:
            world.device.synchronize()
        except DriverError:
            lost.append(pool(world))

    operation = Operation("loses", lambda _world: None, lose)
    after = without_failure(operation, tmp_path)
    outcome = tried(operation, driver_call("synchronize", "driver_error"), tmp_path, after)
    lost.clear()
    assert outcome.met
    untold, wasted, *_ = outcome.wrong
    assert untold == "done, and nobody is told what failed"
    assert wasted.startswith("done, but managed_bytes is")
