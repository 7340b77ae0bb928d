# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The file that exporters and readers of IPC memory share (`cpp/include/rmm_uvm/ipc`)."""

from cython.operator cimport dereference
from libc.errno cimport EAGAIN
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.memory cimport unique_ptr

import os


cdef extern from "rmm_uvm/ipc/lease_file.hpp" namespace "rmm_uvm::ipc" nogil:
    cdef cppclass lease_record:
        uint64_t generation
        uint32_t opened
        uint32_t allowed

    cpdef enum class lease_answer(uint8_t):
        opened
        exporter_gone
        ended
        exhausted
        failed

    cdef cppclass opened_lease_file:
        unique_ptr[c_lease_file] file
        int error

    cdef cppclass c_lease_file "rmm_uvm::ipc::lease_file":
        int try_be_exporter() noexcept
        uint64_t begin(size_t, uint32_t) noexcept
        int try_end(size_t) noexcept
        int is_open(size_t) noexcept
        int exporter_alive() noexcept
        lease_answer open_lease(size_t, uint64_t, bool) noexcept
        void uncount(size_t) noexcept
        int close_lease(size_t) noexcept
        lease_record read(size_t) noexcept
        bool here() noexcept
        size_t slots() noexcept

    size_t c_bytes_for "rmm_uvm::ipc::lease_file::bytes_for"(size_t) noexcept
    opened_lease_file c_open_lease_file "rmm_uvm::ipc::lease_file::open"(int, size_t) noexcept


HEADER_BYTES = 64  # before the first record


def lease_file_bytes(size_t slots):
    """Return the length of a file with so many slots, bytes."""
    return c_bytes_for(slots)


cdef object _system_error(int error):
    return OSError(error, os.strerror(error))


cdef class LeaseFile:
    """A mapped lease file, and the locks of one owner on it.

    Parameters
    ----------
    descriptor : int
        Of a file of `lease_file_bytes`, open for reading and writing. Closed with this object, or
        at once if it is not made.
    slots : int
        Leases that the file has room for.

    Raises
    ------
    OSError
        If it has another length, or cannot be mapped.

    Notes
    -----
    Thread-safe but for closing, which others must not be in the middle of. A forked child has it
    closed from the beginning.

    Examples
    --------
    >>> import os
    >>> from rmm_uvm._lib.leases import LeaseFile, lease_answer, lease_file_bytes
    >>> descriptor = os.memfd_create("example")
    >>> os.truncate(descriptor, lease_file_bytes(8))
    >>> path = f"/proc/self/fd/{descriptor}"
    >>> reader = LeaseFile(os.open(path, os.O_RDWR), 8)
    >>> exporter = LeaseFile(descriptor, 8)
    >>> exporter.try_be_exporter()
    True
    >>> generation = exporter.begin(3, 1)
    >>> reader.open_lease(3, generation) == lease_answer.opened
    True
    >>> exporter.try_end(3)
    False
    >>> reader.close_lease(3)
    >>> exporter.try_end(3)
    True
    >>> reader.open_lease(3, generation) == lease_answer.ended
    True
    """

    cdef unique_ptr[c_lease_file] file

    def __init__(self, int descriptor, size_t slots):
        cdef opened_lease_file opened = c_open_lease_file(descriptor, slots)
        if opened.error:
            raise _system_error(opened.error)
        self.file.swap(opened.file)

    cdef c_lease_file* _open(self, size_t slot) except NULL:
        if self.closed:
            raise ValueError("the lease file is closed")
        if slot >= dereference(self.file).slots():
            raise IndexError(f"slot {slot}: the file has {dereference(self.file).slots()}")
        return self.file.get()

    def close(self):
        """Unmap the file and let go of all locks on it. Idempotent."""
        self.file.reset()

    @property
    def closed(self):
        """Whether it was closed; so it is in a forked child."""
        return self.file.get() == NULL or not dereference(self.file).here()

    def try_be_exporter(self):
        """Become the file's exporter; return whether nobody else is it."""
        return _unless_busy(self._open(0).try_be_exporter())

    def begin(self, size_t slot, uint32_t allowed):
        """Begin a lease in a free slot, to be opened `allowed` times; return its generation."""
        return self._open(slot).begin(slot, allowed)

    def try_end(self, size_t slot):
        """End a lease; return whether nobody else has it open."""
        return _unless_busy(self._open(slot).try_end(slot))

    def is_open(self, size_t slot):
        """Whether somebody else has a lease open."""
        return _answered(self._open(slot).is_open(slot))

    @property
    def exporter_alive(self):
        """Whether somebody else is the file's exporter."""
        return _answered(self._open(0).exporter_alive())

    def open_lease(self, size_t slot, uint64_t generation, *, bool again=False):
        """Open a lease, and count that; waits only for as long as the exporter takes to end one.

        Parameters
        ----------
        slot : int
            Where the lease is.
        generation : int
            Which lease of the slot.
        again : bool
            This object has it open already.

        Returns
        -------
        lease_answer
            What became of it.
        """
        cdef c_lease_file* file = self._open(slot)
        cdef lease_answer answer
        with nogil:
            answer = file.open_lease(slot, generation, again)
        return answer

    def uncount(self, size_t slot):
        """Take back the count of an opening that came to nothing; the slot is still open."""
        self._open(slot).uncount(slot)

    def close_lease(self, size_t slot):
        """Let go of a slot, however often it was opened."""
        self._open(slot).close_lease(slot)

    def read(self, size_t slot):
        """Return generation, openings so far and openings allowed of a slot."""
        cdef lease_record record = self._open(slot).read(slot)
        return record.generation, record.opened, record.allowed


cdef _unless_busy(int answer):
    if answer == -EAGAIN:
        return False
    if answer < 0:
        raise _system_error(-answer)
    return True


cdef _answered(int answer):
    if answer < 0:
        raise _system_error(-answer)
    return answer == 1
