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
from libcpp cimport bool
from libcpp.memory cimport make_shared, shared_ptr, static_pointer_cast
from libcpp.optional cimport optional
from libcpp.vector cimport vector

from rmm_uvm._lib.cuda cimport CudaDriver
from rmm_uvm._lib.driver cimport UvmDriver, status, status_code, status_text, stream_handle, uvm_driver
from rmm_uvm._lib.sim cimport SimulatedDevice

from typing import NamedTuple

from rmm_uvm.errors import ConfigurationError, DataError, DriverError


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


cdef bytes _from_handle(const ipc_handle& handle):
    cdef ipc_handle copied = handle
    return (<char*>copied.data())[:ipc_handle_bytes]


cdef class Transfers:
    """Copies between memory of one device and of others, and memory shared between processes.

    Copies run in one non-blocking stream of this object, in the order of the calls.

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

    cdef int _check(self, status result, what, remedy) except -1:
        """Raise what fits when a call failed, with CUDA's name for it and what to do."""
        if result.ok():
            return 0
        if self.driver.info.simulated and result.code == status_code.not_supported:
            if not (<SimulatedDevice>self.driver).backing:
                raise ConfigurationError(
                    f"{what} needs real bytes: make the device by "
                    "simulated_device(..., backing=True)"
                )
        name = dereference(self.handle).error_name(result.native_error).decode()
        name = name or status_text(result.code).decode()
        message = f"{what}: {result.call.decode()} answered {name}"
        if result.native_error:
            message += f" ({result.native_error})"
        if result.code == status_code.out_of_memory:
            raise MemoryError(message)
        raise DriverError(f"{message}; {remedy}")

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
        self._check(result, f"waiting for stream {stream:#x}", _STREAM_REMEDY)

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
        made.maker = self
        cdef status result
        with nogil:
            result = dereference(self.handle).mark(made.handle)
        self._check(result, "marking copies", _FAILED_REMEDY)
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
        return _from_handle(made)

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
        made.maker = self
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
        opened.maker = self
        cdef status result
        with nogil:
            result = dereference(self.handle).open_ipc_event(wanted, opened.event)
        self._check(
            result, "opening an IPC event", "its process must be another one, and alive"
        )
        return opened


_STREAM_REMEDY = "it must be alive, of this device, and not being captured into a graph"
_FAILED_REMEDY = "work that was issued before has failed on the device"


cdef class Mark:
    """A point in the copies of a `Transfers`; made by `Transfers.mark`. Thread-safe."""

    def __init__(self):
        raise TypeError("a mark is made by Transfers.mark")

    def done(self):
        """Whether the copies before the mark are done; never blocks.

        Raises
        ------
        DriverError
            If they failed.
        """
        cdef bool reached = False
        cdef status result
        with nogil:
            result = dereference(self.handle).done(reached)
        self.maker._check(result, "asking for copies", _FAILED_REMEDY)
        return reached

    def wait(self):
        """Wait until the copies before the mark are done; other threads run meanwhile.

        Raises
        ------
        DriverError
            If they failed.
        """
        cdef status result
        with nogil:
            result = dereference(self.handle).wait()
        self.maker._check(result, "waiting for copies", _FAILED_REMEDY)

    def make_wait(self, uintptr_t stream):
        """Let work that is issued to `stream` from now on wait for the mark. Returns at once.

        Raises
        ------
        DriverError
            As `Transfers.wait_for`.
        """
        cdef status result
        with nogil:
            result = dereference(self.handle).make_wait(<stream_handle>stream)
        self.maker._check(result, f"letting stream {stream:#x} wait for copies", _STREAM_REMEDY)


cdef class IpcEvent:
    """An event that streams of several processes wait for. Thread-safe.

    Made by `Transfers.make_ipc_event` and `Transfers.open_ipc_event`.
    """

    def __init__(self):
        raise TypeError("made by Transfers.make_ipc_event and Transfers.open_ipc_event")

    @property
    def handle(self):
        """What another process opens it with, 64 bytes."""
        return _from_handle(dereference(self.event).handle())

    def record(self, uintptr_t stream):
        """Let the event stand for the work issued to `stream` so far. Returns at once.

        Raises
        ------
        DriverError
            As `Transfers.wait_for`.
        """
        cdef status result
        with nogil:
            result = dereference(self.event).record(<stream_handle>stream)
        self.maker._check(result, f"recording an IPC event on stream {stream:#x}", _STREAM_REMEDY)

    def make_wait(self, uintptr_t stream):
        """Let work that is issued to `stream` from now on wait for the last `record`.

        Raises
        ------
        DriverError
            As `Transfers.wait_for`.
        """
        cdef status result
        with nogil:
            result = dereference(self.event).make_wait(<stream_handle>stream)
        self.maker._check(
            result, f"letting stream {stream:#x} wait for an IPC event", _STREAM_REMEDY
        )
