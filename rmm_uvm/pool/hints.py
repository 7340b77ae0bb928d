# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hints: what is about to be used, what is not, what shall stay, and what the driver shall know.

Covers finding the pool that memory is of, and telling it. Does not cover what the pool does with
it; see docs/use/budget.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.pool.install import earlier_pool_holds
from rmm_uvm.pool.installed import managed_pools
from rmm_uvm.residency.memory_of import Region, joined, memory_of, things_in
from rmm_uvm.residency.streams import stream_handle
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes
from rmm_uvm.support.user_line import users_line
from rmm_uvm.support.with_only import WithOnly

__all__ = ["Advised", "Hinted", "advise", "evict", "pin", "prefetch", "touch"]

_PLACES = ("device", "host", "none")


@dataclass(frozen=True)
class _Found:
    """A region of live memory: what keeps its ledger, and where its allocation begins."""

    pool: ManagedResidency
    region: Region
    owner: int


@dataclass(frozen=True)
class Hinted:
    """The result of `evict`. All sizes are of the object's own bytes, each counted once.

    Attributes
    ----------
    nbytes : int
        Of the object's memory in managed pools of ours.
    moved_bytes : int
        That were sent to the host: blocks that lie wholly in the object's memory.
    left_bytes : int
        At the ends of buffers, in blocks that other allocations may share. They were left where
        they are, so that nothing of others moves.
    stayed_bytes : int
        The rest: in blocks of its own that are pinned, on the host already, or could not be sent.
    """

    nbytes: int
    moved_bytes: int
    left_bytes: int

    @property
    def stayed_bytes(self) -> int:  # noqa: D102 - among the attributes above
        return self.nbytes - self.moved_bytes - self.left_bytes


@dataclass(frozen=True)
class Advised:
    """The result of `advise`. All sizes are of the object's own bytes, each counted once.

    Attributes
    ----------
    nbytes : int
        Of the object's memory in managed pools of ours.
    advised_bytes : int
        About which the driver took all of the advice: blocks that lie wholly in the object's
        memory.
    left_bytes : int
        At the ends of buffers, in blocks that other allocations may share. Nothing was said about
        them, so that nothing of others is advised.
    reason : str
        Why the driver did not take it about the rest; empty where there is none. About that,
        nothing is advised any more.
    """

    nbytes: int
    advised_bytes: int
    left_bytes: int
    reason: str = ""

    @property
    def refused_bytes(self) -> int:
        """Bytes of its own blocks about which the driver did not take the advice."""
        return self.nbytes - self.advised_bytes - self.left_bytes


def touch(
    thing: object, *, mr: rmm.mr.DeviceMemoryResource | None = None, stream: object = None
) -> int:
    """Announce that work which is issued next uses an object: brings in what is away, and learns.

    Parameters
    ----------
    thing : object
        A cuDF frame, series, index or column; an array of CuPy, Numba or PyTorch; an
        `rmm.DeviceBuffer`; a pair ``(address, nbytes)``; or containers and finite iterators of
        these, such as ``model.parameters()``, which are used up by it. See
        `rmm_uvm.residency.memory_of`.
    mr : rmm.mr.DeviceMemoryResource, optional
        The managed pool that its memory is of; by default whichever of the installed ones it is.
    stream : object, optional
        Whose work it is: a stream of RMM, CuPy, PyTorch, Numba or cuda.core, or a handle; by
        default the default stream.

    Returns
    -------
    int
        Bytes of its memory that are in managed pools, each counted once.

    Raises
    ------
    DataError
        If it has no device memory, or none that a managed pool of ours has: it is foreign, its
        pool was given back, or it is on the host. If some of it was freed, or passes the end of its
        allocation. If `stream` is no stream.
    AvailabilityError
        If no pool is installed and none is given.
    ConfigurationError
        If `mr` is no managed pool.

    Notes
    -----
    Thread-safe. In the order of `stream`: work that is issued to it afterwards finds the memory
    there. It is a hint: nothing goes wrong without it, it is slower. Buffers of other memory beside
    some of ours are passed over; the returned size tells.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> buffer = rmm.DeviceBuffer(size=4 << 20, mr=mr)
    >>> rmm_uvm.touch(buffer, mr=mr)
    4194304
    """
    handle = stream_handle(stream)
    found = _found(thing, mr)
    for pool in dict.fromkeys(each.pool for each in found):
        pool.touch_all([(*each.region, each.owner) for each in found if each.pool is pool], handle)
    return _bytes_of(found)


