# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes that cannot be are refused in one short line at every door, and nothing is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm.dask.settings import settings_of
from rmm_uvm.errors import UvmError
from rmm_uvm.residency import Budget

MIB = 1 << 20
NEAR = [2**64 - 257, 2**64 - 256, 2**64 - 255, 2**64 - 1]  # RMM's pool rounds up to 256 bytes
TOO_LARGE = [2**62, 2**63 - 1, 2**63, *NEAR, 2**64, 2**64 + 1, 10**30]
NEGATIVE = [-1, -(2**31), -(2**63), -(2**64), -(10**30)]
NO_NUMBERS = [math.nan, math.inf, -math.inf, -0.5, 1.5, 1e300, "9" * 5000, "x\n" * 500, b"1", [1]]
ABSURD = [*TOO_LARGE, *NEGATIVE, *NO_NUMBERS]
SIMULATED = "simulated:64MiB"


class Doors:
    """A pool, an IPC pool, and the calls that take sizes."""

    def __init__(self) -> None:
        driver = rmm_uvm.simulated_device("64MiB", backing=True)
        self.mr = rmm_uvm.managed_pool(
            driver=driver, maximum_pool_size="48MiB", device_budget="16MiB"
        )
        self.ipc = rmm_uvm.ipc_pool("4MiB", driver=driver)
        self.kept = [rmm.DeviceBuffer(size=MIB, mr=mr) for mr in (self.mr, self.ipc)]

    def hint(self, name: str) -> Callable[[Any], object]:
        hint = getattr(rmm_uvm, name)
        advice = {"read_mostly": True} if name == "advise" else {}

        def ask(size: Any) -> None:
            told = hint((self.kept[0].ptr, size), mr=self.mr, **advice)
            if name == "pin":
                told.__enter__()

        return ask

    def export(self, name: str) -> Callable[[Any], object]:
        return lambda value: self.ipc.export(self.kept[1], **{name: value})

    def ours(self) -> dict[str, Callable[[Any], object]]:
        """Return calls of this package."""
        hints = ("touch", "prefetch", "evict", "pin", "advise")
        pools = ("initial_pool_size", "maximum_pool_size", "device_budget")
        fields = ("budget_bytes", "low_bytes", "piece_bytes", "fetch_bytes", "ahead_bytes")
        section = ("initial-pool-size", "maximum-pool-size", "ipc-pool-size", "device-budget")
        return {
            "allocate": self.mr.allocate,
            "allocate-managed": self.mr.managed_mr.allocate,
            "set_budget": self.mr.set_budget,
            "ipc_pool": lambda size: rmm_uvm.ipc_pool(size, driver=SIMULATED),
            "simulated_device": rmm_uvm.simulated_device,
            "interval": lambda value: rmm_uvm.monitor(interval_seconds=value, driver=SIMULATED),
            "history": lambda value: rmm_uvm.monitor(history=value, driver=SIMULATED),
            **{name: self.hint(name) for name in hints},
            **{f"export-{name}": self.export(name) for name in ("lease_seconds", "readers")},
            **{
                f"pool-{name}": lambda size, name=name: rmm_uvm.managed_pool(
                    driver=SIMULATED, **{name: size}
                )
                for name in pools
            },
            **{
                f"budget-{name}": lambda size, name=name: Budget(
                    **{"budget_bytes": 8 * MIB, name: size}
                )
                for name in fields
            },
            **{
                f"dask-{name}": lambda size, name=name: settings_of({name: size})
                for name in section
            },
            "dask-chunk": lambda size: settings_of({"comm": {"chunk-size": size}}),
        }


@pytest.fixture(scope="module")
def doors() -> Doors:
    return Doors()


# Nothing is known of a device there: any size that C has may be right.
_ANY_THAT_C_HAS = {
    *("budget-budget_bytes", "budget-piece_bytes", "budget-fetch_bytes", "simulated_device"),
    *("dask-initial-pool-size", "dask-maximum-pool-size", "dask-ipc-pool-size"),
    *("dask-device-budget", "dask-chunk"),
}


@pytest.mark.parametrize("value", ABSURD, ids=lambda value: repr(value)[:24])
@pytest.mark.parametrize("door", sorted(Doors().ours()))
def test_absurd_size_is_refused_in_one_short_line(doors: Doors, door: str, value: Any) -> None:
    if door in _ANY_THAT_C_HAS and value in (2**62, 2**63 - 1):
        return
    if value == 1.5 and door in ("interval", "export-lease_seconds"):
        return  # these are seconds
    with pytest.raises((UvmError, MemoryError)) as refused:
        doors.ours()[door](value)
    text = str(refused.value)
    assert text
    assert "\n" not in text
    assert len(text) < 450
    assert doors.mr.get_allocated_bytes() == MIB
    assert doors.mr.budget_bytes == 16 * MIB
    assert doors.ipc.leases() == ()


@pytest.mark.parametrize("size", [*TOO_LARGE, *NEGATIVE])
@pytest.mark.parametrize("pool", ["mr", "ipc"])
@pytest.mark.parametrize("way", ["allocate", "buffer"])
def test_absurd_size_gets_no_address_of_a_pool(
    doors: Doors, pool: str, way: str, size: int
) -> None:
    mr = getattr(doors, pool)
    ask = mr.allocate if way == "allocate" else lambda size: rmm.DeviceBuffer(size=size, mr=mr)
    # What C cannot hold is RMM's to refuse, which says so in its own words.
    with pytest.raises((UvmError, MemoryError, OverflowError)) as refused:
        ask(size)
    assert "\n" not in str(refused.value)
    # Two allocations of one address were what came of it.
    first, second = (rmm.DeviceBuffer(size=256, mr=mr) for _ in range(2))
    assert len({first.ptr, second.ptr, *(one.ptr for one in doors.kept)}) == 4


def test_pool_of_a_fixed_size_says_what_was_asked_and_what_there_is(doors: Doors) -> None:
    with pytest.raises(MemoryError, match=f"{2**64 - 1} bytes asked of a pool of {4 * MIB}, which"):
        rmm.DeviceBuffer(size=2**64 - 1, mr=doors.ipc)


@pytest.mark.parametrize("stream", [-1, 2**64, 1.5, "1", b"1", True, []])
def test_stream_that_is_none_is_refused(doors: Doors, stream: Any) -> None:
    with pytest.raises(UvmError, match="stream"):
        doors.ipc.export(doors.kept[1], stream=stream)
    assert doors.ipc.leases() == ()


@pytest.mark.parametrize("size", [0, np.int64(1000), 1000])
def test_size_that_is_one_is_allocated(doors: Doors, size: Any) -> None:
    for mr in (doors.mr, doors.ipc):
        address = mr.allocate(size)
        assert bool(address) == bool(size)
        mr.deallocate(address, size)


def test_array_of_infinite_length_is_refused(doors: Doors) -> None:
    class Endless:
        __cuda_array_interface__ = {  # noqa: RUF012 - what is read
            "shape": (math.inf,),
            "typestr": "<f4",
            "data": (doors.kept[0].ptr, False),
            "version": 3,
        }

    with pytest.raises(UvmError, match="cannot be read"):
        rmm_uvm.touch(Endless(), mr=doors.mr)
    with pytest.raises(UvmError):
        rmm_uvm.touch((math.inf, 16), mr=doors.mr)
