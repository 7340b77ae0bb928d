# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The sampler (`cpp/include/rmm_uvm/monitor`): one thread, without the GIL, for all devices.

Does not cover what samples mean: `rmm_uvm.recording.sample` has their layout.
"""

from cpython.bytearray cimport PyByteArray_AsString
from cpython.exc cimport PyErr_CheckSignals
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool
from libcpp.memory cimport make_shared, shared_ptr, static_pointer_cast, unique_ptr
from libcpp.optional cimport optional
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport (
    LevelSource,
    MemoryReader,
    UvmDriver,
    as_availability,
    availability,
    memory_level_source,
)

import time

from rmm_uvm._lib.sampler_ends import stop_at_exit


def levels_of(mr):
    """Return what tells the levels of one of our memory resources, for `Sampler.set_levels`.

    Parameters
    ----------
    mr : rmm_uvm.mr.UvmResourceAdaptor or rmm_uvm.mr.ManagedMemoryResource
        Anything with a method ``level_source``.

    Returns
    -------
    LevelSource
        Keeps none of the resource's memory alive.

    Raises
    ------
    TypeError
        If `mr` is a resource of RMM's own: nobody counts its levels.
    """
    try:
        return mr.level_source()
    except AttributeError:
        raise TypeError(
            f"{type(mr).__name__} does not tell its levels: "
            "rmm_uvm.mr.UvmResourceAdaptor and ManagedMemoryResource do"
        ) from None


cdef class FakeClock:
    """A clock that stands still until it is advanced; for tests. Thread-safe.

    Examples
    --------
    >>> from rmm_uvm._lib.monitor import FakeClock
    >>> clock = FakeClock()
    >>> clock.advance(0.5)
    >>> clock.now_seconds
    0.5
    """

    cdef shared_ptr[fake_clock] handle

    def __cinit__(self):
        self.handle = make_shared[fake_clock]()

    def advance(self, double seconds):
        """Let time pass; samplers whose time has come take one sample each.

        Parameters
        ----------
        seconds : float
            >= 0.

        Raises
        ------
        ValueError
            If `seconds` is negative.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock cannot be advanced by {seconds} seconds")
        cdef uint64_t ns = <uint64_t>(seconds * 1e9 + 0.5)
        with nogil:
            dereference(self.handle).advance(ns)

    @property
    def now_seconds(self):
        """Time that has passed."""
        return dereference(self.handle).now_ns() / 1e9


cdef class Slot:
    """What a sampler shall watch of one device.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    driver : UvmDriver, optional
        Without it nothing is known but device memory.
    memory : MemoryReader, optional
        Who tells device memory; by default the driver does.
    capacity_bytes : int
        Managed capacity; 0: the whole device.
    full_fraction : float
        A device with less than this part of its memory free is full: what leaves then is evicted.
    faults : bool
        Count faults too: costs a faulting program a little more.
    """

    cdef slot_settings settings
    cdef readonly UvmDriver driver
    cdef readonly MemoryReader memory

    def __cinit__(
        self,
        int device_id,
        UvmDriver driver=None,
        *,
        MemoryReader memory=None,
        size_t capacity_bytes=0,
        double full_fraction=0.02,
        bool faults=False,
    ):
        self.driver = driver
        self.memory = memory
        self.settings.device_id = device_id
        if driver is not None:
            self.settings.driver = driver.handle
        if memory is not None:
            self.settings.memory = memory.handle
        self.settings.capacity_bytes = capacity_bytes
        self.settings.full_fraction = full_fraction
        self.settings.faults = faults

    @property
    def device_id(self):
        """CUDA ordinal."""
        return self.settings.device_id


