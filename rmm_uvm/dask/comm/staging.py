# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The means of a process for its transfers: chunks of the IPC pool, copies, memory for frames.

`current_staging` follows `rmm_uvm.reinitialize`: each installation has a staging of its own, made
when the first device frame comes along. Importing this needs neither RMM nor a GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rmm_uvm.dask.comm.budget import Chunk, ChunkBudget, Holding
from rmm_uvm.dask.comm.notices import NOTICES, Notices, Remarks
from rmm_uvm.dask.comm.pulling import (
    Mapping,
    Mappings,
    MemoryKind,
    SharedMemory,
    SharedSlab,
    find_slab,
    process_id,
)
from rmm_uvm.dask.comm.quarantine import Mark, Quarantine
from rmm_uvm.dask.comm.settings import CommSettings, PoolShares, configured, share_pool
from rmm_uvm.dask.comm.statistics import CommTotals, totals
from rmm_uvm.dask.installed import workers_pool
from rmm_uvm.errors import AvailabilityError, UvmError

if TYPE_CHECKING:
    from rmm_uvm._lib.driver import UvmDriver
    from rmm_uvm.pool.device_installation import DeviceInstallation
    from rmm_uvm.pool.installation import Installation

__all__ = ["Copies", "Exportable", "Staging", "current_staging", "staging_for_frames"]

_SPIN_SECONDS = 200e-6  # a chunk is copied within this, also over NVLink; as `EAGER_SECONDS`
_EAGER_SECONDS = 2e-3
_PAUSE_SECONDS = 5e-4


class Copies(SharedMemory, Protocol):
    """Copies on the device; see `rmm_uvm._lib.transfers.Transfers`."""

    def wait_for(self, stream: int) -> None:
        """Let later copies wait for what was issued to `stream` so far."""

    def copy(self, copies: Sequence[tuple[int, int, int]]) -> None:
        """Enqueue copies: to, from, bytes."""

    def mark(self) -> Mark:
        """Return a mark behind the copies so far."""


class Exportable:
    """Whether CUDA IPC can export what lies at an address.

    Asks the driver once for neighbours in an allocation of CUDA's, where a pool has all frames of a
    message. Of no use for longer than that: what was asked for may be freed, and be another's.
    """

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._last: MemoryKind | None = None

    def __call__(self, address: int) -> bool | None:
        """Return it; None if nothing is known of the address."""
        last = self._last
        if last is None or not last.base <= address < last.base + last.nbytes:
            last = self._last = self._copies.memory_kind(address)
        return None if last is None else last.ipc_capable


class Staging:
    """Chunks, copies, and memory for frames.

    Parameters
    ----------
    copies : Copies
        Of the device.
    pool : rmm.mr.DeviceMemoryResource or None
        The IPC pool; None for a process that has none, whose chunks are all overflow.
    pool_bytes : int
        Its size.
    allocate : callable
        Returns an `rmm.DeviceBuffer` of so many bytes from the current resource.
    settings : CommSettings
        See there.
    device_id : int
        CUDA ordinal.
    enter_device : callable
        Gives the calling thread a CUDA context if it has none: UCX asks for one.
    process : bytes
        See `SlabOffer`; by default that of this process.

    Attributes
    ----------
    mappings : Mappings
        Slabs of peers.

    Notes
    -----
    Thread-safe. The chunks are taken from the pool here; what of it is not free is done without.
    """

    def __init__(
        self,
        copies: Copies,
        pool: Any,
        pool_bytes: int,
        allocate: Callable[[int], Any],
        settings: CommSettings | None = None,
        *,
        device_id: int = 0,
        enter_device: Callable[[], object] = lambda: None,
        notices: Notices = NOTICES,
        counted: CommTotals | None = None,
        quarantine: Quarantine | None = None,
        clock: Callable[[], float] = time.monotonic,
        process: bytes | None = None,
    ) -> None:
        settings = settings or CommSettings()
        self.copies = copies
        self.allocate = allocate
        self.pool_bytes = pool_bytes
        self.device_id = device_id
        self.enter_device = enter_device
        self.totals = counted or totals()
        self.quarantine = quarantine or Quarantine(clock=clock)
        self.remarks = Remarks(notices, pool_bytes, clock)
        sending: list[Chunk] = []
        receiving: list[Chunk] = []
        if pool is not None:
            shares = share_pool(pool_bytes, settings.chunk_bytes)
            _carve(pool, shares, sending, receiving)
            if not sending:
                self.remarks.no_room(shares.chunk_bytes)

        def budget(chunks: list[Chunk]) -> ChunkBudget:
            return ChunkBudget(
                chunks,
                self._extra_chunk,
                wait_seconds=settings.wait_seconds,
                quarantine=self.quarantine,
                on_wait=self._waited,
                clock=clock,
            )

        self.sending = budget(sending)
        self.receiving = budget(receiving)
        self.mappings = Mappings(copies)
        self._chunks = (*sending, *receiving)
        self._process = process or process_id()
        # Others may have used the pool a moment ago, in the order of the default stream.
        self.chunks_settled = False

    @property
    def chunk_bytes(self) -> int | None:
        """Size of its chunks, in bytes; None if it has none."""
        return self.sending.chunk_bytes or None

    @functools.cached_property
    def slab(self) -> SharedSlab | None:
        """The slab from which peers may copy its chunks; None if they cannot."""
        return find_slab(self.copies, self._chunks, self._process)

    def refuse_without_memory(self) -> None:
        """Refuse a device whose addresses nothing can be received into.

        Raises
        ------
        ConfigurationError
            If this is a simulated device without backing.
        """
        self.copies.copy(())

    def hold(self, budget: ChunkBudget) -> Holding:
        """Return what one message holds its chunks with."""
        return Holding(budget, self._last_mark)

    def keep(self, things: object) -> None:
        """Keep memory of a broken transfer until nobody can be using it."""
        self.quarantine.keep(things, self._last_mark())

    def keep_mapped(self, mapping: Mapping) -> None:
        """Keep a peer's slab mapped after a broken transfer, until no copy can be reading it."""
        self.quarantine.put(functools.partial(self.mappings.release, mapping), self._last_mark())

    def order_after_default_stream(self) -> None:
        """Let later copies wait for all work of the legacy default stream so far."""
        self.enter_device()
        self.copies.wait_for(0)

    async def settle_for_transport(self) -> None:
        """Wait until all memory that was allocated so far may be read and written by transports.

        They know nothing of streams: work that was queued for what lay there before must be done.

        Raises
        ------
        DriverError
            If it failed.
        """
        self.order_after_default_stream()
        await self.settle()
        self.chunks_settled = True

    def begin(self, copies: Sequence[tuple[int, int, int]]) -> Mark:
        """Begin copies; return a mark behind them, for `reached`.

        Raises
        ------
        DriverError
            If they cannot be begun.
        """
        self.copies.copy(copies)
        return self.copies.mark()

    async def reached(self, mark: Mark) -> None:
        """Wait for a mark, without blocking the event loop for long.

        Raises
        ------
        DriverError
            If what is before it failed.
        """
        began = time.perf_counter()
        while not mark.done():
            elapsed = time.perf_counter() - began
            if elapsed > _SPIN_SECONDS:
                # UCX makes progress in between: the event loop drives it.
                await asyncio.sleep(0 if elapsed < _EAGER_SECONDS else _PAUSE_SECONDS)

    async def settle(self) -> None:
        """Wait for all copies so far. Raises as `reached`."""
        await self.reached(self.copies.mark())

    def _extra_chunk(self, nbytes: int) -> Chunk:
        memory = self.allocate(nbytes)
        # Its memory may have been used a moment ago, in the order of the default stream.
        self.order_after_default_stream()
        overflow = not Exportable(self.copies)(memory.ptr)
        if overflow:
            self.remarks.extra_chunk(nbytes)
        return Chunk(memory, pooled=False, overflow=overflow)

    def _waited(self, seconds: float) -> None:
        self.totals.chunk_waits += 1
        self.totals.chunk_wait_seconds += seconds
        self.remarks.waited(seconds)

    def _last_mark(self) -> Mark | None:
        try:
            return self.copies.mark()
        except UvmError:  # a device that fails writes nothing any more
            return None