def prefetch(
    thing: object, *, mr: rmm.mr.DeviceMemoryResource | None = None, stream: object = None
) -> int:
    """Bring an object's memory to the device; nothing is learnt from it.

    Parameters, returns, raises and notes as `touch`.
    """
    handle = stream_handle(stream)
    found = _found(thing, mr)
    for each in found:
        each.pool.bring(each.region.address, each.region.nbytes, handle)
    return _bytes_of(found)


def evict(
    thing: object, *, mr: rmm.mr.DeviceMemoryResource | None = None, stream: object = None
) -> Hinted:
    """Send an object's memory to the host; its contents stay.

    Blocks of 2 MiB move as a whole. Those at the ends of a buffer that may hold other allocations
    are left, and counted in the result.

    Parameters and raises as `touch`. With a budget the move happens beside `stream`, without one in
    its order; either way kernels may go on using the memory, and bring it back by that.

    Returns
    -------
    Hinted
        What moved and what did not.

    Notes
    -----
    Thread-safe.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> buffer = rmm.DeviceBuffer(size=(4 << 20) + 1000, mr=mr)
    >>> rmm_uvm.evict(buffer, mr=mr)
    Hinted(nbytes=4195304, moved_bytes=4194304, left_bytes=1000)
    """
    handle = stream_handle(stream)
    nbytes = moved_bytes = left_bytes = 0
    for pool, region in _joined(_found(thing, mr)):
        moved_bytes += pool.evict(region.address, region.nbytes, handle)
        nbytes += region.nbytes
        left_bytes += region.nbytes - _whole_bytes(pool, region)
    return Hinted(nbytes, moved_bytes, left_bytes)


def advise(
    thing: object,
    *,
    read_mostly: bool | None = None,
    preferred: Literal["device", "host", "none"] | None = None,
    mr: rmm.mr.DeviceMemoryResource | None = None,
) -> Advised:
    """Tell the driver how an object's memory is used, until it is told otherwise or it is freed.

    Parameters
    ----------
    thing : object
        As for `touch`.
    read_mostly : bool, optional
        True: who reads gets a copy, and the others stay. Evicting what the host has a copy of then
        moves nothing. A write takes all other copies away, a page at a time: it is for data that
        are written once, before. False takes it back; None leaves it as it is.
    preferred : {"device", "host", "none"}, optional
        Where the memory belongs. "host": kernels read and write it where it is, through a mapping,
        once it is on the host; `touch` and look-ahead do not bring it in, `prefetch` does. What is
        read mostly as well is copied to who reads it all the same. "device": the first access
        brings a block of 2 MiB as a whole. It is no pin: `pin` is. "none" takes it back; None
        leaves it as it is.
    mr : rmm.mr.DeviceMemoryResource, optional
        The managed pool that its memory is of; by default whichever of the installed ones it is.

    Returns
    -------
    Advised
        About how much, what was left at the ends, and why the driver refused, if it did: without
        concurrent managed access (WSL2, Windows) it takes no advice.

    Raises
    ------
    ConfigurationError
        If nothing is asked, `read_mostly` is no bool, `preferred` is another place, or `mr` is no
        managed pool.
    DataError, AvailabilityError
        As `touch`.

    Notes
    -----
    Thread-safe. ``cuMemAdvise``: at once, in no stream's order, and it moves nothing; `evict` sends
    what belongs to the host there. Advice is about addresses, which a pool hands out again: it is
    about blocks of 2 MiB that lie wholly in the object's memory, and is taken back when any of a
    block is freed. What is both read mostly and prefers the device is copied when it is evicted.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> table = rmm.DeviceBuffer(size=(4 << 20) + 1000, mr=mr)
    >>> rmm_uvm.advise(table, read_mostly=True, mr=mr)
    Advised(nbytes=4195304, advised_bytes=4194304, left_bytes=1000, reason='')
    """
    _check_advice(read_mostly, preferred)
    nbytes = advised_bytes = whole_bytes = 0
    reason = ""
    for pool, region in _joined(_found(thing, mr)):
        whole, advised, refusal = pool.advise(*region, read_mostly, preferred)
        nbytes += region.nbytes
        whole_bytes += whole
        advised_bytes += advised
        reason = reason or refusal
    return Advised(nbytes, advised_bytes, nbytes - whole_bytes, reason)


