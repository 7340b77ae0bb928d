# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How findings reach people: as warnings, exceptions, log records, or by a call.

A warning is shown by the main thread, at the line of user code that runs there, and in a notebook
under a running cell: never by the thread that noticed. Where no user code runs there any more, the
warning names the line that ran when it was found, or the one that began to watch. Does not cover
what is found; see `rmm_uvm.watch.judging.policy`.

Listeners are of the process and not of a monitor, since programs start others: a Dask worker hears
of findings also after ``client.run(rmm_uvm.reinitialize)``. Where several monitors watch the same
device one of them speaks: ``rmm-uvm run`` watches a program that may call `rmm_uvm.reinitialize`,
which starts a monitor, too.
"""

from __future__ import annotations

import collections
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, cast

from rmm_uvm._lib.own_threads import usual_signals
from rmm_uvm._lib.pending import call_in_main_thread
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.recording.finding import WARNING_OF, Finding
from rmm_uvm.support.messages import shown
from rmm_uvm.support.user_line import CodeLine, line_here, place_of, users_line, warn_user

__all__ = ["Delivery", "Listener", "OnFinding", "checked_on_finding", "subscribe", "tell"]

Listener: TypeAlias = Callable[[Finding], object]
"""Called with each finding by the thread that noticed; has to return soon."""

# No lock: a dictionary's own steps are whole, and a fork may come at any time.
_listeners: dict[object, Listener] = {}


def subscribe(listener: Listener) -> Callable[[], None]:
    """Let a function hear of every finding in this process that is not kept silent.

    Those of monitors with ``on_finding=None`` are kept silent, and where two monitors watch a
    device only one of them speaks.

    Parameters
    ----------
    listener : callable
        Called with the `Finding`, by the thread that noticed. What it raises is logged.

    Returns
    -------
    callable
        Ends it; may be called twice, and from any thread.

    Notes
    -----
    Thread-safe. Threads of a monitor do not outlive a fork, so a child hears of nothing.

    Examples
    --------
    >>> heard = []
    >>> unsubscribe = subscribe(heard.append)
    >>> tell(Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use fewer"))
    >>> unsubscribe()
    >>> tell(Finding("eviction", 0, 2.0, 2.0, 1.0, "pages leave", "use fewer"))
    >>> len(heard)
    1
    """
    place = object()
    _listeners[place] = listener

    def unsubscribe() -> None:
        _listeners.pop(place, None)

    return unsubscribe


def tell(finding: Finding) -> None:
    """Hand a finding to all that listen."""
    for listener in list(_listeners.values()):
        try:
            listener(finding)
        except Exception:
            logging.getLogger("rmm_uvm.watch").exception("a listener failed for: %s", finding)


OnFinding: TypeAlias = Literal["warn", "raise", "log"] | Callable[[Finding], object] | None
"""What to do about a finding; see `Delivery`."""


def checked_on_finding(on_finding: object) -> OnFinding:
    """Return what is to be done about a finding; `ConfigurationError` if it is nothing of these."""
    if on_finding not in ("warn", "raise", "log", None) and not callable(on_finding):
        raise ConfigurationError(
            f"on_finding={shown(on_finding)}: use 'warn', 'raise', 'log', a callable or None"
        )
    return cast(OnFinding, on_finding)


# So often an exception is put off where it would break something; see `Place.steady`.
_MOST_DELAYS = 10


class Delivery:
    """Hands findings on. Every method is thread-safe and returns at once.

    Parameters
    ----------
    on_finding : "warn", "raise", "log", callable or None
        - "warn": a Python warning in the main thread. In IPython and Jupyter it appears under the
          running cell, or else at the end of the next one.
        - "raise": the class of the warning is raised in the main thread, in the code that runs.
        - "log": a record of the logger ``rmm_uvm.watch`` only.
        - callable: called with the `Finding` by the thread that noticed; what it raises is logged.
        - None: nothing.
    others_warn : callable, optional
        Whether another monitor warns of a device now: what is found there is not handed on then.

    Raises
    ------
    ConfigurationError
        `on_finding` is none of these.

    Notes
    -----
    Except with None, a finding is also told to whoever listens (`subscribe`),
    and logged as a warning by ``rmm_uvm.watch`` if the program set logging up. The main thread
    shows a warning when it next runs Python code: after a long call into C, not during it. What it
    never came to is shown by `close`. A forked child drops what its parent has not shown yet.

    Examples
    --------
    >>> found = []
    >>> delivery = Delivery(found.append)
    >>> delivery.deliver([Finding("eviction", 0, 1.0, 2.0, 1.0, "pages leave", "use fewer")])
    >>> found[0].kind
    'eviction'
    >>> delivery.close()
    """

    def __init__(
        self,
        on_finding: OnFinding = "warn",
        others_warn: Callable[[int], bool] = lambda device_id: False,
    ) -> None:
        self._on_finding = checked_on_finding(on_finding)
        self._others_warn = others_warn
        self._in_main_thread = on_finding in ("warn", "raise")
        # No lock: a fork may come at any time, and a deque needs none.
        self._waiting: collections.deque[tuple[Finding, CodeLine]] = collections.deque()
        self._called = False
        self._delays = 0
        self._closed = False
        self._pid = os.getpid()
        self._about = line_here()
        self._look: Callable[[], object] | None = None
        self._shell = _ipython() if self._in_main_thread else None
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self._after_cell)

    def look_after_cells(self, look: Callable[[], object]) -> None:
        """Call `look` where a cell of a notebook ends, before what waits is shown.

        What is found of a cell that took less time than lies between two looks is shown under that
        cell, not under the next one.
        """
        self._look = look

    def deliver(self, findings: Iterable[Finding]) -> None:
        """Hand on what nobody else says at that moment; all of it stays recorded."""
        for finding in findings:
            if not self._others_warn(finding.device_id):
                with usual_signals():  # handlers of logs, listeners and callbacks are the program's
                    self._hand_on(finding)
        self.retry()

    def _hand_on(self, finding: Finding) -> None:
        self._log(finding)
        if self._on_finding is not None:
            tell(finding)
        if self._in_main_thread:
            self._waiting.append((finding, users_line(self._about)))
        elif callable(self._on_finding):
            try:
                self._on_finding(finding)
            except Exception:
                _logger().exception("on_finding failed for: %s", finding)

    def retry(self) -> None:
        """Ask the main thread again for what it has not shown; costs nothing if there is none."""
        if self._waiting and not self._called and not self._closed:
            self._called = True  # before the call, which may come at once
            if not call_in_main_thread(self._run):
                self._called = False

    def close(self) -> None:
        """Show what was not shown yet, if this is the main thread; may be called twice.

        Also with "raise" these are warnings: there is nothing left to be stopped.

        Raises
        ------
        FindingWarning
            If Python's warning filter makes errors of warnings. Everything is closed by then.
        """
        if self._closed:
            return
        in_main_thread = threading.current_thread() is threading.main_thread()
        if not in_main_thread:
            self.retry()  # it may still come by
        self._closed = True
        if self._shell is not None:
            self._shell.events.unregister("post_run_cell", self._after_cell)
            self._shell = None
        if in_main_thread:
            self._warn_of_all()

    def _run(self) -> None:
        """Show what waits; the main thread calls this between two bytecodes of anything."""
        self._called = False
        place = place_of(sys._getframe(1))
        if self._shell is not None and not place.in_cell:
            return  # nothing would tell a notebook where to show it: the next cell does
        while (found := self._next()) is not None:
            try:
                self._show(*found)
            except Exception as error:
                self._delays += 1
                if place.steady:
                    raise
                if self._delays <= _MOST_DELAYS:
                    self._waiting.appendleft(found)
                    return
                if not _told_event_loop(error):
                    raise
            self._delays = 0

    def _after_cell(self, result: object = None) -> None:
        """Show what waits, under the cell that just ran, whose first line stands for it."""
        if self._look is not None:
            self._look()
        number = getattr(result, "execution_count", None)
        self._warn_of_all(CodeLine(f"In[{number or ''}]", 1, "__main__"))

    def _warn_of_all(self, line: CodeLine | None = None) -> None:
        refused: Exception | None = None
        while (found := self._next()) is not None:
            try:
                finding, then = found
                (line or users_line(then)).warn(str(finding), WARNING_OF[finding.kind])
            except Exception as error:
                refused = refused or error
        if refused is not None:
            raise refused

    def _next(self) -> tuple[Finding, CodeLine] | None:
        if os.getpid() != self._pid:
            self._waiting.clear()
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def _show(self, finding: Finding, then: CodeLine) -> None:
        category = WARNING_OF[finding.kind]
        if self._on_finding == "raise":
            raise category(str(finding))
        warn_user(str(finding), category, then)

    def _log(self, finding: Finding) -> None:
        if self._on_finding is None:
            return
        logger = _logger()
        # Without handlers logging prints to stderr itself: the same line twice.
        if self._on_finding == "log" or logger.hasHandlers():
            logger.warning("%s", finding)


def _logger() -> logging.Logger:
    return logging.getLogger("rmm_uvm.watch")


def _told_event_loop(error: Exception) -> bool:
    """Hand an exception to the event loop that runs in this thread; return whether there is one."""
    asyncio = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio._get_running_loop()
    if loop is None:
        return False
    loop.call_exception_handler({"message": str(error), "exception": error})
    return True


def _ipython() -> Any:
    """Return the shell of IPython or Jupyter that this process runs in, or None."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
