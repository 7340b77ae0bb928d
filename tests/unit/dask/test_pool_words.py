# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's line about its pool, and what an error about its share of the host says beside it."""

from __future__ import annotations

from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.dask.worker.host_share import HostShare
from rmm_uvm.dask.worker.pool import pool_line, with_guess
from rmm_uvm.errors import ConfigurationError

GUESS = HostShare(12, "12 workers are a guess")
ASKED = HostShare(12)


def line(share: HostShare = ASKED, **settings: Any) -> str:
    device = rmm_uvm.simulated_device("64MiB", neighbors=2)
    asked = {"maximum_pool_size": "48MiB", "libraries": (), "monitor": False, **settings}
    with rmm_uvm.reinitialize(driver=device, host_sharers=share.workers, **asked) as made:
        return pool_line(made.devices[0], "auto", share)


def test_line_tells_sizes_and_nothing_of_a_budget_that_there_is_not() -> None:
    told = line(initial_pool_size="16MiB", ipc_pool_size="8MiB", device_budget=None)
    assert told == (
        "managed pool on simulated device: 16.00 MiB, at most 48.00 MiB (as asked); "
        "IPC pool 8.00 MiB; prefetch auto"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eviction": "lru"}, "; budget 32.00 MiB; eviction lru; IPC pool off;"),
        ({}, "; budget 32.00 MiB; eviction repeat; IPC pool off;"),
        ({"neighbors": [1, 2]}, "; eviction repeat; neighbours 1, 2; IPC pool off;"),
        ({"neighbors": []}, "; eviction repeat; neighbours none; IPC pool off;"),
    ],
)
def test_line_tells_the_budget_what_leaves_and_where_to(
    settings: dict[str, Any], words: str
) -> None:
    assert words in line(device_budget="32MiB", **settings)


def test_line_tells_that_a_number_of_workers_is_a_guess_where_the_maximum_counts_it() -> None:
    told = line(GUESS, maximum_pool_size=None)
    assert "shared by 12 workers" in told
    assert told.endswith("; 12 workers are a guess")
    assert not line(ASKED, maximum_pool_size=None).endswith("guess")
    assert not line(GUESS).endswith("guess")  # the maximum is as asked


def test_error_about_a_share_tells_that_the_number_is_a_guess() -> None:
    asked = {"maximum_pool_size": "4PiB", "driver": "simulated:64MiB", "libraries": ()}
    guessed = r"shared by 12 workers; .*; 12 workers are a guess$"
    with pytest.raises(ConfigurationError, match=guessed), with_guess(GUESS):
        rmm_uvm.reinitialize(host_sharers=12, **asked)
    with pytest.raises(ConfigurationError, match=r"or leave it out$"), with_guess(ASKED):
        rmm_uvm.reinitialize(host_sharers=12, **asked)


def test_other_error_is_as_it_was() -> None:
    asked = {"maximum_pool_size": "1KiB", "driver": "simulated:64MiB", "libraries": ()}
    with (
        pytest.raises(ConfigurationError, match=r"2 MiB at least; give more, or leave it out$"),
        with_guess(GUESS),
    ):
        rmm_uvm.reinitialize(host_sharers=12, **asked)
