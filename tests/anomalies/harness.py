# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Does an operation while something fails, and holds what comes of it against what may come.

Either it is done, and somebody is told what went wrong; or it raises an error of ours or of RMM's,
and everything is as before. No contents change, and tried again it works.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rmm_uvm.errors import UvmError

from ..named_threads import PATIENCE_SECONDS
from .use import Used
from .world import State, World, device_with


@dataclass(frozen=True)
class Operation:
    """Something that a program asks for.

    Parameters
    ----------
    name : str
        For the report of a test.
    arrange : callable
        Brings a world to the state before; returns what the operation is about.
    act : callable
        Does it, and returns what it gave.
    reasons : callable
        Returns what is told of calls that failed while it was done all the same; empty for nothing.
    quiet : collection of str
        Calls of the driver of whose failure nobody is told.
    clears : bool
        Whether what `arrange` made may be gone where `act` raises, as its documentation says.
    otherwise : collection of str
        Fields of a state that depend on how it is done, where a call failed.
    shows : callable
        Returns of what it gave that which is the same each time.
    threaded : bool
        Whether it begins threads of Python.
    features : mapping
        What its device has that not every device has.
    undo : callable
        Takes back what `act` did, so that it can be done again.
    end : callable
        Takes back what `arrange` did; what only they hold goes by itself.
    """

    name: str
    arrange: Callable[[World], Any]
    act: Callable[[World, Any], Any]
    reasons: Callable[[World, Any, Any], object] = lambda _world, _subject, _result: ""
    undo: Callable[[World, Any, Any], object] = lambda _world, _subject, _result: None
    end: Callable[[World, Any], object] = lambda _world, _subject: None
    quiet: Collection[str] = ()
    clears: bool = False
    otherwise: Collection[str] = ()
    shows: Callable[[World, Any, Any], object] = lambda _world, _subject, _result: None
    threaded: bool = False
    features: Mapping[str, Any] = field(default_factory=dict)

    def world(self, folder: Path) -> World:
        """Return a world of its own to do it in."""
        return World(folder, device_with(self.features))

    def missed(self, after: State, found: State, empty: State) -> str:
        """Return in words what is not as after it, where it is done."""
        by_way = {name: getattr(found, name) for name in self.otherwise}
        return _differences(replace(after, **by_way), found, empty, _MAY_LACK)


@dataclass
class Outcome:
    """What came of an operation while something failed.

    Parameters
    ----------
    met : bool
        Whether it was: a call of the driver that failed, or else that anything came otherwise.
    error : BaseException or None
        What was raised.
    told : str
        What was said, where it was done all the same.
    wrong : list of str
        What should not have come.
    """

    met: bool
    error: BaseException | None
    told: str
    wrong: list[str]


# What a monitor or a board that could not be had leaves out, and a neighbour that is left alone.
_MAY_LACK = ("claimed", "threads", "files", "places")
# A table of leases is made for the first export or opening, and kept.
_MAY_COME = ("files",)
Fault = Callable[[World], AbstractContextManager[Callable[[], bool | None]]]
"""Lets something fail meanwhile; gives what tells, afterwards, whether it was met, if that does."""


def driver_call(call: str, code: str, skip: int = 0, times: int = 1) -> Fault:
    """Let a call of the driver fail: after `skip` others, and so many of them."""

    @contextmanager
    def failing(world: World) -> Iterator[Callable[[], bool]]:
        world.device.fail_call(call, code, skip=skip)
        for _ in range(times - 1):
            world.device.fail_call(call, code)
        left: list[int] = []
        try:
            yield lambda: left[0] < times
        finally:
            left.append(world.device.cancel_failures())

    return failing


@dataclass(frozen=True)
class Course:
    """What there is before an operation is arranged, before it and after it: nothing fails."""

    empty: State
    before: State
    after: State
    shown: object


_used: dict[str, Used] = {}


def used_by(operation: Operation, folder: Path) -> Used:
    """Return what an operation uses, seen when it is done for the first time."""
    if operation.name not in _used:  # what it imports may begin threads, which stay
        _used[operation.name] = used = Used()
        modules = len(sys.modules)
        _course(operation, folder, used)
        if len(sys.modules) > modules:  # they stay: not to be looked through at every collection
            gc.collect()
            gc.freeze()
    return _used[operation.name]


def without_failure(operation: Operation, folder: Path) -> Course:
    """Return the course of an operation where nothing fails."""
    used_by(operation, folder)
    return _course(operation, folder)


