# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A reader of RMM's logs that is slow and plain: the fast one has to agree with it."""

from __future__ import annotations

import re

_LINE = re.compile(
    rb"([0-9]{1,19}|0x[0-9a-fA-F]{1,16}|\(nil\)),"
    rb"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)[.:][0-9]{6},"
    rb"(allocate|free|allocate failure),"
    rb"([0-9]{1,19}|0x[0-9a-fA-F]{1,16}|\(nil\)),"
    rb"([0-9]{1,19}|0x[0-9a-fA-F]{1,16}|\(nil\)),"
    rb"([0-9]{1,19}|0x[0-9a-fA-F]{1,16}|\(nil\))\r?"
)
_KINDS = {b"allocate": 1, b"free": 2, b"allocate failure": 7}


def rows(text: bytes) -> list[tuple[int, int, int, int]]:
    """Return kind, address, bytes and thread of each line that makes sense."""
    found = []
    for line in text.split(b"\n"):
        match = _LINE.fullmatch(line)
        if match and _value(match[1]) < 1 << 32:
            found.append((_KINDS[match[4]], *map(_value, (match[5], match[6], match[1]))))
    return found


def _value(text: bytes) -> int:
    if text == b"(nil)":
        return 0
    return int(text, 16 if text.startswith(b"0x") else 10)
