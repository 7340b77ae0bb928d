# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Why a line is none of RMM's log, in words: for the first of them, since most follow the same."""

from __future__ import annotations

from rmm_uvm.trace.log_lines import HEADER, parse_lines

__all__ = ["why_bad"]

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
