# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Named stretches of a program, noted by every monitor that runs then.

Covers `stage` and the list that each monitor keeps. Does not cover what is made of stages; see
`rmm_uvm.report`.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import importlib
import importlib.util
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rmm_uvm.errors import ConfigurationError, NotEnteredWarning
from rmm_uvm.recording.recorded import Stage
from rmm_uvm.support.messages import shown
from rmm_uvm.support.user_line import CodeLine, users_line

__all__ = ["StageLog", "stage", "subscribe", "unsubscribe"]

F = TypeVar("F", bound=Callable[..., Any])
_MOST_STAGES = 10_000


class _Noted:
    """One stage of one log while it lasts, and after."""

    __slots__ = ("begin_seconds", "depth", "end_seconds", "name", "thread")

    def __init__(self, name: str, begin_seconds: float, depth: int) -> None:
        self.name = name
        self.begin_seconds = begin_seconds
        self.end_seconds = float("nan")
        self.depth = depth
        self.thread = threading.current_thread().name


class StageWriter(Protocol):
    """The part of a trace that takes stages."""

    def stage_begin(self, name: str) -> None:
        """Note that a stage begins, on this thread."""

    def stage_end(self) -> None:
        """Note that the innermost one of this thread ends."""


class StageLog:
    """The stages that one monitor noted: the newest, at most `most`.

    Parameters
    ----------
    now_seconds : callable
        Time since the monitor began.
    most : int
        Stages kept; older ones are dropped and counted.
    writer : StageWriter or None
        Is told too.
    edge : callable or None
        Called before a begin or an end is noted: the monitor takes a sample there, so that what
        moves in a stage is not shared out with its neighbours.

    Notes
    -----
    Thread-safe: each operation is one call of a deque, which Python makes atomic.
    """

    def __init__(
        self,
        now_seconds: Callable[[], float],
        most: int = _MOST_STAGES,
        writer: StageWriter | None = None,
        edge: Callable[[], object] | None = None,
    ) -> None:
        self._now_seconds = now_seconds
        self._edge = edge
        self._noted: collections.deque[_Noted] = collections.deque(maxlen=most)
        self._begun = 0
        self._writer = writer
        self._pid = os.getpid()

    @property
    def here(self) -> bool:
        """Whether this is the process of the monitor, and not a forked child of it."""
        return os.getpid() == self._pid

    def begin(self, name: str, depth: int) -> _Noted:
        """Note that a stage begins."""
        if self._edge is not None:
            self._edge()
        noted = _Noted(name, self._now_seconds(), depth)
        self._noted.append(noted)
        self._begun += 1
        if self._writer is not None:
            self._writer.stage_begin(name)
        return noted

    def end(self, noted: _Noted) -> None:
        """Note that it ended. In a forked child nobody else is told."""
        here = self.here
        if here and self._edge is not None:
            self._edge()
        noted.end_seconds = self._now_seconds()
        if here and self._writer is not None:
            self._writer.stage_end()

    @property
    def dropped(self) -> int:
        """Stages that are not kept any more."""
        return max(self._begun - len(self._noted), 0)

    def described(self) -> dict[str, str]:
        """Return what a reader of the recording must know of it."""
        return {"stages dropped": f"{self.dropped} older ones"} if self.dropped else {}

    def stages(self) -> tuple[Stage, ...]:
        """Return what is kept, in order of the begin."""
        kept = sorted(self._noted.copy(), key=lambda noted: noted.begin_seconds)
        return tuple(
            Stage(noted.name, noted.begin_seconds, noted.end_seconds, noted.depth, noted.thread)
            for noted in kept
        )


class _Active:
    """A stage that the current context is in; they form a list, innermost first."""

    __slots__ = ("depth", "noted", "outer", "owner", "range")

    def __init__(
        self,
        owner: stage,
        outer: _Active | None,
        noted: tuple[tuple[StageLog, _Noted], ...],
        nvtx_range: Any,
    ) -> None:
        self.owner = owner
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.noted = noted
        self.range = nvtx_range


