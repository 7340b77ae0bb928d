# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the machine has none of, the operation is done or undone, and works again.

Of each there is nothing at first, then a little more, until nothing comes otherwise any more.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from rmm_uvm.errors import UvmError

from .harness import Operation
from .installing import INSTALLING, WITHOUT_DRIVER
from .levels import RESOURCES, mistakes
from .operations import OPERATIONS
from .tools import ASKING, OF_FILES
from .world import World

BY_NAME = {
    operation.name: operation
    for operation in [*WITHOUT_DRIVER, *OF_FILES, *INSTALLING, *ASKING, *OPERATIONS]
}


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
