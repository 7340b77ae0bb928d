# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeping account of traffic by lines of the program while a monitor runs.

Does not cover how a thread's line is read; see `rmm_uvm._lib.lines`.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence

from rmm_uvm._lib.lines import LineAccount
from rmm_uvm._lib.mr import UvmResourceAdaptor, begin_account, end_account
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.line_traffic import (
    CallPath,
    LineTraffic,
    MovedBytes,
    MovedObject,
    ProgramLine,
)
from rmm_uvm.support.user_line import outermost_of_program, users_place
from rmm_uvm.watch.sampling import chain

__all__ = ["WatchedLines"]

_MOST_CHARACTERS = 80  # of a line's text: enough to know it by, and reports are passed on
_OWN_FRAME = ("<listcomp>", "<setcomp>", "<dictcomp>")  # before Python 3.12
_INNER = re.compile(r"(?:^|\.)(?:<locals>\.)?<(?:listcomp|setcomp|dictcomp|genexpr)>")
_NO_POOL = "lines are told of memory of rmm_uvm's pool, and there was none"
_SIMULATED = "every byte that moved on the simulated device is known"
_BUDGET = "what the budget moved is known, and page faults as far as the budget found them"
_ASKED = (
    "prefetches and hints count as asked for, whether or not it moved; what the kernel driver "
    "evicts and page faults are not known without a budget"
)


class WatchedLines:
    """An account of traffic by line, for pools of ours on some devices.

    Parameters
    ----------
    device_ids : sequence of int
        CUDA ordinals.

    Notes
    -----
    Thread-safe. Keeps no pool alive.
    """

    def __init__(self, device_ids: Sequence[int]) -> None:
        self._device_ids = tuple(device_ids)
        self._how = ""
        self._refused = ""
        self._account: LineAccount | None = None
        try:
            self._account = LineAccount()
        except AvailabilityError as error:
            self._refused = str(error)
        else:
            begin_account(self._account)

    def observe(self, adaptor: UvmResourceAdaptor) -> None:
        """Keep account of what an adaptor allocates from now on; those made later are told of."""
        if self._account is not None:
            adaptor.set_account(self._account)
            self._look(adaptor)

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
        for adaptor in map(chain.own_adaptor, self._device_ids):
            if adaptor is not None:
                self._look(adaptor)
                adaptor.end_account(self._account)
        self._account.close()

    def recorded(self) -> LineTraffic | None:
        """Return what is known so far; None where nothing can be."""
        if self._account is None or not self._how:
            return None
        read_lines, told_paths, told_objects, *peak = self._account.report()
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
        return LineTraffic(
            self._how,
            tuple(
                ProgramLine(file, number, function, _text(file, number))
                for file, function, number in distinct
            ),
            tuple(paths.values()),
            tuple(
                MovedObject(number, number_of[path], nbytes, live, MovedBytes(*moved))
                for number, path, nbytes, live, moved in told_objects
            ),
            *peak,
        )

    def _look(self, adaptor: UvmResourceAdaptor) -> None:
        if adaptor.driver.info.simulated:
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