# Per thread and per asyncio task: a task sees the stages around it, and no other task's.
_innermost: contextvars.ContextVar[_Active | None] = contextvars.ContextVar(
    "rmm_uvm_stage", default=None
)
# Logs of running monitors. No lock: garbage collection may stop a monitor in the middle of
# anything, also of starting another. Each use is one call of the dict, which Python makes atomic.
_logs: dict[int, StageLog] = {}


def subscribe(log: StageLog) -> None:
    """Let a log be told of every stage that begins from now on."""
    _logs[id(log)] = log


def unsubscribe(log: StageLog) -> None:
    """Let a log be told of no more stages; those that it saw begin still end in it."""
    _logs.pop(id(log), None)


class stage:  # noqa: N801 - used as a function: with rmm_uvm.stage("etl"):
    """Name a stretch of a program: a context manager and a decorator.

    The stretch is a ``with`` block or a function: a call by itself names nothing, and warns.

    Every running monitor notes when it begins and ends, and reports show traffic by stage. Traces
    have it too, and so have NVIDIA's profilers if the package nvtx is installed. Stages nest.

    Parameters
    ----------
    name : str
        Shown to people; not empty.

    Raises
    ------
    ConfigurationError
        If the name is no text, or empty.

    Warns
    -----
    NotEnteredWarning
        It goes without having been entered, or put before a function.

    Notes
    -----
    Thread-safe, and safe in coroutines: each thread and each asyncio task has its own nesting.
    Costs about two microseconds when nothing watches, and up to some ten from an installed program.

    Examples
    --------
    >>> import rmm_uvm
    >>> with rmm_uvm.monitor(driver="simulated:64MiB", publish=False) as m:
    ...     with rmm_uvm.stage("etl"):
    ...         pass
    >>> [stage.name for stage in m.recording().stages]
    ['etl']
    """

    __slots__ = ("_unused", "name")

    def __init__(self, name: str) -> None:
        self._unused: CodeLine | None = None
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"stage({shown(name)}): give it a name, such as 'etl'")
        self.name = name
        self._unused = users_line()

    def __del__(self) -> None:
        if self._unused is not None:
            self._unused.warn(
                f"rmm_uvm.stage({self.name!r}) was never entered, so nothing has that name: "
                f"write `with rmm_uvm.stage({self.name!r}):`, or put it before a function",
                NotEnteredWarning,
            )

    def __enter__(self) -> stage:
        self._unused = None
        outer = _innermost.get()
        nvtx = _nvtx()
        active = _Active(self, outer, (), None if nvtx is None else _begin_range(nvtx, self.name))
        if _logs:
            active.noted = tuple(
                (log, log.begin(self.name, active.depth))
                for log in list(_logs.values())
                if log.here
            )
        _innermost.set(active)
        return self

    def __exit__(self, *_: object) -> None:
        active = _innermost.get()
        while active is not None and active.owner is not self:
            active = active.outer  # one inside was never left: a generator that nobody finished
        if active is None:  # left in another context than the one that entered it
            return
        _innermost.set(active.outer)
        for log, noted in active.noted:
            log.end(noted)
        if active.range is not None:
            _end_range(active.range)

    def __call__(self, function: F) -> F:
        """Return the function, run in this stage each time it is called; coroutines too."""
        self._unused = None
        name = self.name
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                with stage(name):
                    return await function(*args, **kwargs)

            return run_async  # type: ignore[return-value]

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with stage(name):
                return function(*args, **kwargs)

        return run  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"rmm_uvm.stage({self.name!r})"


@functools.cache
def _nvtx() -> Any:
    """Return the module nvtx, or None; looked for once."""
    try:
        if importlib.util.find_spec("nvtx") is None:
            return None
        return importlib.import_module("nvtx")
    except Exception:
        return None


def _begin_range(nvtx: Any, name: str) -> Any:
    """Begin a range that may end on another thread, as a coroutine may."""
    try:
        return nvtx, nvtx.start_range(message=name, domain="rmm_uvm")
    except Exception:
        return None


def _end_range(begun: Any) -> None:
    nvtx, number = begun
    try:
        nvtx.end_range(number)
    except Exception:
        return
