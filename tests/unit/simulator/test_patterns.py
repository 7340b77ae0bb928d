# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Access patterns: what they may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator import (
    Pattern,
    hash_join_probe,
    pointer_chase,
    random_pages,
    recorded,
    sequential,
    strided,
    zipf,
)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "x"}, r"pattern 'x': use sequential, strided, random, zipf"),
        ({"kind": None}, "pattern None: use"),
        ({"kind": []}, r"pattern \[\]: use"),
        ({"kind": "random", "count": -1}, "count=-1: use a whole number, 0 to"),
        ({"kind": "random", "count": 2**62}, "count="),
        ({"kind": "random", "count": 1.5}, "count=1.5"),
        ({"kind": "random", "count": "3"}, "count='3'"),
        ({"kind": "random", "count": True}, "count=True"),
        ({"kind": "random", "seed": -1}, "seed=-1"),
        ({"kind": "random", "seed": 2**64}, "seed="),
        ({"kind": "zipf", "exponent": 0}, "exponent=0: use a number above 0 and below 100"),
        ({"kind": "zipf", "exponent": 100}, "exponent=100"),
        ({"kind": "zipf", "exponent": float("nan")}, "exponent=nan"),
        ({"kind": "zipf", "exponent": "1"}, "exponent='1'"),
        ({"kind": "strided", "stride_bytes": 0}, "stride_bytes=0"),
        ({"kind": "strided", "stride_bytes": 4097}, "stride_bytes=4097: use a multiple of 4 KiB"),
        ({"kind": "recorded", "pages": (1, -2)}, "page -2: pages are numbered from 0"),
        ({"kind": "recorded", "pages": (1, "2")}, r"pages=\(1, '2'\): list whole numbers"),
        ({"kind": "recorded", "pages": 3}, "pages=3"),
    ],
)
def test_pattern_that_cannot_be_names_what_is_wrong(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Pattern(**values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: random_pages(-1),
        lambda: pointer_chase(2**63),
        lambda: hash_join_probe(1, seed=-1),
        lambda: zipf(1, exponent=-0.5),
        lambda: strided("6KiB"),
        lambda: recorded([0.5]),  # type: ignore[list-item]
    ],
)
def test_function_refuses_what_the_pattern_refuses(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_pattern_at_its_bounds_is_kept_as_plain_numbers() -> None:
    assert random_pages(2**62 - 1, seed=2**64 - 1).count == 2**62 - 1
    pattern = recorded(np.arange(3))
    assert (pattern.count, pattern.pages) == (3, (0, 1, 2))
    assert type(pattern.pages[0]) is int
    assert strided("64KiB").stride_bytes == 65536
    assert sequential() == Pattern("sequential")
