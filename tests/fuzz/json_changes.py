# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of JSON that leave it JSON: a byte turned by chance is nearly always a comma lost.

Values become others, of other types too; they are dropped, doubled and renamed.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

SKIPPED = {
    "recording": 1,
    "board": 0,
    "categories": 0,
    "dask-settings": 0,
    "wire-handshake": 0,
}
"""By target whose input is JSON: the bytes before it. A byte of zero ends it."""

_VALUES = (
    *(None, True, False, -1, 0, 1, 7, 0.5, -0.0, 1e-9, 1e300, 2**31, 2**63, 2**64, 10**400),
    *(math.nan, math.inf, -math.inf, "", "x", "0", "auto", "1GiB", "9" * 30, "\x1b[2J", "\ud800"),
    *("\u202e", "two\nlines", [], {}, [[]], [0], {"a": 1}),
)


def changed(target: str, data: bytes, chance: random.Random) -> bytes:
    """Return an input of a target with other values in its JSON; as it is if that is none."""
    begin = SKIPPED[target]
    parts = data[begin:].split(b"\0", 1)
    place = chance.randrange(len(parts))
    try:
        parts[place] = _changed(json.loads(parts[place]), chance)
    except (ValueError, RecursionError):
        return data
    return data[:begin] + b"\0".join(parts)


def _changed(value: Any, chance: random.Random) -> bytes:
    root = [value]
    for _ in range(chance.randint(1, 3)):
        places = list(_places(root))
        within, key = chance.choice(places)
        match chance.randrange(5):
            case 0 | 1:
                within[key] = copy.deepcopy(chance.choice(_VALUES))
            case 2:
                other, from_key = chance.choice(places)
                within[key] = copy.deepcopy(other[from_key])
            case 3 if within is not root:
                del within[key]
            case _ if isinstance(within, list) and within is not root:
                within.insert(key, copy.deepcopy(within[key]))
            case _ if isinstance(within, dict):
                within[chance.choice(("x", "0", "00", "1", "", f"{key}s"))] = within.pop(key)
    return json.dumps(root[0]).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every list or mapping within, with each of its keys."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys: Any = range(len(one)) if isinstance(one, list) else list(one)
        for key in keys:
            yield one, key
            if isinstance(one[key], (list, dict)):
                waiting.append(one[key])