def pin(
    thing: object, *, mr: rmm.mr.DeviceMemoryResource | None = None
) -> AbstractContextManager[int]:
    """Keep an object's memory where it is while a ``with`` block lasts; yields its bytes.

    It takes effect where it is entered, and not by the call: what is called without ``with`` pins
    nothing, and warns when it goes. What is pinned leaves neither for a budget nor by `evict`. It
    is not brought in: call `prefetch` first. Other allocations in the same blocks of 2 MiB stay
    with it. Without a budget nothing of ours evicts, so that there is nothing to keep; the kernel
    driver is not bound by it.

    Parameters and raises as `touch`, when it is entered. Contexts may be nested and may overlap;
    each is entered once. The object is kept alive meanwhile. Where a pin has no block of its own,
    enter it in a ``contextlib.ExitStack``, whose ``close`` lets go. As a decorator it pins for each
    call of a function.

    Warns
    -----
    NotEnteredWarning
        It goes without having been entered.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> buffer = rmm.DeviceBuffer(size=4 << 20, mr=mr)
    >>> with rmm_uvm.pin(buffer, mr=mr):
    ...     rmm_uvm.evict(buffer, mr=mr).moved_bytes
    0
    """
    return WithOnly(
        lambda: _pinned(thing, mr),
        "what rmm_uvm.pin returned was never entered, so nothing was pinned: "
        "write `with rmm_uvm.pin(thing):`, or enter it in a contextlib.ExitStack",
        users_line(),
    )


@contextmanager
def _pinned(thing: object, mr: rmm.mr.DeviceMemoryResource | None) -> Iterator[int]:
    things: list[object] = []  # what an iterator made lives as long
    found = _found(thing, mr, things)
    with ExitStack() as stack:
        for each in found:
            each.pool.pin(*each.region)
            stack.callback(each.pool.unpin, *each.region)
        yield _bytes_of(found)


def _check_advice(read_mostly: object, preferred: object) -> None:
    if read_mostly is None and preferred is None:
        raise ConfigurationError("nothing is advised: give read_mostly=, preferred= or both")
    if read_mostly is not None and not isinstance(read_mostly, bool):
        raise ConfigurationError(f"read_mostly={shown(read_mostly)}: expected True or False")
    if preferred is not None and not (isinstance(preferred, str) and preferred in _PLACES):
        raise ConfigurationError(
            f"preferred={shown(preferred)}: expected one of {', '.join(map(repr, _PLACES))}"
        )


def _bytes_of(found: list[_Found]) -> int:
    return sum(region.nbytes for region in joined(each.region for each in found))


def _joined(found: list[_Found]) -> Iterator[tuple[ManagedResidency, Region]]:
    """Yield pools and regions; a block between adjacent buffers, both the object's, is its own."""
    for pool in dict.fromkeys(each.pool for each in found):
        for region in joined(each.region for each in found if each.pool is pool):
            yield pool, region


def _whole_bytes(pool: ManagedResidency, region: Region) -> int:
    """Return the bytes of the blocks that lie wholly in a region: what `evict` may move."""
    first = -(-region.address // VA_BLOCK_BYTES) * VA_BLOCK_BYTES
    last = region.end // VA_BLOCK_BYTES * VA_BLOCK_BYTES
    if pool.keeps_budget:  # the ledger's blocks end where the slab does
        if not pool.holds(region.address - 1):
            first = region.address
        if not pool.holds(region.end):
            last = region.end
    return max(last - first, 0)


def _found(
    thing: object, mr: rmm.mr.DeviceMemoryResource | None, things: list[object] | None = None
) -> list[_Found]:
    """Return the object's regions that managed pools have, each with what keeps its ledger.

    `things` is given what has the memory: an iterator may have made it, and nobody else keep it.
    """
    pools = managed_pools(mr)
    if not pools:  # the off switch is set
        return []
    things = [] if things is None else things
    things += things_in(thing)
    regions = memory_of(things)
    found = [
        _Found(pool.managed_mr.residency, region, _owner_of(pool, region))
        for region in regions
        for pool in pools
        if pool.managed_mr.residency.holds(region.address)
    ]
    if regions and not found and any(earlier_pool_holds(each.address) for each in regions):
        raise DataError(
            f"{type(thing).__name__} is memory of a pool that is not installed any more: make it "
            "anew, or give the pool as mr="
        )
    if regions and not found:
        where = "the pool given" if mr is not None else "a managed pool that rmm_uvm installed"
        buffers = "its only buffer is not" if len(regions) == 1 else "none of its buffers is"
        raise DataError(
            f"{type(thing).__name__}: {buffers} memory of {where}; it is foreign, was freed, or is "
            "on the host"
        )
    return found


def _owner_of(pool: UvmResourceAdaptor, region: Region) -> int:
    """Return where the live allocation begins that a region is of."""
    live = pool.allocation_at(region.address)
    if live is None:
        raise DataError(
            f"{format_bytes(region.nbytes)} at {region.address:#x} were freed: hints are for live "
            "memory"
        )
    if region.end > sum(live):
        raise DataError(
            f"{region.nbytes} bytes at {region.address:#x} pass the end of their allocation, "
            f"{live[1]} bytes at {live[0]:#x}: give an address and a size within it"
        )
    return live[0]
