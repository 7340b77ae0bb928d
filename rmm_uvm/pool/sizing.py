# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How large the pools may be: a pure function of the device, the host and what was asked.

Covers the sizes that `rmm_uvm.reinitialize` and `rmm_uvm.managed_pool` use. Does not cover reading
those facts; see `rmm_uvm.machine.host_memory` and `rmm_uvm.drivers`.

Why the maximum is not device plus host: the UVM kernel driver keeps the host page of every page
that was ever on the host until the memory is freed (uvm_va_block.c, CPU chunks go only in
``uvm_va_block_remove_cpu_chunks`` and ``block_kill``). Data larger than the device therefore end up
with a host page each, and a pool past the device is only as large as the host.

The memory of an integrated device is the host's (DGX Spark, Jetson): it counts once.
"""

from __future__ import annotations

import dataclasses

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.support.settings import LEAST_BUDGET_BYTES
from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes, parse_size

__all__ = ["PoolRequest", "PoolSizes", "ipc_pool_bytes", "plan_sizes"]

_FIRST_OF_FOLLOWING = 7 / 8  # of a budget that follows others
_INITIAL_FRACTION = 0.5  # of free device memory, as RMM's own pool does
_AUTO_IPC_BYTES = 256 << 20  # peers map it as a whole, which is slow for large ones
_MOST_ADDRESSES = 4  # times the maximum: random sizes take 1.2 to 1.8 times
_HOST_FRACTION = 0.9  # of available host memory; the rest is for the program itself
# Free device memory may be all taken, by a pool that just ran out: begin small and grow.
_SMALLEST_INITIAL_BYTES = 32 * VA_BLOCK_BYTES


@dataclasses.dataclass(frozen=True)
class PoolRequest:
    """The request of a user. Sizes: bytes, "2GiB", or a fraction of device memory.

    Fractions of the managed pool are of what the IPC pool leaves.

    Parameters
    ----------
    initial : int, str, float or None
        First slab of the pool; None for half of the free device memory.
    maximum : int, str, float or None
        Most that the pool may take; None for what device and host can hold.
    ipc : int, str, float or None
        Size of the IPC pool; "auto" for 256 MiB, or an eighth of the device if that is less; None
        for none.
    budget_bytes : int or None
        Most of the device that managed memory may take; None for no budget. With one the first slab
        is as large by default: a pool hands out all of a slab before it hands out anything twice,
        and in a larger one data that fit would go through more memory than the budget holds.
    follows : bool
        The budget gives way to others: it is no more than what is free.
    drops : bool
        Dead blocks may be dropped, for which a budget can say no.
    """

    initial: int | str | float | None = None
    maximum: int | str | float | None = None
    ipc: int | str | float | None = None
    budget_bytes: int | None = None
    follows: bool = False
    drops: bool = True


@dataclasses.dataclass(frozen=True)
class PoolSizes:
    """Sizes to build pools with, and why.

    Parameters
    ----------
    initial_bytes, maximum_bytes : int
        Of the managed pool; multiples of 256, initial <= maximum.
    ipc_bytes : int
        Of the cudaMalloc pool for CUDA IPC; 0 for none.
    capacity_bytes : int
        Managed capacity: device memory that managed pages can use.
    limit_bytes : int or None
        The process' cap, ``RMM_UVM_MANAGED_LIMIT``.
    address_bytes : int
        Most bytes of addresses that the managed pool may take, at least the maximum.
    populated_bytes : int
        Most bytes of its populated blocks, at least the maximum.
    initial_reason, maximum_reason : str
        Where the figure comes from, a few words.
    warning : str
        Non-empty when the maximum was asked for and may be more than the host can back, or when the
        budget is more than is free.
    """

    initial_bytes: int
    maximum_bytes: int
    ipc_bytes: int
    capacity_bytes: int
    limit_bytes: int | None
    address_bytes: int
    populated_bytes: int
    initial_reason: str
    maximum_reason: str
    warning: str = ""


def ipc_pool_bytes(asked: int | str | float | None, total_bytes: int) -> int:
    """Return the size of an IPC pool, bytes; a multiple of 256, 0 for none.

    Parameters
    ----------
    asked : int, str, float or None
        As in `PoolRequest`.
    total_bytes : int
        Device memory, bytes.

    Raises
    ------
    ConfigurationError
        If it is not a size.

    Examples
    --------
    >>> ipc_pool_bytes("auto", 1 << 30) >> 20, ipc_pool_bytes(None, 1 << 30)
    (128, 0)
    """
    if asked is None:
        return 0
    if asked == "auto":
        nbytes = min(_AUTO_IPC_BYTES, total_bytes // 8)
    else:
        nbytes = parse_size(asked, total_bytes, "ipc_pool_size")
    return -(-nbytes // 256) * 256


def plan_sizes(
    request: PoolRequest,
    *,
    free_bytes: int,
    total_bytes: int,
    host: HostMemory | None,
    oversubscribable: bool = True,
    integrated: bool = False,
    discards: bool = True,
    limit_bytes: int | None = None,
    limit_used_bytes: int = 0,
    promised_bytes: int = 0,
    sharers: int = 1,
    host_sharers: int = 1,
) -> PoolSizes:
    """Decide the sizes of the managed pool and the IPC pool on one device.

    Parameters
    ----------
    request : PoolRequest
        What was asked for.
    free_bytes, total_bytes : int
        Device memory, bytes.
    host : HostMemory or None
        Host memory and the container's limit; None if it cannot be told, for which `request` has to
        have a maximum.
    oversubscribable : bool
        The device has concurrent managed access.
    integrated : bool
        Its memory is the host's: no more is free there than the host has available, and nothing is
        beside it.
    discards : bool
        Its driver can discard.
    limit_bytes : int or None
        The process' cap on managed memory.
    limit_used_bytes : int
        Bytes of the cap that are taken already.
    promised_bytes : int
        Host memory that pools on other devices may take: of what is available, it is left to them.
    sharers : int
        Devices, this one included, that share evenly what host memory and cap leave; >= 1.
    host_sharers : int
        Processes, this one included, that share host memory evenly; >= 1. Each has a cap of its
        own.

    Returns
    -------
    PoolSizes

    Raises
    ------
    ConfigurationError
        If a size is not a size, initial is over maximum, or a size is over what device, host or
        cap can hold; if the budget is more than the IPC pool leaves.
    """
    if host is not None:
        left_bytes = max(host.available_bytes - promised_bytes, 0)
        host = dataclasses.replace(host, available_bytes=left_bytes)
    oversubscribable = oversubscribable and not integrated
    one_memory = ""
    if integrated:
        one_memory = "device"
        if host is not None and host.available_bytes <= free_bytes:
            free_bytes, one_memory = host.available_bytes, "host"
    ipc_bytes = ipc_pool_bytes(request.ipc, total_bytes)
    if request.ipc is not None and ipc_bytes > free_bytes - VA_BLOCK_BYTES:
        # Managed memory needs a block to work in.
        raise ConfigurationError(
            f"ipc_pool_size is {format_bytes(ipc_bytes)}: it is cudaMalloc memory, and "
            f"{format_bytes(free_bytes)} of the device are free, {format_bytes(VA_BLOCK_BYTES)} of "
            "them for managed memory to work in: ask for less"
        )
    capacity_bytes = total_bytes - ipc_bytes
    if request.budget_bytes is not None and request.follows:
        left_bytes = max(free_bytes - ipc_bytes, LEAST_BUDGET_BYTES)
        request = dataclasses.replace(
            request, budget_bytes=min(request.budget_bytes, left_bytes, capacity_bytes)
        )
    if request.budget_bytes is not None and request.budget_bytes > capacity_bytes:
        raise ConfigurationError(
            f"device_budget is {format_bytes(request.budget_bytes)}: the IPC pool leaves "
            f"{format_bytes(capacity_bytes)} of the device; give that or less, or a smaller "
            "ipc_pool_size"
        )
    room_bytes = None
    if limit_bytes is not None:
        room_bytes = max(limit_bytes - limit_used_bytes, 0) // sharers
    maximum_bytes, maximum_reason, warning = _maximum(
        request,
        capacity_bytes,
        free_bytes - ipc_bytes,
        host,
        room_bytes,
        oversubscribable,
        promised_bytes,
        one_memory,
        sharers,
        host_sharers,
    )
    kept_bytes = None if request.follows else request.budget_bytes
    if kept_bytes is not None and kept_bytes > free_bytes - ipc_bytes and not integrated:
        over = (
            f"device_budget is {format_bytes(kept_bytes)}, and "
            f"{format_bytes(max(free_bytes - ipc_bytes, 0))} of the device are free: past that the "
            "kernel driver evicts too"
        )
        warning = f"{warning}; {over}" if warning else over
    address_bytes, populated_bytes = _addresses(
        maximum_bytes,
        _host_bytes(host, sharers, host_sharers),
        room_bytes,
        drops=oversubscribable and discards and request.drops,
        spare=request.budget_bytes is not None or 2 * _and_a_tenth(maximum_bytes) <= free_bytes,
    )
    initial_bytes, initial_reason = _initial(
        request, free_bytes - ipc_bytes, capacity_bytes, maximum_bytes
    )
    return PoolSizes(
        initial_bytes=initial_bytes,
        maximum_bytes=maximum_bytes,
        ipc_bytes=ipc_bytes,
        capacity_bytes=capacity_bytes,
        limit_bytes=limit_bytes,
        address_bytes=address_bytes,
        populated_bytes=populated_bytes,
        initial_reason=initial_reason,
        maximum_reason=maximum_reason,
        warning=warning,
    )


def _addresses(
    maximum_bytes: int, host_bytes: int, room_bytes: int | None, *, drops: bool, spare: bool
) -> tuple[int, int]:
    """Return how many bytes of addresses the pool may take, and of populated blocks.

    What was on the host once keeps its host page while its slab lives, also when it is discarded,
    and any budget may shrink: so the host must be able to back every address. Of what the process'
    cap leaves beside the maximum, others keep half. Live blocks hold some dead bytes, too: a tenth
    more of them may be populated where there is room to `spare`. Without a budget that is far from
    all of the device, where what was to fit must not be evicted for it.
    """
    if not drops:  # blocks that were used once would count for ever
        return maximum_bytes, maximum_bytes
    most_bytes = min(_MOST_ADDRESSES * maximum_bytes, host_bytes)
    if room_bytes is not None:
        most_bytes = min(most_bytes, maximum_bytes + max(0, room_bytes - maximum_bytes) // 2)
    populated_bytes = _and_a_tenth(maximum_bytes) if spare else maximum_bytes
    return max(_aligned(most_bytes), maximum_bytes), populated_bytes


def _and_a_tenth(nbytes: int) -> int:
    return nbytes * 11 // 10


def _host_bytes(host: HostMemory | None, sharers: int, host_sharers: int) -> int:
    """Return what of host memory a pool may fill."""
    available_bytes = 0 if host is None else host.available_bytes // (sharers * host_sharers)
    return int(available_bytes * _HOST_FRACTION)


def _maximum(
    request: PoolRequest,
    capacity_bytes: int,
    free_bytes: int,
    host: HostMemory | None,
    room_bytes: int | None,
    oversubscribable: bool,  # noqa: FBT001 - a fact, not a switch
    promised_bytes: int,
    one_memory: str,
    sharers: int,
    host_sharers: int,
) -> tuple[int, str, str]:
    """Return maximum, reason and warning.

    Where device and host are `one_memory`, it says which of them has less free: "device" or "host".
    """
    available_bytes = 0 if host is None else host.available_bytes // (sharers * host_sharers)
    host_bytes = _host_bytes(host, sharers, host_sharers)
    workers = f"{host_sharers} workers" if host_sharers > 1 else ""
    devices = f"{sharers} devices" if sharers > 1 else ""
    both = " of ".join(filter(None, (devices, workers)))
    shared, host_shared = (f", shared by {who}" if who else "" for who in (devices, both))
    less = ", less what other devices' pools may take" if promised_bytes else ""
    host_shared = less + host_shared
    backing = host_shared
    if host is not None:
        backing = (", without that of GPUs" if host.device_bytes else "") + backing
        backing += f", limited by {host.limit_source}" if host.limit_source else ""
    # Free, not all: what others hold cannot be evicted, and ours would go to the host instead.
    no_more = f"the host has less to back more{less}"
    safe_bytes, reason = free_bytes, f"free device memory; {no_more}"
    if request.budget_bytes is not None and oversubscribable:
        # What is past the budget is on the host, however much of the device is free.
        if not request.follows:
            capacity_bytes = min(capacity_bytes, request.budget_bytes)
        if request.budget_bytes < free_bytes:
            safe_bytes = free_bytes = request.budget_bytes
            reason = f"the budget; {no_more}"
    holders, physical_bytes = "device and host together hold", capacity_bytes
    if one_memory:
        free_bytes //= sharers * host_sharers
        safe_bytes = int(free_bytes * _HOST_FRACTION)
        reason = f"90 % of available host memory, which is the device's too{backing}"
        if one_memory == "device":
            reason = f"90 % of free device memory, which is the host's too{host_shared}"
        holders, physical_bytes = "device and host are one memory, with", free_bytes
    elif not oversubscribable:
        reason = "free device memory: no concurrent managed access"
    elif host is not None and host_bytes > free_bytes:
        safe_bytes = host_bytes
        reason = f"90 % of available host memory{backing}"
    warning = ""
    if request.maximum is not None:
        written_bytes = parse_size(request.maximum, capacity_bytes, "maximum_pool_size")
        if written_bytes < VA_BLOCK_BYTES:
            raise ConfigurationError(
                f"maximum_pool_size is {format_bytes(written_bytes)}: a managed pool takes 2 MiB "
                "at least; give more, or leave it out"
            )
        asked_bytes = _aligned(written_bytes)
        if oversubscribable:
            physical_bytes += available_bytes
            if request.budget_bytes is not None and not request.follows:
                holders = "device_budget and host together hold"
        if host is not None and asked_bytes > physical_bytes:
            raise ConfigurationError(
                f"maximum_pool_size is {format_bytes(asked_bytes)}: {holders} "
                f"{format_bytes(physical_bytes)}{host_shared}; ask for {format_bytes(safe_bytes)}, "
                "or leave it out"
            )
        if asked_bytes > safe_bytes:
            warning = (
                f"maximum_pool_size is {format_bytes(asked_bytes)}, and "
                f"{format_bytes(safe_bytes)} are sure to be backed by device or host memory: "
                "past that the kernel may end the process"
            )
        safe_bytes, reason = asked_bytes, "as asked"
    if room_bytes is not None and safe_bytes > room_bytes:
        if request.maximum is not None:
            raise ConfigurationError(
                f"maximum_pool_size is {format_bytes(safe_bytes)}, and RMM_UVM_MANAGED_LIMIT "
                f"leaves {format_bytes(room_bytes)}: give that or less"
            )
        safe_bytes, reason = room_bytes, f"RMM_UVM_MANAGED_LIMIT{shared}"
    if safe_bytes < VA_BLOCK_BYTES:
        raise ConfigurationError(
            f"{format_bytes(safe_bytes)} are left for a managed pool ({reason}): it takes 2 MiB "
            "at least; free memory in the old pool or raise the limit"
        )
    return _aligned(safe_bytes), reason, warning


def _initial(
    request: PoolRequest, free_bytes: int, capacity_bytes: int, maximum_bytes: int
) -> tuple[int, str]:
    """Return initial size and reason."""
    if request.initial is not None:
        asked_bytes = _aligned(parse_size(request.initial, capacity_bytes, "initial_pool_size"))
        if asked_bytes > maximum_bytes:
            raise ConfigurationError(
                f"initial_pool_size is {format_bytes(asked_bytes)}, over the maximum of "
                f"{format_bytes(maximum_bytes)}: give that or less, or raise maximum_pool_size"
            )
        return asked_bytes, "as asked"
    if request.budget_bytes is not None:
        if request.budget_bytes > maximum_bytes:
            return maximum_bytes, "the maximum; the budget is larger"
        if request.follows:
            # As soon as slabs are larger than the budget, frees and uses are looked after.
            part_bytes = int(request.budget_bytes * _FIRST_OF_FOLLOWING)
            return _aligned(part_bytes), "7/8 of the budget, of which others may take some"
        return _aligned(request.budget_bytes), "as large as the budget"
    half_bytes = _aligned(int(free_bytes * _INITIAL_FRACTION))
    if half_bytes < _SMALLEST_INITIAL_BYTES:
        return min(_SMALLEST_INITIAL_BYTES, maximum_bytes), "small: little device memory is free"
    if half_bytes > maximum_bytes:
        return maximum_bytes, "the maximum"
    return half_bytes, "half of the free device memory"


def _aligned(size_bytes: int) -> int:
    """Round down to whole VA blocks, or to 256 bytes below one."""
    unit = VA_BLOCK_BYTES if size_bytes >= VA_BLOCK_BYTES else 256
    return size_bytes // unit * unit or unit
