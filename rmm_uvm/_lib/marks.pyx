# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Points that work waits for: in the copies of a process, and in streams of several.

Covers the marks of `cpp/include/rmm_uvm/driver/device_transfers.hpp`. Made by
`rmm_uvm._lib.transfers`, which shares with them what a failed call raises.
"""

from cython.operator cimport dereference
from libc.stdint cimport uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr

from rmm_uvm._lib.driver cimport UvmDriver, status, status_code, status_text, stream_handle
from rmm_uvm._lib.marks cimport device_transfers, ipc_handle, ipc_handle_bytes

from rmm_uvm.errors import ConfigurationError, DriverError

STREAM_REMEDY = "it must be alive, of this device, and not being captured into a graph"
FAILED_REMEDY = "work that was issued before has failed on the device"


cdef int check_transfer(
    const shared_ptr[device_transfers]& transfers, UvmDriver driver, status result, what, remedy
) except -1:
    """Raise what fits when a call failed, with CUDA's name for it and what to do."""
    if result.ok():
        return 0
    if driver.info.simulated and result.code == status_code.not_supported:
        if not driver.backing:
            raise ConfigurationError(
                f"{what} needs real bytes: make the device by simulated_device(..., backing=True)"
            )
    name = dereference(transfers).error_name(result.native_error).decode()
    name = name or status_text(result.code).decode()
    message = f"{what}: {result.call.decode()} answered {name}"
    if result.native_error:
        message += f" ({result.native_error})"
    if result.code == status_code.out_of_memory:
        raise MemoryError(message)
    raise DriverError(f"{message}; {remedy}")


cdef bytes bytes_of_handle(const ipc_handle& handle):
    cdef ipc_handle copied = handle
    return (<char*>copied.data())[:ipc_handle_bytes]


cdef class Mark:
    """A point in the copies of a `Transfers`; made by `Transfers.mark`. Thread-safe."""

    def __init__(self):
        raise TypeError("a mark is made by Transfers.mark")

    def __dealloc__(self):
        with nogil:  # as that of `Transfers`, which it may outlive
            self.handle.reset()
            self.maker.reset()

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
        check_transfer(self.maker, self.driver, result, "asking for copies", FAILED_REMEDY)
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
        check_transfer(self.maker, self.driver, result, "waiting for copies", FAILED_REMEDY)

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
        what = f"letting stream {stream:#x} wait for copies"
        check_transfer(self.maker, self.driver, result, what, STREAM_REMEDY)


cdef class IpcEvent:
    """An event that streams of several processes wait for. Thread-safe.

    Made by `Transfers.make_ipc_event` and `Transfers.open_ipc_event`.
    """

    def __init__(self):
        raise TypeError("made by Transfers.make_ipc_event and Transfers.open_ipc_event")

    def __dealloc__(self):
        with nogil:  # as that of `Mark`
            self.event.reset()
            self.maker.reset()

    @property
    def handle(self):
        """What another process opens it with, 64 bytes."""
        return bytes_of_handle(dereference(self.event).handle())

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
        what = f"recording an IPC event on stream {stream:#x}"
        check_transfer(self.maker, self.driver, result, what, STREAM_REMEDY)

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
        what = f"letting stream {stream:#x} wait for an IPC event"
        check_transfer(self.maker, self.driver, result, what, STREAM_REMEDY)
