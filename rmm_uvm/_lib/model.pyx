# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The model of the UVM kernel driver (`cpp/include/rmm_uvm/sim/uvm_model.hpp`)."""

import threading

from cpython.exc cimport PyErr_CheckSignals
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport make_shared, make_unique
from libcpp.vector cimport vector
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from rmm_uvm._lib.driver cimport check, range_of, status
from rmm_uvm._lib.model cimport (
    UvmModel,
    access_pattern,
    access_span,
    advice,
    kernel_access,
    kernel_launch,
    model_config,
    model_counters,
    page_list,
    pattern_kind,
    uvm_model,
)

_KINDS = {
    "sequential": pattern_kind.sequential,
    "strided": pattern_kind.strided,
    "random": pattern_kind.random,
    "zipf": pattern_kind.zipf,
    "pointer_chase": pattern_kind.pointer_chase,
    "hash_join_probe": pattern_kind.hash_join_probe,
    "recorded": pattern_kind.recorded,
}
_ADVICE = {
    "read_mostly": advice.read_mostly,
    "unset_read_mostly": advice.unset_read_mostly,
    "preferred_location": advice.preferred_location,
    "unset_preferred_location": advice.unset_preferred_location,
    "accessed_by": advice.accessed_by,
    "unset_accessed_by": advice.unset_accessed_by,
}

ADVICE = tuple(_ADVICE)
PATTERN_KINDS = tuple(_KINDS)

# Ctrl-C is answered after so long at most; taking the GIL so seldom costs nothing that shows.
cdef double _SECONDS_BETWEEN_SIGNALS = 0.02


cdef double _seconds() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef struct Asking:  # of a kernel in the main thread, the only one where Python handles signals
    double next_seconds
    void* errors  # a list, which keeps what a signal's handler raised


cdef bool _is_interrupted(void* asker) noexcept nogil:
    cdef Asking* asking = <Asking*>asker
    cdef double now = _seconds()
    if now < asking.next_seconds:
        return False
    asking.next_seconds = now + _SECONDS_BETWEEN_SIGNALS
    with gil:
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            (<list>asking.errors).append(error)
            return True
    return False


cdef class UvmModel:
    """The model; `rmm_uvm.simulator.Simulator` is its public face. Places are GPUs, -1 the host."""

    def __init__(
        self, machine, driver, size_t device_bytes, *, host_bytes, unsigned gpus, links, bool peers,
        third_tier=None
    ):
        cdef model_config config
        config.machine = machine
        config.driver = driver
        if third_tier is not None:
            config.behind_host = third_tier
        config.device_bytes = device_bytes
        if host_bytes is not None:
            config.host_bytes = host_bytes
        config.gpus = gpus
        config.links = links
        config.peers = peers
        self.model = make_unique[uvm_model](config)
        self.gpus = gpus
        self.guard = threading.Lock()

    def add_range(self, uintptr_t address, size_t nbytes):
        with self.guard:
            dereference(self.model).add_range(range_of(address, nbytes))

    def remove_range(self, uintptr_t address):
        with self.guard:
            return dereference(self.model).remove_range(address)

    def allocate_device(self, unsigned gpu, size_t nbytes):
        with self.guard:
            check(
                dereference(self.model).allocate_device(gpu, nbytes),
                f"{nbytes} bytes of device memory",
            )

    def free_device(self, unsigned gpu, size_t nbytes):
        with self.guard:
            dereference(self.model).free_device(gpu, nbytes)

    def prefetch(self, uintptr_t address, size_t nbytes, int place, uint64_t stream):
        cdef status result
        with self.guard, nogil:
            result = dereference(self.model).prefetch(range_of(address, nbytes), place, stream)
        check(result, f"a prefetch of {nbytes} bytes")

    def discard(self, uintptr_t address, size_t nbytes, bool unmap):
        with self.guard:
            check(
                dereference(self.model).discard(range_of(address, nbytes), unmap),
                f"a discard of {nbytes} bytes",
            )

    def discard_and_prefetch(self, uintptr_t address, size_t nbytes, int place, uint64_t stream):
        cdef status result
        with self.guard, nogil:
            result = dereference(self.model).discard_and_prefetch(
                range_of(address, nbytes), place, stream
            )
        check(result, f"a discard and prefetch of {nbytes} bytes")

    def advise(self, uintptr_t address, size_t nbytes, what, int place):
        cdef advice value = _ADVICE[what]
        with self.guard:
            check(
                dereference(self.model).advise(range_of(address, nbytes), value, place),
                f"advice for {nbytes} bytes",
            )

    def launch(
        self, accesses, double compute_ns, unsigned gpu, uint64_t stream, uint32_t outstanding_faults
    ):
        """Launch a kernel.

        Parameters
        ----------
        accesses : sequence of tuple
            Address, bytes, whether it writes, kind, count, stride in pages, exponent, seed, pages.

        Raises
        ------
        KeyboardInterrupt, or what a signal's handler raises
            In the main thread, while it goes on; what was moved stays moved.
        """
        cdef vector[kernel_access] made
        cdef kernel_access access
        cdef vector[uint64_t] listed
        cdef kernel_launch kernel
        cdef status result
        cdef Asking asking
        errors = []
        for address, nbytes, write, kind, count, stride, exponent, seed, pages in accesses:
            access.range = range_of(address, nbytes)
            access.write = write
            access.pattern = access_pattern()
            access.pattern.kind = _KINDS[kind]
            access.pattern.count = count
            access.pattern.stride_pages = stride
            access.pattern.exponent = exponent
            access.pattern.seed = seed
            if pages is not None:
                listed = pages
                access.pattern.pages = make_shared[page_list](listed)
            made.push_back(access)
        kernel.accesses = access_span(made.data(), made.size())
        kernel.compute_ns = compute_ns
        kernel.gpu = gpu
        kernel.stream = stream
        kernel.outstanding_faults = outstanding_faults
        if threading.current_thread() is threading.main_thread():
            asking.next_seconds = _seconds() + _SECONDS_BETWEEN_SIGNALS
            asking.errors = <void*>errors
            kernel.shall_stop = _is_interrupted
            kernel.asker = &asking
        with self.guard, nogil:
            result = dereference(self.model).launch(kernel)
        if errors:
            raise errors[0]
        check(result, "a simulated kernel")

    def cpu_touch(self, uintptr_t address, size_t nbytes, bool write):
        cdef status result
        with self.guard, nogil:
            result = dereference(self.model).cpu_touch(range_of(address, nbytes), write)
        check(result, f"the CPU touching {nbytes} bytes")

    def host_work(self, double ns):
        with self.guard:
            dereference(self.model).host_work(ns)

    def synchronize(self, stream=None):
        with self.guard:
            if stream is None:
                dereference(self.model).synchronize_all()
            else:
                dereference(self.model).synchronize(<uint64_t>stream)

    @property
    def now_ns(self):
        return dereference(self.model).now_ns()

    def counters(self):
        cdef model_counters counted
        with self.guard:
            counted = dereference(self.model).counters()
        return counted

    def free_bytes(self, unsigned gpu):
        with self.guard:
            return dereference(self.model).free_bytes(gpu)

    def resident_bytes(self, uintptr_t address, size_t nbytes, int place):
        with self.guard:
            return dereference(self.model).resident_bytes(range_of(address, nbytes), place)

    @property
    def footprint_bytes(self):
        """Bytes of host memory that the model itself takes."""
        with self.guard:
            return dereference(self.model).footprint_bytes()
