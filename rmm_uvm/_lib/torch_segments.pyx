# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Managed memory for PyTorch's caching allocator (`cpp/include/rmm_uvm/mr/torch_segments.hpp`)."""

from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t, uintptr_t
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport memory_range
from rmm_uvm._lib.mr cimport ManagedMemoryResource, managed_memory_resource
from rmm_uvm._lib.residency cimport managed_residency


cdef extern from "Python.h":
    # Needs no lock of Python's.
    int Py_AddPendingCall(int (*function)(void*) except -1, void* argument) noexcept nogil

cdef extern from "rmm_uvm/mr/torch_segments.hpp" namespace "rmm_uvm::mr" nogil:
    cdef cppclass torch_segment_statistics:
        size_t segment_bytes
        size_t peak_segment_bytes
        uint64_t segments
        uint64_t refused
        uint64_t reused
        uint64_t freed
        uint64_t unfenced
        uint64_t in_place

    cdef cppclass torch_segments:
        torch_segments(managed_memory_resource, shared_ptr[managed_residency], size_t) except +
        void on_pressure(void (*)(void*) noexcept nogil, void*) noexcept
        void on_scarcity(void (*)(void*) noexcept nogil, void*, size_t) noexcept
        bint take_owed() noexcept
        size_t owed_bytes() noexcept
        void follow(const vector[memory_range]&) except +
        void unfollow(bint routed) noexcept
        void several_streams() noexcept
        void on_allocate(uintptr_t) noexcept
        void on_free(uintptr_t) noexcept
        void measured(uintptr_t, size_t) noexcept
        torch_segment_statistics statistics() noexcept
        string last_refusal() except +

cdef extern from "rmm_uvm/mr/torch_answers.hpp" namespace "rmm_uvm::mr" nogil:
    void answer_torch(int, shared_ptr[torch_segments]) except +
    void leave_torch(int, const shared_ptr[torch_segments]&) noexcept


cdef int _run(void* argument) except -1 with gil:
    (<object>argument)()
    return 0


cdef void _soon(void* argument) noexcept nogil:
    # A full queue (32 calls) leaves torch on managed memory without prefetching: never wrong.
    Py_AddPendingCall(_run, argument)


cdef class Teller:
    """Tells `TorchSegments` of allocations or frees, then who was told before. Thread-safe.

    It takes the place of a function that torch calls from C++. A function written in Python would
    be begun by the handlers of signals that wait: one that raises would keep an allocation untold,
    and its contents would count as dead.

    Parameters
    ----------
    segments : TorchSegments
        Is told first.
    theirs : callable
        Is called after it, with the same address.
    frees : bool
        Whether of frees.
    registry : object, optional
        Whose function `theirs` is: it is called only while there are callbacks in its list.
    """

    cdef TorchSegments segments
    cdef readonly object theirs
    cdef object registry
    cdef bint frees, ended

    def __init__(
        self,
        TorchSegments segments not None,
        theirs not None,
        bint frees=False,
        registry=None,
    ):
        self.segments, self.theirs, self.frees = segments, theirs, frees
        self.registry = registry

    def __call__(self, uintptr_t start):
        if not self.ended:
            try:
                # Before the memory of a new segment is brought, others go for it.
                if not self.frees and dereference(self.segments.handle).take_owed():
                    self.segments.give_back_owed()
            finally:
                with nogil:
                    if self.frees:
                        dereference(self.segments.handle).on_free(start)
                    else:
                        dereference(self.segments.handle).on_allocate(start)
        if self.registry is None or self.registry.callback_list:
            self.theirs(start)

    def end(self):
        """Tell no more, and only pass on."""
        self.ended = True


