# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Columns of the generated tables: words that numbers stand for, names, addresses, money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.tpch.words import WORDS

PHRASES = 5000  # distinct comments of a table


def picked(words: Sequence[str], numbers: np.ndarray) -> pa.Array:
    """Return the words that the numbers stand for."""
    encoded = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(words))
    return encoded.cast(pa.string())


def any_of(random: np.random.Generator, words: Sequence[str], rows: int) -> pa.Array:
    """Return a word for each row."""
    return picked(words, random.integers(0, len(words), rows, dtype=np.int32))


def comments(
    random: np.random.Generator, rows: int, also: Sequence[str] = (), part: float = 0.0
) -> pa.Array:
    """Return comments, a part of which holds one of the phrases of `also`."""
    lengths = random.integers(4, 9, PHRASES)
    phrases = [" ".join(random.choice(WORDS, length)) for length in lengths]
    numbers = random.integers(0, PHRASES, rows, dtype=np.int32)
    if also:
        chosen = random.random(rows) < part
        numbers[chosen] = PHRASES + random.integers(0, len(also), int(chosen.sum()))
    return picked([*phrases, *also], numbers)


def numbered(word: str, keys: np.ndarray) -> pa.Array:
    """Return a name for each key."""
    return pa.array([f"{word}#{key:09}" for key in keys.tolist()])


def addresses(random: np.random.Generator, rows: int) -> pa.Array:
    """Return texts, hardly two of which are alike."""
    return pa.array([f"{number:010x}" for number in random.integers(0, 1 << 40, rows).tolist()])


def phones(random: np.random.Generator, nations: np.ndarray) -> pa.Array:
    """Return numbers that begin with the nation's, from 10 on."""
    numbers = random.integers(0, 10**10, len(nations)).tolist()
    return pa.array(
        [
            f"{nation + 10}-{number // 10**7:03}-{number // 10**4 % 1000:03}-{number % 10**4:04}"
            for nation, number in zip(nations.tolist(), numbers, strict=True)
        ]
    )


def cents(random: np.random.Generator, least: int, most: int, rows: int) -> np.ndarray:
    """Return amounts of money from least to most cents, in whole units."""
    return random.integers(least, most + 1, rows) / 100


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return columns as a table, days as timestamps."""
    return pa.table(
        {
            name: pa.array(column.astype("datetime64[ms]") if column.dtype.kind == "M" else column)
            if isinstance(column, np.ndarray)
            else column
            for name, column in columns.items()
        }
    )
