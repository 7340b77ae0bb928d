# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How many workers share the host's memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.worker.host_share import workers_on_host

GIB = 1 << 30


def sharers(**facts: Any) -> int:
    known = {"asked": None, "memory_limit_bytes": None, "host_bytes": 64 * GIB}
    return workers_on_host(**{**known, "visible_devices": None, **facts}).workers


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, 1),
        ({"memory_limit_bytes": 64 * GIB}, 1),
        ({"memory_limit_bytes": 16 * GIB}, 4),
        # The limit is as the user said, not a part that Dask gave.
        ({"memory_limit_bytes": 1 * GIB, "visible_devices": 2}, 2),
        # One worker, though eight devices are to be seen.
        ({"memory_limit_bytes": 64 * GIB, "visible_devices": 8}, 1),
        ({"visible_devices": 8}, 8),
        ({"visible_devices": 0}, 1),
        ({"asked": 3, "memory_limit_bytes": 16 * GIB, "visible_devices": 8}, 3),
    ],
)
def test_number_of_workers_on_a_host(facts: dict[str, Any], expected: int) -> None:
    assert sharers(**facts) == expected


@pytest.mark.parametrize(
    ("facts", "guess"),
    [
        (
            {"memory_limit_bytes": 16 * GIB},
            "4 workers are a guess from the worker's memory limit, 16.00 GiB of 64.00 GiB: if "
            "it is wrong, set workers-per-host",
        ),
        (
            {"memory_limit_bytes": GIB, "visible_devices": 2},
            "2 workers are a guess from CUDA_VISIBLE_DEVICES, which has 2 entries: if "
            "it is wrong, set workers-per-host",
        ),
        ({"memory_limit_bytes": 16 * GIB, "asked": 4}, ""),
        ({"memory_limit_bytes": 64 * GIB}, ""),
        ({"visible_devices": 1}, ""),
        ({}, ""),
    ],
)
def test_number_that_is_a_guess_says_from_what_and_how_to_correct_it(
    facts: dict[str, Any], guess: str
) -> None:
    known = {"asked": None, "memory_limit_bytes": None, "host_bytes": 64 * GIB}
    assert workers_on_host(**{**known, "visible_devices": None, **facts}).guess == guess


@given(st.integers(min_value=1, max_value=64), st.integers(min_value=1, max_value=2**42))
def test_part_of_the_host_that_dask_gives_tells_the_number(workers: int, host_bytes: int) -> None:
    # As Dask rounds, in distributed.worker_memory.parse_memory_limit.
    limit_bytes = int(host_bytes * min(1, 1 / workers))
    if limit_bytes > 64 * workers:  # else rounding is all there is
        found = sharers(host_bytes=host_bytes, memory_limit_bytes=limit_bytes)
        assert found == workers
