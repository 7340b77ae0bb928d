# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeping account of traffic by lines of the program while a monitor runs.

Does not cover how a thread's line is read; see `rmm_uvm._lib.lines`.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.lines import LineAccount, MoveWindows
from rmm_uvm._lib.mr import UvmResourceAdaptor, begin_account, end_account
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.line_traffic import (
    CallPath,
    LineTraffic,
    LineWindows,
    MovedBytes,
    MovedObject,
    ProgramLine,
)
from rmm_uvm.support.process_lock import ProcessLock
from rmm_uvm.support.user_line import outermost_of_program, users_place
from rmm_uvm.watch.sampling import chain, replaced

__all__ = ["WatchedLines"]

_MOST_CHARACTERS = 80  # of a line's text: enough to know it by, and reports are passed on
_OWN_FRAME = ("<listcomp>", "<setcomp>", "<dictcomp>")  # before Python 3.12
_INNER = re.compile(r"(?:^|\.)(?:<locals>\.)?<(?:listcomp|setcomp|dictcomp|genexpr)>")
_NO_POOL = "lines are told of managed memory, of a pool of rmm_uvm or of RMM, and there was none"
_SIMULATED = "every byte that moved on the simulated device is known"
_BUDGET = "what the budget moved is known, and page faults as far as the budget found them"
_ASKED = "prefetches and hints count as asked for, whether or not it moved"
_UNKNOWN = "what the kernel driver evicts and page faults are not known without a budget"


