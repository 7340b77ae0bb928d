# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of RMM's logs to numbers, all lines of a block of text at once.

A log has tens of millions of lines, so that nothing is done line by line. Strict: what RMM would
not have written is no line of its log.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.trace.events import EVENT_DTYPE, EventKind

__all__ = ["HEADER", "Lines", "parse_lines", "why_bad"]

HEADER = b"Thread,Time,Action,Pointer,Size,Stream"

_Positions: TypeAlias = NDArray[np.int64]
_Bytes: TypeAlias = NDArray[np.uint8]

_COMMAS = 5
_TIME_BYTES = 15  # 11:36:33.123456; RMM before 0.15 wrote a colon before the microseconds
_LONGEST = {10: 19, 16: 16}  # digits that always fit into 64 bits
_ACTIONS = {
    b"allocate": EventKind.ALLOCATE,
    b"free": EventKind.FREE,
    b"allocate failure": EventKind.ALLOCATE_FAILED,
}
_MICROSECONDS = tuple((place, 10**exponent) for exponent, place in enumerate(range(14, 8, -1)))
_NO_DIGIT = 255


def _digit_values() -> _Bytes:
    values = np.full(256, _NO_DIGIT, np.uint8)
    for value, letters in enumerate(b"0123456789abcdef"):
        values[letters] = value
    values[list(b"ABCDEF")] = range(10, 16)
    return values


_DIGITS = _digit_values()


class Lines(NamedTuple):
    """The contents of a block of text.

    Attributes
    ----------
    events : ndarray, dtype `rmm_uvm.trace.EVENT_DTYPE`
        One for each line that was understood. ``time_ns`` is the time of the day, ``id`` is -1.
    numbers : ndarray
        Which line of the block each is, counted from 0.
    total : int
        Lines of the block.
    bad : ndarray
        Which lines were not understood; empty lines are passed over.
    """

    events: np.ndarray[Any, np.dtype[np.void]]
    numbers: _Positions
    total: int
    bad: _Positions


def parse_lines(text: bytes) -> Lines:
    r"""Read whole lines.

    Parameters
    ----------
    text : bytes
        Ends with a line feed, unless it is empty.

    Examples
    --------
    >>> lines = parse_lines(b"7,00:00:01.000002,allocate,0x100,64,0\nrubbish\n")
    >>> lines.events["address"].tolist(), lines.events["time_ns"].tolist(), lines.bad.tolist()
    ([256], [1000002000], [1])
    """
    data = np.frombuffer(text + bytes(_TIME_BYTES), np.uint8)  # looking ahead stays inside
    ends = np.flatnonzero(data == ord("\n"))
    begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    count = len(ends)
    ends = ends - ((ends > begins) & (data[ends - 1] == ord("\r")))
    commas = np.flatnonzero(data == ord(","))
    first = np.searchsorted(commas, begins)
    whole = np.flatnonzero(np.searchsorted(commas, ends) - first == _COMMAS)
    cuts = commas[first[whole, np.newaxis] + np.arange(_COMMAS)]
    events, good = _fields(data, begins[whole], cuts, ends[whole])
    understood = np.zeros(count, bool)
    understood[whole[good]] = True
    bad = np.flatnonzero(~understood & (ends > begins))
    return Lines(events[good], whole[good], count, bad)


def _fields(
    data: _Bytes, begins: _Positions, cuts: _Positions, ends: _Positions
) -> tuple[np.ndarray[Any, np.dtype[np.void]], NDArray[np.bool_]]:
    """Read the six fields of lines; return the events and which of them make sense."""
    events = np.zeros(len(begins), EVENT_DTYPE)
    thread, thread_good = _numbers(data, begins, cuts[:, 0])
    times, times_good = _times(data, cuts[:, 0] + 1, cuts[:, 1])
    events["thread"] = thread  # the highest bits were looked at, or the line is bad
    events["time_ns"] = times
    events["kind"] = _kinds(data, cuts[:, 1] + 1, cuts[:, 2])
    good = thread_good & (thread < 1 << 32) & times_good & (events["kind"] != 0)
    bounds = (("address", 2, cuts[:, 3]), ("bytes", 3, cuts[:, 4]), ("stream", 4, ends))
    for name, comma, end in bounds:
        events[name], fits = _numbers(data, cuts[:, comma] + 1, end)
        good &= fits
    events["id"] = -1
    return events, good


