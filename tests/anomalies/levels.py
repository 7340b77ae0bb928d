# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Does an operation with nothing of a resource, then with a little more, until it has enough."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from .faults import addresses, descriptors, room, threads
from .harness import Fault, Operation, tried, without_failure
from .world import MIB, SIMULATED


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
