# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Why pages move, and which: CUPTI and the simulated device behind one class.

Covers `cpp/include/rmm_uvm/driver/migration_events.hpp` and what implements it. Does not cover
finding libcupti; see `rmm_uvm.watch.sampling.attribution`.
"""

from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libcpp.memory cimport make_shared, shared_ptr, static_pointer_cast
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport as_availability, availability
from rmm_uvm._lib.sim cimport SimulatedDevice, simulated_device


cdef extern from "rmm_uvm/driver/migration_events.hpp" namespace "rmm_uvm" nogil:
    cdef enum class migration_cause(uint8_t):
        pass

    size_t migration_cause_count
    const char* cause_text "rmm_uvm::to_string"(migration_cause) noexcept

    cdef cppclass by_cause "std::array<std::uint64_t, rmm_uvm::migration_cause_count>":
        uint64_t& operator[](size_t) noexcept

    cdef cppclass cause_totals:
        by_cause host_to_device_bytes
        by_cause device_to_host_bytes
        uint64_t device_to_device_bytes
        uint64_t cpu_faults
        uint64_t gpu_fault_groups
        uint64_t thrashing_bytes
        uint64_t throttling_ns
        uint64_t remote_map_bytes
        uint64_t dropped_records
        uint64_t forgotten_bytes

    cdef cppclass block_traffic:
        uintptr_t address
        uint64_t host_to_device_bytes
        uint64_t device_to_host_bytes

    cdef cppclass migration_events:
        availability start() except +
        void stop() noexcept
        cause_totals read() noexcept
        vector[block_traffic] busiest(size_t) except +

cdef extern from "rmm_uvm/sim/simulated_events.hpp" namespace "rmm_uvm::sim" nogil:
    cdef cppclass c_simulated_events "rmm_uvm::sim::simulated_events"(migration_events):
        c_simulated_events(shared_ptr[simulated_device]) except +

cdef extern from "rmm_uvm/cuda/cupti_events.hpp" namespace "rmm_uvm::cuda" nogil:
    cdef cppclass opened_cupti_events:
        shared_ptr[migration_events] events
        availability opened

    opened_cupti_events open_cupti_events(const vector[string]&, vector[int]) except +


cdef dict _named(by_cause totals):
    cdef size_t index
    return {
        cause_text(<migration_cause>index).decode(): totals[index]
        for index in range(migration_cause_count)
    }


cdef class MigrationEvents:
    """Sums of what moved, by direction and cause, and by 2 MiB block. Off until started.

    Made by `cupti_events` and `simulated_events`. With CUPTI, code that faults takes much
    longer while it is on: `rmm_uvm.watch.sampling.attribution.COST_NOTE`.

    Notes
    -----
    Thread-safe; no call holds Python's lock while it waits. Goes off when it is collected. In a
    child of a fork it stays as it was.

    Examples
    --------
    >>> import rmm_uvm
    >>> from rmm_uvm._lib.events import simulated_events
    >>> device = rmm_uvm.simulated_device("64MiB")
    >>> events = simulated_events(device)
    >>> bool(events.start())
    True
    >>> mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    >>> pointer = mr.allocate(4 << 20)
    >>> device.cpu_touch(pointer, 4 << 20, write=True)
    >>> device.touch(pointer, 4 << 20)
    >>> moved = events.read()["host_to_device_bytes"]
    >>> moved["coherence"] + moved["prefetch"]  # what faulted, and what the driver brought along
    4194304
    >>> [bytes_to_device for _, bytes_to_device, _ in events.busiest(2)]
    [2097152, 2097152]
    >>> events.stop()
    >>> mr.deallocate(pointer, 4 << 20)
    """

    cdef shared_ptr[migration_events] handle

    def __init__(self):
        raise TypeError("made by cupti_events or simulated_events")

    def start(self):
        """Begin to watch, with all sums at zero; nothing changes if it watches already.

        Returns
        -------
        Availability
            Whether it watches now and, if not, why: another profiler, no device, and so on.
        """
        cdef availability started
        with nogil:
            started = dereference(self.handle).start()
        return as_availability(started)

    def stop(self):
        """Stop watching; the sums stay. Idempotent."""
        with nogil:
            dereference(self.handle).stop()

    def read(self):
        """Return the sums since the start.

        Returns
        -------
        dict
            ``host_to_device_bytes`` and ``device_to_host_bytes``: bytes by cause, each of
            `rmm_uvm.recording.recorded.CAUSES`. Single numbers: ``device_to_device_bytes`` (to this
            GPU from others), ``cpu_faults`` (of the process, whatever the device),
            ``gpu_fault_groups``, ``thrashing_bytes``, ``throttling_ns``, ``remote_map_bytes``,
            ``dropped_records`` (the sums are too low by these) and ``forgotten_bytes`` (missing
            from `busiest` only).

        Notes
        -----
        From CUPTI they lag by up to a second, and by what it has not completed; after `stop` they
        are complete. On the simulated device they are always exact.
        """
        cdef cause_totals totals
        with nogil:
            totals = dereference(self.handle).read()
        return {
            "host_to_device_bytes": _named(totals.host_to_device_bytes),
            "device_to_host_bytes": _named(totals.device_to_host_bytes),
            "device_to_device_bytes": totals.device_to_device_bytes,
            "cpu_faults": totals.cpu_faults,
            "gpu_fault_groups": totals.gpu_fault_groups,
            "thrashing_bytes": totals.thrashing_bytes,
            "throttling_ns": totals.throttling_ns,
            "remote_map_bytes": totals.remote_map_bytes,
            "dropped_records": totals.dropped_records,
            "forgotten_bytes": totals.forgotten_bytes,
        }

    def busiest(self, most=10):
        """Return the blocks that moved most, busiest first.

        Parameters
        ----------
        most : int
            How many at most, >= 0. Blocks of 128 GiB are remembered, the quieter ones forgotten
            beyond that.

        Returns
        -------
        list of (int, int, int)
            Address, bytes to the device, bytes to the host.

        Raises
        ------
        ValueError
            If `most` is negative.
        """
        if most < 0:
            raise ValueError(f"most={most!r}: a number of blocks, 0 or more")
        cdef size_t count = most
        cdef vector[block_traffic] found
        with nogil:
            found = dereference(self.handle).busiest(count)
        return [
            (block.address, block.host_to_device_bytes, block.device_to_host_bytes)
            for block in found
        ]

    def __dealloc__(self):
        # Switching CUPTI off takes seconds, and its threads never wait for Python's lock.
        with nogil:
            self.handle.reset()


def simulated_events(SimulatedDevice device not None):
    """Watch a simulated device: any number may, each with sums of its own.

    Returns
    -------
    MigrationEvents
    """
    cdef MigrationEvents events = MigrationEvents.__new__(MigrationEvents)
    events.handle = static_pointer_cast[migration_events, c_simulated_events](
        make_shared[c_simulated_events](device.model)
    )
    return events


def cupti_events(device_ids, libraries):
    """Watch GPUs through CUPTI; loads it and switches nothing on.

    Parameters
    ----------
    device_ids : sequence of int
        CUDA ordinals of the devices whose sums are wanted.
    libraries : sequence of str
        Paths and names of libcupti to try, in this order. Once one is in use in this process, that
        one serves all.

    Returns
    -------
    tuple of (MigrationEvents or None, Availability)
        None, and why, without a libcupti that works or without a driver.
    """
    cdef vector[int] devices = device_ids
    cdef vector[string] names = [str(name).encode() for name in libraries]
    cdef opened_cupti_events opened
    with nogil:
        opened = open_cupti_events(names, devices)
    if opened.events.get() == NULL:
        return None, as_availability(opened.opened)
    cdef MigrationEvents events = MigrationEvents.__new__(MigrationEvents)
    events.handle = opened.events
    return events, as_availability(opened.opened)