def _course(operation: Operation, folder: Path, used: Used | None = None) -> Course:
    world = operation.world(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = world.state()
        subject = operation.arrange(world)
        before = world.state()
        with used or nullcontext():
            result = operation.act(world, subject)
        if used is not None:
            used.add(result)
        after = world.state()
        shown = operation.shows(world, subject, result)
        assert world.changed() == []
        operation.undo(world, subject, result)
        del result
        operation.end(world, subject)
    return Course(empty, before, after, shown)


def tried(
    operation: Operation,
    fault: Fault,
    folder: Path,
    course: Course,
    *,
    names: Collection[str],
    quiet: bool = False,
) -> Outcome:
    """Do an operation while something fails, then again; say what is wrong about it.

    Parameters
    ----------
    course : Course
        That of the operation where nothing fails.
    names : collection of str
        What failed, in words: what is told has one of them.
    quiet : bool
        Whether nobody has to be told, where it is done.
    """
    after = course.after
    world = operation.world(folder)
    wrong: list[str] = []
    told = ""
    error: BaseException | None = None
    empty = world.state(course.empty.threads)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        subject = operation.arrange(world)
        before = world.state(course.before.threads)
        warned.clear()
        result = None
        with fault(world) as was_met:
            try:
                result = operation.act(world, subject)
            except Exception as raised:
                error = raised
                _clear(raised)
        known = was_met()
        met = error is not None if known is None else known
        if error is None:
            told = _told(operation, world, subject, result, warned)
            until = time.monotonic() + PATIENCE_SECONDS
            # A call of a thread beside may have failed this moment: it tells when it has the lock.
            while met and not told and not quiet and time.monotonic() < until:
                time.sleep(0.001)
                told = _told(operation, world, subject, result, warned)
            found = world.state(after.threads)
            otherwise = _differences(after, found, after, ())
            if (shown := operation.shows(world, subject, result)) != course.shown:
                otherwise += f" it gives {shown!r}, not {course.shown!r}"
            if known is None:
                met = bool(told or otherwise)
            if met and not told and not quiet:
                wrong.append(f"done, and nobody is told what failed{_as_for(otherwise)}")
            elif met and told and not any(name in told for name in names):
                wrong.append(f"told is not what failed: {told!r}")
            elif not met and (told or otherwise):
                wrong.append(f"nothing failed, and yet: {told!r} {otherwise}")
            if differ := operation.missed(after, found, empty):
                wrong.append(f"done, but {differ}")
            operation.undo(world, subject, result)
        else:
            wrong += _mistakes_of(error, names, met=met)
            now = world.state(before.threads)
            differ = _differences(before, now, after, _MAY_COME)
            if differ and operation.clears:  # then threads that end get their time once more
                left = _differences(empty, world.state(empty.threads), after, ())
                differ = left and f"{differ}; against nothing at all {left}"
            if differ:
                wrong.append(f"raised, and {differ}")
        wrong += [f"buffer {address:#x} changed" for address in world.changed()]
        del result
        if known is not False or wrong:  # else it was done as it is again
            try:
                again = operation.act(world, subject)
            except Exception as raised:
                wrong.append(f"tried again, it raises {raised!r}")
            else:
                if (shown := operation.shows(world, subject, again)) != course.shown:
                    wrong.append(f"done again, it gives {shown!r}, not {course.shown!r}")
                if differ := operation.missed(after, world.state(after.threads), empty):
                    wrong.append(f"done again, but {differ}")
                operation.undo(world, subject, again)
                del again
        wrong += [f"buffer {address:#x} changed at last" for address in world.changed()]
        operation.end(world, subject)
        del subject
        if differ := _differences(empty, world.state(empty.threads), empty, ()):
            wrong.append(f"left: {differ}")
    return Outcome(met, error, told, wrong)


def _told(
    operation: Operation,
    world: World,
    subject: Any,
    result: Any,
    warned: list[warnings.WarningMessage],
) -> str:
    """Return what was said of what failed, where an operation was done all the same."""
    reasons = f"{operation.reasons(world, subject, result) or ''}"
    return reasons + "".join(str(warning.message) for warning in warned)


def _clear(error: BaseException | None) -> None:
    """Let go of what the functions had that an error, and those before it, came through."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _as_for(otherwise: str) -> str:
    return f": {otherwise}" if otherwise else ""


def _mistakes_of(error: BaseException, names: Collection[str], *, met: bool) -> list[str]:
    wrong = []
    if not met:
        wrong.append(f"raised {error!r} where nothing failed")
    # What RMM's resources raise is a MemoryError, but where memory is not what is missing.
    of_capture = isinstance(error, RuntimeError) and "during the capture" in str(error)
    if not isinstance(error, UvmError | MemoryError) and not of_capture:
        wrong.append(f"raised what is neither ours nor RMM's: {error!r}")
    if not any(name in str(error) for name in names):
        wrong.append(f"a message that does not say what failed: {error!r}")
    return wrong


def _differences(wanted: State, found: State, other: State, either: Collection[str]) -> str:
    """Return in words what is not as wanted; some figures may lie between two states."""
    wrong = []
    for name, value in vars(wanted).items():
        there = getattr(found, name)
        least, most = sorted((value, getattr(other, name)))
        if there != value and not (name in either and least <= there <= most):
            wrong.append(f"{name} is {there}, not {value}")
    return ", ".join(wrong)