cdef class TorchSegments:
    """Segments of torch's caching allocator on one device, in managed memory. Thread-safe.

    Parameters
    ----------
    memory : ManagedMemoryResource
        Where they come from: its ledger and its budget cover them.
    maximum_bytes : int
        Most bytes of all segments together; torch runs out of memory past them.
    """

    cdef shared_ptr[torch_segments] handle
    cdef readonly ManagedMemoryResource memory
    cdef object gives_back

    def __init__(self, ManagedMemoryResource memory not None, size_t maximum_bytes):
        self.memory = memory
        self.gives_back = None
        self.handle = make_shared[torch_segments](
            dereference(memory.resource), memory.residency.handle, maximum_bytes
        )

    def answer(self):
        """Have torch's requests for this device answered from now on."""
        cdef int device = self.memory.driver.info.device_id
        with nogil:
            answer_torch(device, self.handle)

    def leave(self):
        """Hand out no more memory; what torch still has is taken back whenever it gives it.

        Nothing of this is kept for longer than that.
        """
        cdef int device = self.memory.driver.info.device_id
        with nogil:
            leave_torch(device, self.handle)

    def on_pressure(self, call not None):
        """Have the main thread call a function, once, when segments have outgrown the budget.

        Parameters
        ----------
        call : callable
            Takes nothing. It is kept for ever.
        """
        Py_INCREF(call)  # torch may ask for memory until the process ends
        dereference(self.handle).on_pressure(_soon, <void*>call)

    def on_scarcity(self, call not None, size_t nbytes):
        """The same once segments have outgrown a number of bytes, or one was refused."""
        Py_INCREF(call)
        dereference(self.handle).on_scarcity(_soon, <void*>call, nbytes)

    def on_owed(self, gives_back):
        """Have a function called where free segments have to go for one that was just taken.

        Parameters
        ----------
        gives_back : callable or None
            Takes nothing. The next allocation that is told calls it, in its thread and without a
            lock of torch's. None ends it.
        """
        self.gives_back = gives_back

    cdef give_back_owed(self):
        gives_back = self.gives_back
        if gives_back is not None:
            gives_back()

    @property
    def owed_bytes(self):
        """Bytes of free segments that have to go still, after those that were taken for them."""
        return dereference(self.handle).owed_bytes()

    def follow(self, live):
        """Count the allocations in segments from now on.

        Parameters
        ----------
        live : iterable of (int, int)
            Address and bytes of every live allocation; see `on_allocate`, which has to be told of
            each one since before this list was made.
        """
        cdef vector[memory_range] ranges
        cdef memory_range one
        for address, nbytes in live:
            one.address, one.bytes = address, nbytes
            ranges.push_back(one)
        with nogil:
            dereference(self.handle).follow(ranges)

    def unfollow(self, routed):
        """Count them no more.

        Parameters
        ----------
        routed : bool
            Whether torch goes on to allocate in them: then what is free now counts as live.
        """
        cdef bint goes_on = routed
        with nogil:
            dereference(self.handle).unfollow(goes_on)

    def several_streams(self):
        """Take note that work of any stream may use any allocation: no free is fenced any more."""
        dereference(self.handle).several_streams()

    def on_allocate(self, uintptr_t start):
        """Take note that torch hands out memory which begins at an address; brings it in."""
        with nogil:
            dereference(self.handle).on_allocate(start)

    def on_free(self, uintptr_t start):
        """Take note that torch takes back the memory which begins at an address."""
        with nogil:
            dereference(self.handle).on_free(start)

    def measured(self, uintptr_t start, size_t nbytes):
        """Take note of how long the live allocation at an address is."""
        dereference(self.handle).measured(start, nbytes)

    @property
    def last_refusal(self):
        """Why a request was refused last; "" if none was."""
        return dereference(self.handle).last_refusal().decode()

    def statistics(self):
        """Return levels and counts, as a dict of int."""
        cdef torch_segment_statistics s = dereference(self.handle).statistics()
        return {
            "segment_bytes": s.segment_bytes,
            "peak_segment_bytes": s.peak_segment_bytes,
            "segments": s.segments,
            "refused": s.refused,
            "reused": s.reused,
            "freed": s.freed,
            "unfenced": s.unfenced,
            "in_place": s.in_place,
        }