class WatchedLines:
    """An account of traffic by line, for managed memory of RMM's resources on some devices.

    Parameters
    ----------
    drivers : mapping of int to UvmDriver or None
        By CUDA ordinal; None where a device cannot be reached.

    Notes
    -----
    Thread-safe. Keeps no pool alive.
    """

    def __init__(self, drivers: Mapping[int, UvmDriver | None]) -> None:
        self._drivers = dict(drivers)
        self._how = ""
        self._refused = ""
        self._lock = ProcessLock()
        self._windows: dict[int, MoveWindows] = {}
        self._no_windows: dict[int, str] = {}  # why a device has none
        self._seen: tuple[LineWindows | None, str] | None = None  # once it is closed
        self._account: LineAccount | None = None
        try:
            self._account = LineAccount()
        except AvailabilityError as error:
            self._refused = str(error)

    def begin(self) -> None:
        """Keep account from now on, until it is closed. Windows move memory to be tried out."""
        if self._account is None:
            return
        for device_id, driver in self._drivers.items():  # before the account is told of anything
            if driver is not None and not _has_budget(chain.own_adaptor(device_id)):
                self._open_windows(device_id, driver)
        begin_account(self._account)
        replaced.tell(self.look)
        self.look()

    def look(self) -> None:
        """Keep account of what the resources allocate that devices have now."""
        if self._account is None or not self._lock.here:
            return
        with self._lock():
            for device_id, watched in self._drivers.items():
                adaptor = chain.own_adaptor(device_id)
                driver = watched if adaptor is None else adaptor.driver
                source = adaptor or chain.observe(device_id)
                if source is None or driver is None:
                    continue
                source.set_account(self._account)
                driver.set_account(self._account)
                budget = _has_budget(adaptor)
                self._how = _SIMULATED if driver.tells_moves else _BUDGET if budget else _ASKED
                self._set_windows(device_id, driver, wanted=not budget)

    @property
    def available(self) -> Availability:
        """Whether lines can be told, and if not, why."""
        reason = self._refused or ("" if self._how else _NO_POOL)
        return Availability(available=not reason, reason=reason)

    def close(self) -> None:
        """End the account; what is known stays."""
        if self._account is None:
            return
        try:
            self.look()
        finally:
            self._end(self._account)

    def _end(self, account: LineAccount) -> None:
        end_account(account)
        replaced.end_telling(self.look)
        with self._lock():
            for windows in self._windows.values():
                windows.stop()
            self._seen = self._told()
            self._windows.clear()
            drivers, self._drivers = self._drivers, {}  # what was watched may go
            for device_id, driver in drivers.items():
                source = chain.own_adaptor(device_id) or chain.observed(device_id)
                if source is not None:
                    source.end_account(account)
                    chain.end_observing(device_id)
                if driver is not None:
                    driver.end_account(account)
        account.close()

    def recorded(self) -> LineTraffic | None:
        """Return what is known so far; None where nothing can be."""
        self.look()
        if self._account is None or not self._how:
            return None
        read_lines, told_paths, told_objects, top_bytes, peak_stretch = self._account.report()
        told_lines = [(file, _function(name), number) for file, name, number in read_lines]
        distinct = {line: number for number, line in enumerate(dict.fromkeys(told_lines))}
        files = [file for file, _, _ in distinct]
        for file in dict.fromkeys(files):
            linecache.checkcache(file)  # else a file that changed has another line's text

        def kept(told: tuple[int, ...]) -> tuple[int, ...]:
            # Who called a comprehension is the function that it is in, which is named already.
            numbers = tuple(
                distinct[told_lines[number]]
                for inner, number in zip((None, *told), told, strict=False)
                if inner is None or not read_lines[inner][1].endswith(_OWN_FRAME)
            )
            return numbers[: outermost_of_program([files[number] for number in numbers])]

        paths: dict[tuple[int, ...], CallPath] = {}
        number_of: list[int] = []  # of a path among those that differ in lines
        order: dict[tuple[int, ...], int] = {}
        for numbers, allocations, live_bytes, peak_bytes, moved, *by_stretch in told_paths:
            lines = kept(numbers)
            path = CallPath(
                lines,
                users_place([files[number] for number in lines]),
                allocations,
                live_bytes,
                peak_bytes,
                MovedBytes(*moved),
                *by_stretch,
            )
            paths[lines] = paths[lines].joined(path) if lines in paths else path
            number_of.append(order.setdefault(lines, len(order)))
        with self._lock():
            windows, told = self._seen or self._told()
        return LineTraffic(
            self._how if self._how != _ASKED else f"{_ASKED}; {told}",
            tuple(
                ProgramLine(file, number, function, _text(file, number))
                for file, function, number in distinct
            ),
            tuple(paths.values()),
            tuple(
                MovedObject(number, number_of[path], nbytes, live, MovedBytes(*moved))
                for number, path, nbytes, live, moved in told_objects
            ),
            top_bytes,
            peak_stretch,
            windows,
        )

    def _open_windows(self, device_id: int, driver: UvmDriver) -> None:
        assert self._account is not None
        if driver.tells_moves:
            return
        try:
            self._windows[device_id] = MoveWindows(driver, self._account)
        except AvailabilityError as error:
            self._no_windows[device_id] = str(error)

    def _set_windows(self, device_id: int, driver: UvmDriver, *, wanted: bool) -> None:
        """Open windows on a device where no budget tells what its kernel driver moves."""
        if wanted and device_id not in {*self._windows, *self._no_windows}:
            self._open_windows(device_id, driver)
        if (windows := self._windows.get(device_id)) is None:
            return
        try:
            windows.start() if wanted else windows.stop()
        except AvailabilityError as error:
            self._no_windows[device_id] = str(error)
            del self._windows[device_id]

    def _told(self) -> tuple[LineWindows | None, str]:
        """Return what windows saw, and how well page faults are known by them."""
        if not self._windows:
            reason = next(iter(self._no_windows.values()), "")
            return None, f"{_UNKNOWN}{': ' if reason else ''}{reason}"
        totals = [each.totals() for each in self._windows.values()]
        number, open_ns, run_ns, *rest = map(sum, zip(*totals, strict=True))
        seen = LineWindows(number, open_ns / 1e9, run_ns / 1e9, *rest)
        told = "nothing came by page faults"
        if seen.faulted_bytes:
            told = f"faulted and evicted are estimated from windows: {seen.told}"
        refused = next(filter(None, (each.refused for each in self._windows.values())), "")
        return seen, f"{told}; then {refused}" if refused else told


def _has_budget(adaptor: UvmResourceAdaptor | None) -> bool:
    return adaptor is not None and adaptor.budget is not None


def _function(name: str) -> str:
    """Return the function that code is in: comprehensions are no functions to who reads them.

    Examples
    --------
    >>> _function("load.<locals>.<listcomp>"), _function("<genexpr>"), _function("f.<locals>.g")
    ('load', '<module>', 'f.<locals>.g')
    """
    return _INNER.sub("", name).removeprefix(".<locals>.") or "<module>"


def _text(file: str, number: int) -> str:
    text = linecache.getline(file, number).strip()
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