cdef class Sampler:
    """Samples devices on a thread of its own, without the GIL, and keeps the newest samples.

    Parameters
    ----------
    slots : iterable of Slot
        What to watch, one a device.
    interval_ns : int
        Between two samples, > 0. A deadline that was missed is skipped.
    capacity : int
        Samples kept, of all devices together, > 0; 112 bytes each. The oldest are dropped.
    clock : FakeClock, optional
        For tests; by default the machine's.

    Raises
    ------
    ValueError
        If the interval or the capacity is 0.
    MemoryError
        If there is no memory for the samples.

    Notes
    -----
    Thread-safe. Totals begin at 0 with the first sample. An object that goes without `stop` stops;
    so do all when the interpreter exits. A fork waits for the sample under way, a second at most. In
    the child nothing is sampled: reading gives what was there, `stop` does nothing, `start` raises.

    Examples
    --------
    >>> import rmm_uvm
    >>> from rmm_uvm._lib.monitor import FakeClock, Sampler, Slot
    >>> device = rmm_uvm.simulated_device("64MiB")
    >>> sampler = Sampler([Slot(0, device)], 100_000_000, 600, FakeClock())
    >>> sampler.sample_now()
    True
    >>> samples, next_sequence, lost = sampler.samples()
    >>> len(samples), next_sequence, lost, int(samples["device_used_bytes"][0])
    (1, 1, 0, 0)
    """

    cdef unique_ptr[sampler] handle
    cdef readonly tuple slots
    cdef object __weakref__

    def __cinit__(
        self,
        slots,
        uint64_t interval_ns=100_000_000,
        size_t capacity=86_400,
        FakeClock clock=None,
    ):
        self.slots = tuple(slots)
        cdef vector[slot_settings] wanted
        cdef Slot slot
        for slot in self.slots:
            wanted.push_back(slot.settings)
        cdef sampler_settings settings
        settings.interval_ns = interval_ns
        settings.capacity = capacity
        cdef shared_ptr[clock_t] time_source
        if clock is not None:
            time_source = static_pointer_cast[clock_t, fake_clock](clock.handle)
        self.handle.reset(new sampler(wanted, settings, time_source))
        stop_at_exit(self)

    def __dealloc__(self):
        with nogil:
            self.handle.reset()

    # Whatever takes the sampler's lock lets go of the GIL first: a thread that forks holds the GIL
    # while it waits for that lock.

    def start(self):
        """Take the first sample and start the thread; idempotent.

        Raises
        ------
        RuntimeError
            If there can be no more threads, or in a process forked from the one that made this.
        """
        with nogil:
            dereference(self.handle).start()

    def stop(self):
        """Stop the thread and wait for its end; idempotent. The samples stay."""
        with nogil:
            dereference(self.handle).stop()

    @property
    def running(self):
        """Whether the thread runs, in this process."""
        cdef bool found
        with nogil:
            found = dereference(self.handle).running()
        return found

    def sample_now(self):
        """Take a sample on this thread, also without `start`.

        Returns
        -------
        bool
            False in a forked child, and when a device has held up another sample for a second.
        """
        cdef bool taken
        with nogil:
            taken = dereference(self.handle).sample_now()
        return taken

    def samples(self, uint64_t since_sequence=0):
        """Copy the samples from a sequence number on.

        Parameters
        ----------
        since_sequence : int
            0 for everything, or what an earlier call returned as `next_sequence`.

        Returns
        -------
        samples : ndarray, shape (n_samples,), dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
            In order of time, devices interleaved; a copy.
        next_sequence : int
            Number of the sample that will come next.
        lost : int
            Samples since `since_sequence` that were dropped because newer ones came.
        """
        import numpy as np

        from rmm_uvm.recording.sample import SAMPLE_DTYPE

        cdef size_t count
        cdef ring_read found
        with nogil:
            count = dereference(self.handle).count(since_sequence)
        raw = bytearray(count * sizeof(sample))
        cdef char* into = PyByteArray_AsString(raw)
        with nogil:
            found = read_samples(dereference(self.handle), since_sequence, into, count)
        next_sequence = found.first_sequence + found.count
        lost = max(0, found.first_sequence - since_sequence)
        if found.count == 0:
            return np.empty(0, SAMPLE_DTYPE), next_sequence, lost
        return np.frombuffer(raw, SAMPLE_DTYPE, found.count), next_sequence, lost

    @property
    def next_sequence(self):
        """Number of the sample that will come next."""
        cdef uint64_t found
        with nogil:
            found = dereference(self.handle).next_sequence()
        return found

    def wait(self, timeout_seconds=None, sequence=None):
        """Wait for a sample, the end of the thread, or a timeout, whichever comes first.

        Parameters
        ----------
        timeout_seconds : float, optional
            Of real time, also with a `FakeClock`; by default there is no limit.
        sequence : int, optional
            Number of the sample to wait for; by default the next one.

        Returns
        -------
        bool
            Whether that sample was taken.
        """
        cdef uint64_t wanted = self.next_sequence if sequence is None else sequence
        cdef int64_t slice_ns
        cdef bool taken
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:  # in slices, so that Ctrl-C is heard
            left = 0.1 if deadline is None else min(0.1, max(0.0, deadline - time.monotonic()))
            slice_ns = <int64_t>(left * 1e9)
            with nogil:
                taken = wait_sample(dereference(self.handle), wanted, slice_ns)
            PyErr_CheckSignals()
            if taken or not self.running or (deadline is not None and left < 0.1):
                return taken

    def set_levels(self, int device_id, LevelSource source):
        """Replace the resource whose levels are told on a device.

        Parameters
        ----------
        device_id : int
            A device that is watched.
        source : LevelSource or None
            From `levels_of`; None for none. Its totals count from now on.

        Raises
        ------
        ValueError
            If the device is not watched.
        """
        cdef shared_ptr[memory_level_source] handle
        cdef bool found
        if source is not None:
            handle = source.handle
        with nogil:
            found = dereference(self.handle).set_levels(device_id, handle)
        if not found:
            raise self._not_watched(device_id)

    def set_external_footprint(self, int device_id, footprint_bytes, managed_bytes=None):
        """Tell levels of a resource that is not ours; a resource of ours goes first.

        Parameters
        ----------
        device_id : int
            A device that is watched.
        footprint_bytes, managed_bytes : int or None
            Bytes allocated and not freed, and taken from the driver as managed memory; None when
            not known. Errors as in `set_levels`.
        """
        cdef optional[uint64_t] footprint, managed
        cdef bool found
        if footprint_bytes is not None:
            footprint = optional[uint64_t](<uint64_t>footprint_bytes)
        if managed_bytes is not None:
            managed = optional[uint64_t](<uint64_t>managed_bytes)
        with nogil:
            found = dereference(self.handle).set_external(device_id, footprint, managed)
        if not found:
            raise self._not_watched(device_id)

    def faults(self, int device_id):
        """Whether faults are counted on a device, a `rmm_uvm.machine.device_info.Availability`."""
        cdef availability found
        with nogil:
            found = dereference(self.handle).faults(device_id)
        return as_availability(found)

    @property
    def cost_seconds(self):
        """Processor time that the thread took so far, as of its last sample."""
        return dereference(self.handle).cost_ns() / 1e9

    def _not_watched(self, device_id):
        watched = ", ".join(str(slot.device_id) for slot in self.slots) or "none"
        return ValueError(f"device {device_id} is not watched; watched: {watched}")
