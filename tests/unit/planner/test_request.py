# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a plan may be asked for, and what is refused in one line."""

from __future__ import annotations

import re
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.planner.request import DEFAULTS, Options, PlanRequest, checked_request
from rmm_uvm.planner.trials.capacities import card_sizes, fitting_bytes
from rmm_uvm.support.units import whole_blocks

from .workloads import GIB, MIB

GIVEN: dict[str, Any] = {
    "device_memory": ["24GiB", "16GiB"],
    "prefetch": None,
    "driver_prefetch_threshold": [51],
    "policy": ["driver"],
    "workers": 1,
    "host_memory": None,
    "fitting_seconds": None,
}


def asked(**changes: Any) -> PlanRequest:
    return checked_request(**{**GIVEN, **changes})


def test_sizes_of_cards_are_sorted_and_whole_blocks() -> None:
    assert asked().device_bytes == (16 * GIB, 24 * GIB)
    assert asked(device_memory=[17 * MIB]).device_bytes == (16 * MIB,)


def test_nothing_asked_runs_the_defaults_and_tries_the_other_modes() -> None:
    request = asked()
    assert request.options == (DEFAULTS,)
    assert request.alternatives == (Options("always"), Options("never"))


def test_modes_that_are_asked_for_run_on_every_card() -> None:
    request = asked(prefetch=["never"], driver_prefetch_threshold=[51, 5])
    assert request.options == (DEFAULTS, Options("never"), Options("never", 5))
    assert request.alternatives == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device_memory": [0]}, "device_memory=0: a size must be greater than 0"),
        ({"device_memory": ["0"]}, "greater than 0"),
        ({"device_memory": ["sixteen"]}, "device_memory='sixteen': expected"),
        ({"device_memory": ["1MiB"]}, "16.00 MiB at least"),
        ({"device_memory": ["16GiB", 16 * GIB]}, "device_memory has 16.00 GiB twice"),
        ({"device_memory": []}, "device_memory is empty"),
        ({"device_memory": [n << 30 for n in range(1, 34)]}, "33 sizes: 32 at most"),
        ({"device_memory": [True]}, "expected"),
        ({"prefetch": ["sometimes"]}, "prefetch='sometimes': use one of 'auto', 'always', 'never'"),
        ({"prefetch": ["auto", "auto"]}, "prefetch has auto twice"),
        ({"driver_prefetch_threshold": [101]}, "driver_prefetch_threshold=101: a whole"),
        ({"driver_prefetch_threshold": [-1]}, "driver_prefetch_threshold=-1"),
        ({"driver_prefetch_threshold": [True]}, "driver_prefetch_threshold=True"),
        ({"driver_prefetch_threshold": ["51 %"]}, "driver_prefetch_threshold='51 %'"),
        ({"driver_prefetch_threshold": [5, 5]}, "has 5 twice"),
        ({"driver_prefetch_threshold": []}, "driver_prefetch_threshold is empty"),
        ({"policy": ["lru"]}, "policy='lru': use one of 'driver', 'discard-dead'"),
        ({"workers": 0}, "workers=0"),
        ({"workers": True}, "workers=True"),
        ({"workers": 1.5}, "workers=1.5"),
        ({"host_memory": "0"}, "host_memory='0'"),
        ({"fitting_seconds": 0.0}, "fitting_seconds=0.0"),
        ({"fitting_seconds": float("nan")}, "fitting_seconds=nan"),
        ({"fitting_seconds": float("inf")}, "fitting_seconds=inf"),
        ({"fitting_seconds": 1e300}, "fitting_seconds=1e+300: a time in seconds, 1e-06 to 1e+09"),
        ({"fitting_seconds": 1e-300}, "fitting_seconds=1e-300: a time"),
        ({"fitting_seconds": 10**400}, "a time in seconds"),
        ({"fitting_seconds": "abc"}, "fitting_seconds='abc': a time in seconds"),
        ({"fitting_seconds": True}, "fitting_seconds=True"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)) as refused:
        asked(**changes)
    assert "\n" not in str(refused.value)


def test_cards_by_default_lie_around_the_peak() -> None:
    for peak in (1, 20 * MIB, 700 * MIB, 3 * GIB, 18 * GIB, 100 * GIB, 250 * GIB):
        sizes = card_sizes(peak)
        assert list(sizes) == sorted(set(sizes))
        assert sizes[-1] >= peak
        assert sizes[0] >= peak / 4
        assert all(size == whole_blocks(size) for size in sizes)


def test_peak_above_all_cards_leaves_the_largest() -> None:
    assert card_sizes(10_000 * GIB) == (288 * GIB,)


def test_room_for_everything_is_more_than_the_slabs_and_what_is_left_free() -> None:
    for slab_bytes in (2 * MIB, 100 * MIB, 40 * GIB):
        assert fitting_bytes(slab_bytes) > slab_bytes + 128 * MIB


@pytest.mark.parametrize("machine", [5, None, {"name": "h200-pcie5"}])
def test_plan_for_no_machine_says_what_to_give(machine: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"machine=.*: a name such as 'h200-pcie5'"):
        rmm_uvm.plan("no-such-recording", machine=machine)