def _carve(pool: Any, shares: PoolShares, sending: list[Chunk], receiving: list[Chunk]) -> None:
    """Take the chunks from the pool; fewer if others hold parts of it."""
    import rmm

    with contextlib.suppress(MemoryError):
        for _ in range(shares.chunks_each_way):
            pair = [rmm.DeviceBuffer(size=shares.chunk_bytes, mr=pool) for _ in range(2)]
            sending.append(Chunk(pair[0]))
            receiving.append(Chunk(pair[1]))


_lock = threading.Lock()
_made: tuple[Installation | None, Staging] | None = None


def current_staging() -> Staging | None:
    """Return the staging of what is installed now; None if nothing is.

    Of several devices it is that of the one which `workers_pool` returns. It is made at the first
    call after `rmm_uvm.reinitialize`, and let go of with `rmm_uvm.restore`: chunks that are in use
    then stay until they are not.

    Raises
    ------
    ConfigurationError
        If the configured chunks do not fit the IPC pool.
    """
    global _made
    found = workers_pool()
    if found is None:
        return None
    installation, device = found
    with _lock:
        if _made is None or _made[0] is not installation:
            staging = _on_device(device)
            if _made is not None:
                _made[1].mappings.end()
            _made = installation, staging
            installation.when_released(_forget)
        return _made[1]


def staging_for_frames() -> Staging:
    """Return the staging for device frames that are at hand.

    That of `current_staging`, or one without a pool for a process in which nothing is installed.

    Raises
    ------
    AvailabilityError
        If there is no GPU here, or no RMM.
    """
    global _made
    staging = current_staging()
    if staging is None:
        with _lock:
            if _made is None:
                _made = None, _without_installation()
            staging = _made[1]
    return staging


def _on_device(device: DeviceInstallation) -> Staging:
    import rmm

    device_id = device.info.device_id
    pool: Any = device.ipc_mr

    def allocate(nbytes: int) -> rmm.DeviceBuffer:
        # By its ordinal: asking for the current device needs a GPU, also on a simulated device.
        return rmm.DeviceBuffer(size=nbytes, mr=rmm.mr.get_per_device_resource(device_id))

    pool_bytes = 0 if pool is None else pool.pool_size()
    return _on_driver(device.managed_mr.driver, pool, pool_bytes, allocate)


def _without_installation() -> Staging:
    try:
        import rmm

        from rmm_uvm.drivers import choose_driver

        driver = choose_driver()
    except (ImportError, UvmError) as error:
        raise AvailabilityError(f"device frames cannot be handled here: {error}") from error
    return _on_driver(driver, None, 0, lambda nbytes: rmm.DeviceBuffer(size=nbytes))


def _on_driver(
    driver: UvmDriver, pool: Any, pool_bytes: int, allocate: Callable[[int], Any]
) -> Staging:
    from rmm_uvm._lib.current_device import ensure_context
    from rmm_uvm._lib.transfers import Transfers

    info = driver.info
    return Staging(
        Transfers(driver),
        pool,
        pool_bytes,
        allocate,
        configured(),
        device_id=info.device_id,
        enter_device=functools.partial(ensure_context, info),
    )


def _forget() -> None:
    global _made
    with _lock:
        made, _made = _made, None
    if made is not None:
        made[1].mappings.end()
