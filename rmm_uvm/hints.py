# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hints: what is about to be used, what is not, and what shall stay.

Covers finding the pool that memory is of, and telling it. Does not cover what the pool does with
it; see `rmm_uvm.residency.Budget`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm._lib.residency import Prefetcher
from rmm_uvm.errors import DataError
from rmm_uvm.install import current_installation
from rmm_uvm.residency.memory_of import Region, memory_of

__all__ = ["Hinted", "evict", "pin", "prefetch", "touch"]

_BLOCK_BYTES = 2 << 20


@dataclass(frozen=True)
class Hinted:
    """What came of a hint.

    Attributes
    ----------
    nbytes : int
        Of the object's memory in managed pools of ours.
    moved_bytes : int
        That were asked to move: blocks lying wholly in the object's memory.
    left_bytes : int
        At the ends of buffers, in blocks that other allocations share; they were left alone.
    """

    nbytes: int
    moved_bytes: int
    left_bytes: int


def touch(thing: object, *, mr: UvmResourceAdaptor | None = None, stream: object = None) -> int:
    """Announce that work which is issued next uses an object: brings in what is away, and learns.

    Parameters
    ----------
    thing : object
        See `memory_of`.
    mr : UvmResourceAdaptor, optional
        The pool that its memory is of; by default whichever of the installed ones it is.
    stream : object, optional
        Whose work it is: a stream with ``__cuda_stream__``, ``ptr`` or ``cuda_stream``, or a
        handle; by default the default stream.

    Returns
    -------
    int
        Bytes of its memory that are in managed pools.

    Raises
    ------
    DataError
        If it has no device memory, or none that a managed pool of ours has: foreign, freed, or on
        the host.

    Notes
    -----
    Thread-safe. In the order of `stream`: work that is issued to it afterwards finds the memory
    there. It is a hint: nothing goes wrong without it, it is slower.
    """
    handle = _handle_of(stream)
    total = 0
    for pool, region in _found(thing, mr):
        pool.touch(region.address, region.nbytes, region.address, handle)
        total += region.nbytes
    return total


def prefetch(thing: object, *, mr: UvmResourceAdaptor | None = None, stream: object = None) -> int:
    """Bring an object's memory to the device; nothing is learnt from it.

    Parameters, returns and raises as `touch`.
    """
    handle = _handle_of(stream)
    total = 0
    for pool, region in _found(thing, mr):
        pool.bring(region.address, region.nbytes, handle)
        total += region.nbytes
    return total


def evict(thing: object, *, mr: UvmResourceAdaptor | None = None, stream: object = None) -> Hinted:
    """Send an object's memory to the host; its contents stay.

    Blocks of 2 MiB move as a whole. Those at the ends of a buffer that may hold other allocations
    are left, and counted in the result.

    Parameters and raises as `touch`.

    Returns
    -------
    Hinted
        What moved and what did not.
    """
    handle = _handle_of(stream)
    nbytes = moved_bytes = whole_bytes = 0
    for pool, region in _found(thing, mr):
        moved_bytes += pool.evict(region.address, region.nbytes, handle)
        nbytes += region.nbytes
        whole_bytes += _whole_bytes(region)
    return Hinted(nbytes, moved_bytes, nbytes - whole_bytes)


@contextmanager
def pin(thing: object, *, mr: UvmResourceAdaptor | None = None) -> Iterator[int]:
    """Keep an object's memory where it is while the context lasts; yields its bytes.

    What is pinned leaves neither for a budget nor by `evict`. Without a budget nothing of ours
    evicts, and the kernel driver is not bound by it.

    Parameters and raises as `touch`. Contexts may be nested and may overlap.
    """
    found = _found(thing, mr)
    with ExitStack() as stack:
        for pool, region in found:
            pool.pin(region.address, region.nbytes)
            stack.callback(pool.unpin, region.address, region.nbytes)
        yield sum(region.nbytes for _, region in found)


def _whole_bytes(region: Region) -> int:
    first = -(-region.address // _BLOCK_BYTES) * _BLOCK_BYTES
    last = (region.address + region.nbytes) // _BLOCK_BYTES * _BLOCK_BYTES
    return max(last - first, 0)


def _found(thing: object, mr: UvmResourceAdaptor | None) -> list[tuple[Prefetcher, Region]]:
    """Return the object's regions that managed pools have, each with what keeps its ledger."""
    regions = memory_of(thing)
    pools = _pools(mr)
    found = [(pool, region) for region in regions for pool in pools if pool.holds(region.address)]
    if regions and not found:
        where = "the pool given" if mr is not None else "a managed pool installed by rmm_uvm"
        raise DataError(
            f"none of the {len(regions)} buffers of this {type(thing).__name__} is memory of "
            f"{where}: it is foreign, was freed, or is on the host"
        )
    return found


def _pools(mr: UvmResourceAdaptor | None) -> Sequence[Prefetcher]:
    if mr is not None:
        return (mr.managed_mr.prefetcher,)
    installed = current_installation()
    if installed is None:
        raise DataError("no managed pool is installed: call rmm_uvm.reinitialize, or give mr=")
    return tuple(device.managed_mr.managed_mr.prefetcher for device in installed.devices)


def _handle_of(stream: Any) -> int:
    """Return a CUDA stream's handle."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise DataError(f"{type(stream).__name__} is no CUDA stream: give one, or its handle")
