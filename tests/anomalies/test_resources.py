# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the machine has none of, the operation is done or undone, and works again.

Of each there is nothing at first, then a little more, until nothing comes otherwise any more.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from rmm_uvm.errors import UvmError

from .faults import addresses, descriptors, room, threads
from .harness import Fault, Operation, tried, without_failure
from .installing import INSTALLING, WITHOUT_DRIVER
from .operations import OPERATIONS
from .world import MIB, SIMULATED, World

BY_NAME = {operation.name: operation for operation in [*WITHOUT_DRIVER, *INSTALLING, *OPERATIONS]}


class Resource(NamedTuple):
    """Something that can be used up.

    Attributes
    ----------
    left : callable
        Makes the fault that leaves so much of it.
    levels : sequence of int
        So much, ascending: with the last of them every operation has enough.
    names : tuple of str
        What a message says of it.
    """

    left: Callable[[int], Fault]
    levels: Sequence[int]
    names: tuple[str, ...]


RESOURCES = {
    "descriptors": Resource(descriptors, range(12), (os.strerror(errno.EMFILE), SIMULATED)),
    "room": Resource(
        room,
        [0, 1, 100, 4096, 20_000, 1 << 20, 8 << 20, 16 << 20],
        (os.strerror(errno.EFBIG), SIMULATED),
    ),
    "threads": Resource(threads, range(9), ("thread",)),
    "addresses": Resource(
        lambda spare_mib: addresses(spare_mib * MIB),
        [1, 9, 17, 33, 65, 129],
        (os.strerror(errno.ENOMEM), "bytes", "addresses"),
    ),
}
# Where a thread can begin and has no memory else, Python 3.11 waits for it without an end: here a
# thread has no stack, or as much memory as it wants.
OF_THREADS = [1, 1025, 1537]
ENOUGH = 2  # so many levels, one after the other, with which nothing comes otherwise
# What is told of a link that cannot be measured: the driver's own answer.
_MEASURED = ("allocate_managed answered out of memory",)
SAID = {"topology": _MEASURED, "managed_pool (in place)": _MEASURED}


def levels_of(operation: Operation, kind: str) -> Sequence[int]:
    """Return of how much to leave an operation, one after the other."""
    if kind == "addresses" and operation.threaded:
        return OF_THREADS
    return RESOURCES[kind].levels


def mistakes(operation: Operation, kind: str, folder: Path) -> list[str]:
    """Do an operation with more and more of a resource; return what was wrong about it."""
    course = without_failure(operation, folder)  # also imports what it needs
    used_up = RESOURCES[kind]
    names = (*used_up.names, *SAID.get(operation.name, ()))
    wrong: list[str] = []
    untouched = 0
    for level in levels_of(operation, kind):
        outcome = tried(operation, used_up.left(level), folder, course, names=names)
        wrong += [f"{level} of {kind}: {each}" for each in outcome.wrong]
        untouched = 0 if outcome.met else untouched + 1
        if untouched == ENOUGH:
            return wrong
    return [*wrong, f"not even with {level} of {kind} it is done as it should be: {outcome}"]


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("kind", RESOURCES)
def test_operation_where_something_is_used_up_is_done_or_undone(
    name: str, kind: str, tmp_path: Path
) -> None:
    assert mistakes(BY_NAME[name], kind, tmp_path) == []


def opening(most: int) -> Callable[[World, object], object]:
    """Return what opens so many files, or fewer, and returns how many."""

    def act(_world: World, _none: object) -> int:
        with ExitStack() as opened:
            for made in range(most):
                try:
                    opened.enter_context(Path(os.devnull).open())
                except OSError:
                    return made
        return most

    return act


def test_operation_that_does_less_and_says_nothing_is_found(tmp_path: Path) -> None:
    # What keeps the test above honest: what comes otherwise has to be told.
    operation = Operation(
        "opens what it can",
        lambda _world: None,
        opening(3),
        shows=lambda _world, _none, made: made,
    )
    silent = [
        f"{level} of descriptors: done, and nobody is told what failed:  it gives {level}, not 3"
        for level in range(3)
    ]
    assert mistakes(operation, "descriptors", tmp_path) == silent


def test_operation_that_never_has_enough_is_found(tmp_path: Path) -> None:
    operation = Operation(
        "opens without an end",
        lambda _world: None,
        opening(100),
        lambda _world, _none, made: os.strerror(errno.EMFILE) if made < 100 else "",
    )
    (wrong,) = mistakes(operation, "descriptors", tmp_path)
    assert wrong.startswith("not even with 11 of descriptors it is done as it should be")


def test_operation_that_raises_whatever_is_left_is_found(tmp_path: Path) -> None:
    usual, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    def refuse(_world: World, _none: object) -> None:
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < usual:
            raise UvmError(os.strerror(errno.EMFILE))

    operation = Operation("refuses", lambda _world: None, refuse)
    (wrong,) = mistakes(operation, "descriptors", tmp_path)
    assert wrong.startswith("not even with 11 of descriptors it is done as it should be")
