# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device copies, and memory shared between processes.

Covers `cpp/include/rmm_uvm/driver/device_transfers.hpp`, for a GPU and for a simulated device. Does
not cover who may use what for how long; see `rmm_uvm.ipc`.
"""

from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memcpy
from libcpp.memory cimport make_shared, static_pointer_cast
from libcpp.optional cimport optional
from libcpp.vector cimport vector

from rmm_uvm._lib.cuda cimport CudaDriver
from rmm_uvm._lib.driver cimport status, stream_handle, uvm_driver
from rmm_uvm._lib.marks cimport (
    IpcEvent,
    Mark,
    bytes_of_handle,
    check_transfer,
    device_transfers,
    ipc_handle,
    ipc_handle_bytes,
    memory_kind,
    transfer,
)
from rmm_uvm._lib.sim cimport SimulatedDevice

from typing import NamedTuple

from rmm_uvm._lib.marks import FAILED_REMEDY, STREAM_REMEDY
from rmm_uvm.errors import ConfigurationError, DataError


class MemoryKind(NamedTuple):
    """What an address belongs to; made by `Transfers.memory_kind`.

    Parameters
    ----------
    managed : bool
        Managed memory: it may be on the host, and has no IPC handle.
    ipc_capable : bool
        cudaMalloc memory, which other processes can open.
    base : int
        First byte of its allocation; for memory of a pool, of its slab.
    nbytes : int
        Length of the allocation, bytes.
    device_id : int
        CUDA ordinal of the device that it was allocated on.
    """

    managed: bool
    ipc_capable: bool
    base: int
    nbytes: int
    device_id: int


cdef ipc_handle _as_handle(bytes handle) except *:
    cdef ipc_handle result
    cdef const uint8_t[::1] source = handle
    if len(handle) != ipc_handle_bytes:
        raise DataError(f"an IPC handle has {ipc_handle_bytes} bytes, not {len(handle)}")
    memcpy(result.data(), &source[0], ipc_handle_bytes)
    return result


cdef class Transfers:
    """Copies between memory of one device and of others, and memory shared between processes.

    Copies run in one non-blocking stream, in the order of the calls; after `take_staging`, in two.

    Parameters
    ----------
    driver : CudaDriver or SimulatedDevice
        Of the device that copies. A simulated one needs ``backing=True``: it copies at once, takes
        no modelled time for it, and shares memory with other processes of the same user.

    Raises
    ------
    ConfigurationError
        If `driver` is neither.

    Notes
    -----
    Thread-safe; no call holds Python's lock while it waits for the driver. Streams are integer
    handles, 0 is the legacy default stream. At process exit, and in a forked child, nothing is
    given back.

    Examples
    --------
    >>> import rmm_uvm
    >>> from rmm_uvm._lib.transfers import Transfers
    >>> device = rmm_uvm.simulated_device("64MiB", backing=True)
    >>> mr = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    >>> pointer = mr.allocate(4096)
    >>> transfers = Transfers(device)
    >>> transfers.memory_kind(pointer + 100).ipc_capable
    True
    >>> transfers.copy([(pointer, pointer + 2048, 1024)])
    >>> transfers.mark().done()
    True
    >>> mr.deallocate(pointer, 4096)
    """

    def __init__(self, driver):
        cdef SimulatedDevice simulated
        cdef CudaDriver cuda
        if isinstance(driver, SimulatedDevice):
            simulated = driver
            self.handle = static_pointer_cast[device_transfers, simulated_transfers](
                make_shared[simulated_transfers](simulated.model)
            )
        elif isinstance(driver, CudaDriver):
            cuda = driver
            self.handle = static_pointer_cast[device_transfers, cuda_transfers](
                make_shared[cuda_transfers](
                    static_pointer_cast[c_cuda_driver, uvm_driver](cuda.handle)
                )
            )
        else:
            raise ConfigurationError(
                f"transfers need a driver from rmm_uvm.drivers, not {type(driver).__name__}"
            )
        self.driver = driver

    def __dealloc__(self):
        with nogil:  # the last one waits for copies by way of memory that goes
            self.handle.reset()

    cdef int _check(self, status result, what, remedy) except -1:
        return check_transfer(self.handle, self.driver, result, what, remedy)

    def memory_kind(self, uintptr_t address):
        """Look up what an address belongs to.

        Parameters
        ----------
        address : int
            Any address.

        Returns
        -------
        MemoryKind or None
            None for what is no memory of the driver's: the host's, or freed.

        Raises
        ------
        DriverError
            If the driver cannot tell.
        """
        cdef optional[memory_kind] found
        cdef status result
        with nogil:
            result = dereference(self.handle).find_memory(address, found)
        self._check(result, f"looking up address {address:#x}", "the driver cannot tell")
        if not found.has_value():
            return None
        cdef memory_kind kind = found.value()
        return MemoryKind(kind.managed, kind.ipc_capable, kind.base, kind.bytes, kind.device_id)

    def wait_for(self, uintptr_t stream):
        """Let copies that are issued from now on wait for the work issued to `stream` so far.

        Returns at once.

        Raises
        ------
        DriverError
            If the stream is being captured into a graph, or the driver refuses.
        """
        cdef status result
        with nogil:
            result = dereference(self.handle).wait_for(<stream_handle>stream)
        self._check(result, f"waiting for stream {stream:#x}", STREAM_REMEDY)

    def copy(self, copies):
        """Issue copies; returns before they are done.

        Parameters
        ----------
        copies : sequence of tuple of int
            (address to write, address to read, bytes), each end inside one allocation of CUDA's or
            in opened IPC memory. Ranges of one call must not depend on one another.

        Raises
        ------
        ConfigurationError
            If the device is simulated without backing.
        DriverError
            If the driver refuses one, such as an address that it does not know. Those before it
            are issued.
        MemoryError
            If managed memory of a simulated device finds no room.
        """
        cdef vector[transfer] wanted
        cdef transfer one
        cdef size_t total = 0
        wanted.reserve(len(copies))
        for to, start, nbytes in copies:
            one.to = to
            one.start = start
            one.bytes = nbytes
            total += one.bytes
            wanted.push_back(one)
        cdef status result
        with nogil:
            result = dereference(self.handle).copy(wanted)
        self._check(
            result,
            f"copying {total} bytes in {wanted.size()} copies",
            "both ends must lie in device memory that is still allocated",
        )

    def take_staging(self, size_t nbytes):
        """Have copies from now on go through device memory, so that kernels need not wait for them.

        Parameters
        ----------
        nbytes : int
            To take, at least 512, until this object and its marks go. Pieces are half as long.

        Raises
        ------
        ConfigurationError
            If the device is simulated without backing.
        DriverError
            If it was done before, or for fewer bytes.
        MemoryError
            If the device has no room for it; copies go on as before.

        Notes
        -----
        A later copy may read before an earlier one has written. One that needs the bytes of
        another has to `wait_for` a stream that was made to wait for a mark behind it.
        """
        cdef status result
        with nogil:
            result = dereference(self.handle).take_staging(nbytes)
        what = f"taking {nbytes} bytes for copies to go through"
        self._check(result, what, "it is done once, with 512 bytes or more")

    def mark(self):
        """Mark the copies issued so far.

        Returns
        -------
        Mark

        Raises
        ------
        DriverError
            If the driver refuses.
        """
        cdef Mark made = Mark.__new__(Mark)
        made.maker = self.handle
        made.driver = self.driver
        cdef status result
        with nogil:
            result = dereference(self.handle).mark(made.handle)
        self._check(result, "marking copies", FAILED_REMEDY)
        return made

    def ipc_memory_handle(self, uintptr_t base):
        """Return what another process opens an allocation with.

        Parameters
        ----------
        base : int
            First byte of an allocation that is `MemoryKind.ipc_capable`.

        Returns
        -------
        bytes
            64 of them, opaque. The handle is of the whole allocation.

        Raises
        ------
        ConfigurationError
            If the device is simulated without backing.
        DriverError
            If it is no such memory.
        """
        cdef ipc_handle made
        cdef status result
        with nogil:
            result = dereference(self.handle).ipc_memory_handle(base, made)
        self._check(
            result,
            f"making an IPC handle of the memory at {base:#x}",
            "only cudaMalloc memory has one, by its first byte; managed memory has none",
        )
        return bytes_of_handle(made)

    def open_ipc_memory(self, bytes handle not None):
        """Map an allocation of another process, as a whole. Slow: milliseconds.

        Parameters
        ----------
        handle : bytes
            From `ipc_memory_handle` there.

        Returns
        -------
        int
            Its first byte here. Close it with `close_ipc_memory`, once for each opening.

        Raises
        ------
        ConfigurationError
            If the device is simulated without backing.
        DataError
            If `handle` has another length.
        DriverError
            If it cannot be opened.
        """
        cdef ipc_handle wanted = _as_handle(handle)
        cdef uintptr_t address = 0
        cdef status result
        with nogil:
            result = dereference(self.handle).open_ipc_memory(wanted, address)
        self._check(
            result,
            "opening IPC memory",
            "its process must be another one, alive, and its device visible here with peer access",
        )
        return address

    def close_ipc_memory(self, uintptr_t address):
        """Close one opening; after the last one the memory is unmapped.

        No work in flight may use it.

        Raises
        ------
        DriverError
            If no opening of this object is at `address`.
        """
        cdef status result
        with nogil:
            result = dereference(self.handle).close_ipc_memory(address)
        self._check(
            result, f"closing IPC memory at {address:#x}", "it was closed before, or never opened"
        )

    def make_ipc_event(self):
        """Make an event that streams of other processes can wait for.

        Returns
        -------
        IpcEvent

        Raises
        ------
        DriverError
            If the driver refuses.
        """
        cdef IpcEvent made = IpcEvent.__new__(IpcEvent)
        made.maker = self.handle
        made.driver = self.driver
        cdef status result
        with nogil:
            result = dereference(self.handle).make_ipc_event(made.event)
        self._check(result, "making an IPC event", "the device must support IPC events")
        return made

    def open_ipc_event(self, bytes handle not None):
        """Open an event of another process.

        Parameters
        ----------
        handle : bytes
            `IpcEvent.handle` there. Once that event is gone, this one must not be used any more.

        Returns
        -------
        IpcEvent

        Raises
        ------
        DataError
            If `handle` has another length.
        DriverError
            If it cannot be opened.
        """
        cdef ipc_handle wanted = _as_handle(handle)
        cdef IpcEvent opened = IpcEvent.__new__(IpcEvent)
        opened.maker = self.handle
        opened.driver = self.driver
        cdef status result
        with nogil:
            result = dereference(self.handle).open_ipc_event(wanted, opened.event)
        self._check(
            result, "opening an IPC event", "its process must be another one, and alive"
        )
        return opened
