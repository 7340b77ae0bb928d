# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of queries as plain Python, and whether two of them are the same.

Two libraries, and two memories, add floats in different orders: these may differ by a millionth.
Everything else has to be equal. A query that sorts leaves ties open, so rows are matched by what
they hold, and that they come in the order that was asked for is looked at by itself.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

Answer = dict[str, list[Any]]
Order = Sequence[tuple[str, bool]]
"""Columns by which a query sorts, and whether descending."""

TOLERANCE = 1e-6  # of floats, relative


def plain(columns: Mapping[str, Sequence[Any]]) -> Answer:
    """Return columns as lists that JSON can hold: days as text, nothing for what is missing."""
    return {name: [_plain_value(value) for value in values] for name, values in columns.items()}


def _plain_value(value: Any) -> Any:
    if hasattr(value, "item"):  # a number of NumPy's
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime.date):  # so are datetimes, and timestamps of pandas
        return value.isoformat()[:10]
    return value


def rounded(answer: Answer, decimals: Mapping[str, int]) -> Answer:
    """Return an answer of which some columns are rounded, as another library's query has them."""
    return {
        name: [round(value, decimals[name]) for value in values] if name in decimals else values
        for name, values in answer.items()
    }


def differences(
    expected: Answer, got: Answer, order: Order = (), tolerance: float = TOLERANCE
) -> list[str]:
    """Return what differs, a line for each thing; nothing where the answers are the same.

    Parameters
    ----------
    expected, got : Answer
        What `plain` returned.
    order : sequence of (str, bool)
        What both have to be sorted by.
    tolerance : float
        How far floats may be apart, relative to the larger.
    """
    if list(expected) != list(got):
        return [f"columns are {list(got)} in place of {list(expected)}"]
    counts = {name: (len(expected[name]), len(got[name])) for name in expected}
    lines = [f"{name}: {b} rows in place of {a}" for name, (a, b) in counts.items() if a != b]
    if lines or not expected:
        return lines
    for name, answer in (("expected", expected), ("got", got)):
        lines += [f"{name}: {line}" for line in _out_of_order(answer, order, tolerance)]
    for a, b in zip(_matched(expected), _matched(got), strict=True):
        lines += [
            f"{name}: {found!r} in place of {wanted!r}"
            for name, wanted, found in zip(expected, a, b, strict=True)
            if not _same(wanted, found, tolerance)
        ]
    return lines


def digest(answer: Answer) -> str:
    """Return a hash of an answer, bit for bit: which one it was, not whether another is as good."""
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()[:16]


def checksum(answer: Answer) -> int:
    """Return a number that is the same for two answers that are the same but for rounding.

    Of each column: what its numbers add up to, to six digits, and how long its texts are.
    """
    parts = [str(_rows(answer))]
    for values in answer.values():
        numbers = sum(float(value) for value in values if isinstance(value, int | float))
        texts = sum(len(value) for value in values if isinstance(value, str))
        parts.append(f"{numbers:.6g} {texts}")
    return zlib.crc32(", ".join(parts).encode())


def _matched(answer: Answer) -> list[tuple[Any, ...]]:
    """Return the rows sorted by what has to be equal, then by the floats."""
    exact = [name for name in answer if not any(isinstance(v, float) for v in answer[name])]
    names = exact + [name for name in answer if name not in exact]
    rows = list(zip(*answer.values(), strict=True))
    keys = zip(*(answer[name] for name in names), strict=True)
    ranked = sorted(
        (tuple((value is not None, value) for value in key), number)
        for number, key in enumerate(keys)
    )
    return [rows[number] for _, number in ranked]


def _same(wanted: Any, found: Any, tolerance: float) -> bool:
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(wanted, found, rel_tol=tolerance, abs_tol=0.0)
    return type(wanted) is type(found) and bool(wanted == found)


def _out_of_order(answer: Answer, order: Order, tolerance: float) -> list[str]:
    keys = [[answer[name][row] for name, _ in order] for row in range(_rows(answer))]
    for row, (before, after) in enumerate(itertools.pairwise(keys), 1):
        for (name, descending), a, b in zip(order, before, after, strict=True):
            if _same(a, b, tolerance):
                continue
            if (a < b) == descending:
                return [f"row {row} is out of order: {name} is {b!r} after {a!r}"]
            break
    return []


def _rows(answer: Answer) -> int:
    return len(next(iter(answer.values()), []))
