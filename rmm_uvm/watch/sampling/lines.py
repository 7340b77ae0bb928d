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
        self._seen: tuple[LineWindows | None, str] | None = None  # once it is closed
        self._no_windows: dict[int, str] = {}  # why a device has none
        self._account: LineAccount | None = None
        try:
            self._account = LineAccount()
        except AvailabilityError as error:
            self._refused = str(error)
            return
        begin_account(self._account)
        for device_id in self._drivers:  # before the account is told of anything
            self._open_windows(device_id, chain.own_adaptor(device_id))
        self.look()
        replaced.tell(self.look)

    def observe(self, adaptor: UvmResourceAdaptor) -> None:
        """Keep account of what an adaptor allocates from now on; those made later are told of."""
        if self._account is not None:
            adaptor.set_account(self._account)
            self._look(adaptor)
            self._open_windows(adaptor.driver.info.device_id, adaptor)

    def look(self) -> None:
        """Keep account of what the resources allocate that devices have now."""
        for device_id, driver in tuple(self._drivers.items()):
            if (adaptor := chain.own_adaptor(device_id)) is not None:
                self.observe(adaptor)
                continue
            others = None if driver is None else chain.observe(device_id)
            if others is not None and driver is not None and self._account is not None:
                others.set_account(self._account)
                driver.set_account(self._account)
                self._how = _SIMULATED if driver.tells_moves else _ASKED

    @property
    def available(self) -> Availability:
        """Whether lines can be told, and if not, why."""
        reason = self._refused or ("" if self._how else _NO_POOL)
        return Availability(available=not reason, reason=reason)

    def close(self) -> None:
        """End the account; what is known stays."""
        if self._account is None:
            return
        end_account(self._account)
        replaced.end_telling(self.look)
        with self._lock():
            for windows in self._windows.values():
                windows.stop()
            self._seen = self._totals(), self._told(self._totals())
            self._windows.clear()
            drivers, self._drivers = self._drivers, {}  # what was watched may go
        for device_id, driver in drivers.items():
            if (adaptor := chain.own_adaptor(device_id)) is not None:
                self._look(adaptor)
                adaptor.end_account(self._account)
            if (others := chain.observed(device_id)) is not None:
                others.end_account(self._account)
                chain.end_observing(device_id)
            if driver is not None:
                driver.end_account(self._account)
        self._account.close()

    def recorded(self) -> LineTraffic | None:
        """Return what is known so far; None where nothing can be."""
        if self._account is None or not self._how:
            return None
        read_lines, told_paths, told_objects, peak_bytes, peak_stretch = self._account.report()
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
        windows, told = self._seen or (self._totals(), self._told(self._totals()))
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
            peak_bytes,
            peak_stretch,
            windows,
        )

    def _open_windows(self, device_id: int, adaptor: UvmResourceAdaptor | None) -> None:
        """Open windows on a device where nobody else tells what its kernel driver moves."""
        with self._lock():
            driver = self._drivers.get(device_id)
            if driver is not None and not driver.tells_moves:
                self._open_windows_of(driver, device_id, adaptor)

    def _open_windows_of(
        self, driver: UvmDriver, device_id: int, adaptor: UvmResourceAdaptor | None
    ) -> None:
        assert self._account is not None
        windows = self._windows.get(device_id)
        if adaptor is not None and adaptor.budget is not None:
            if windows is not None:
                windows.stop()
            return
        if windows is None and device_id not in self._no_windows:
            try:
                self._windows[device_id] = windows = MoveWindows(driver, self._account)
            except AvailabilityError as error:
                self._no_windows[device_id] = str(error)
        if windows is not None:
            windows.start()

    def _totals(self) -> LineWindows | None:
        """Return what the windows of all devices saw; None where there are none."""
        if not self._windows:
            return None
        totals = [windows.totals() for windows in self._windows.values()]
        number, open_ns, run_ns, *rest = map(sum, zip(*totals, strict=True))
        return LineWindows(number, open_ns / 1e9, run_ns / 1e9, *rest)

    def _told(self, windows: LineWindows | None) -> str:
        """Return how well page faults are known, where accounts are told what was asked for."""
        if windows is None:
            reason = next(iter(self._no_windows.values()), "")
            return f"{_UNKNOWN}{': ' if reason else ''}{reason}"
        told = f"faulted and evicted are estimated from windows: {windows.told}"
        if not windows.faulted_bytes:
            told = "nothing came by page faults"
        refused = next(filter(None, (each.refused for each in self._windows.values())), "")
        return f"{told}; then {refused}" if refused else told

    def _look(self, adaptor: UvmResourceAdaptor) -> None:
        if adaptor.driver.tells_moves:
            self._how = _SIMULATED
        else:
            self._how = _BUDGET if adaptor.budget is not None else _ASKED


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