def _numbers(
    data: _Bytes, begins: _Positions, ends: _Positions
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Read decimal numbers, those in base 16 after 0x, and (nil)."""
    hexadecimal = (ends - begins > 2) & (data[begins] == ord("0")) & (data[begins + 1] == ord("x"))
    begins = begins + 2 * hexadecimal
    lengths = ends - begins
    base = np.where(hexadecimal, 16, 10).astype(np.uint64)
    good = (lengths > 0) & (lengths <= np.where(hexadecimal, _LONGEST[16], _LONGEST[10]))
    values = np.zeros(len(begins), np.uint64)
    for place in range(int(lengths[good].max(initial=0))):
        here = good & (place < lengths)
        digit = _DIGITS[data[np.where(here, begins + place, 0)]]
        good &= ~here | (digit < base)
        values = np.where(here, values * base + digit, values)
    empty = _is(data, begins, ends, b"(nil)")
    values[empty] = 0
    return values, good | empty


def _is(data: _Bytes, begins: _Positions, ends: _Positions, word: bytes) -> NDArray[np.bool_]:
    """Return which fields are a word."""
    found = np.flatnonzero(ends - begins == len(word))
    letters = data[begins[found, np.newaxis] + np.arange(len(word))]
    same = np.zeros(len(begins), bool)
    same[found] = (letters == np.frombuffer(word, np.uint8)).all(axis=1)
    return same


def _kinds(data: _Bytes, begins: _Positions, ends: _Positions) -> _Bytes:
    """Return the kind of each action; 0 for one that RMM does not have."""
    kinds = np.zeros(len(begins), np.uint8)
    for word, kind in _ACTIONS.items():
        kinds[_is(data, begins, ends, word)] = kind
    return kinds


def _times(
    data: _Bytes, begins: _Positions, ends: _Positions
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return times of the day in nanoseconds."""
    good = ends - begins == _TIME_BYTES
    text = data[np.where(good, begins, 0)[:, np.newaxis] + np.arange(_TIME_BYTES)]
    digits = (text - np.uint8(ord("0"))).astype(np.uint64)  # other letters wrap: over 9
    for place in (0, 1, 3, 4, 6, 7, *range(9, 15)):
        good &= digits[:, place] <= 9
    good &= (text[:, 2] == ord(":")) & (text[:, 5] == ord(":"))
    good &= (text[:, 8] == ord(".")) | (text[:, 8] == ord(":"))
    hours, minutes, seconds = (digits[:, at] * 10 + digits[:, at + 1] for at in (0, 3, 6))
    good &= (hours < 24) & (minutes < 60) & (seconds <= 60)
    micros = sum(digits[:, place] * np.uint64(unit) for place, unit in _MICROSECONDS)
    times = ((hours * 60 + minutes) * 60 + seconds) * 10**9 + micros * np.uint64(1000)
    return times, good


_NAMES = HEADER.decode().split(",")
_GOOD = (b"1", b"00:00:00.000000", b"allocate", b"0x100", b"256", b"0x0")
_EXPECTED = {
    "Thread": "a number",
    "Time": "a time as 11:36:33.123456",
    "Action": "allocate, free or allocate failure",
    "Pointer": "an address as 0x7f0000000000",
    "Size": "a number of bytes",
    "Stream": "an address as 0x0",
}
_LONGEST_SHOWN = 24


def why_bad(line: bytes) -> str:
    """Return what is wrong with a line that `parse_lines` did not understand.

    Parameters
    ----------
    line : bytes
        Without its line feed; the begin of it if it is long.

    Examples
    --------
    >>> why_bad(b"1,10:00:00.000000,allocate,0x100")
    '4 fields and not 6'
    >>> why_bad(b"1,10:00:00.000000,steal,0x100,64,0x0")
    "its action is 'steal' and not allocate, free or allocate failure"
    """
    fields = line.rstrip(b"\r").split(b",")
    if len(fields) != len(_GOOD):
        plural = "" if len(fields) == 1 else "s"
        return f"{len(fields)} field{plural} and not {len(_GOOD)}"
    for place, (name, field) in enumerate(zip(_NAMES, fields, strict=True)):
        # A line in which all else is right tells whether this is.
        alone = b",".join((*_GOOD[:place], field, *_GOOD[place + 1 :]))
        if len(parse_lines(alone + b"\n").bad):
            return f"its {name.lower()} is {_shown(field)} and not {_EXPECTED[name]}"
    return "it has what RMM does not write"


def _shown(field: bytes) -> str:
    text = field.decode("ascii", "backslashreplace")
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[: _LONGEST_SHOWN - 3]}..."
    return repr(text)
