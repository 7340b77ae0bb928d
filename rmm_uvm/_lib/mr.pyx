# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory resources (`cpp/include/rmm_uvm/mr`): subclasses of RMM's own Python classes."""

cimport cython
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uintptr_t
from libcpp cimport bool
from libcpp.memory cimport shared_ptr
from libcpp.optional cimport optional

from rmm.pylibrmm.memory_resource cimport DeviceMemoryResource, UpstreamResourceAdaptor
from rmm.pylibrmm.stream cimport Stream
from rmm.pylibrmm.utils cimport as_stream

from rmm_uvm._lib.driver cimport (
    LevelSource,
    MemoryObserver,
    UvmDriver,
    memory_level_source,
    memory_observer,
    memory_range,
)
from rmm_uvm._lib.mr cimport (
    allocate_in,
    any_of,
    bounded_resource,
    make_device_async_resource_ref,
    managed_memory_resource,
    observed_resource,
    simulated_cuda_memory_resource,
    trim_outcome,
    try_deallocate_in,
    uvm_resource_adaptor,
)
from rmm_uvm._lib.residency cimport ManagedResidency, as_mode, prefetch_mode
from rmm_uvm._lib.sim cimport SimulatedDevice

from rmm.mr import FailureCallbackResourceAdaptor
from rmm.pylibrmm.stream import DEFAULT_STREAM

from rmm_uvm.errors import ConfigurationError, DoubleFreeError
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import whole_number


_LARGEST_BYTES = 2**64 - 1
cdef size_t _ALIGNMENT_BYTES = 256  # what CUDA guarantees and RMM asks for


cdef size_t _bytes_of(object nbytes) except? 1:
    """Return a size as C has it; refuse in words what is none."""
    whole = nbytes if type(nbytes) is int else whole_number(nbytes)
    if whole is None or whole < 0:
        raise ConfigurationError(f"nbytes={shown(nbytes)}: expected a number of bytes, 0 or more")
    if whole > _LARGEST_BYTES:
        raise MemoryError(f"{shown(nbytes)} bytes asked: no address space holds that")
    return whole


cdef LevelSource _as_level_source(shared_ptr[memory_level_source] handle):
    cdef LevelSource source = LevelSource.__new__(LevelSource)
    source.handle = handle
    return source


cdef class ManagedMemoryResource(DeviceMemoryResource):
    """Managed memory of one device, under the process' cap: the source at the bottom of a chain.

    Every allocation is a slab: taken from the driver, prefetched as far as free device memory
    allows, and kept in the residency ledger.

    Parameters
    ----------
    driver : UvmDriver
        From `rmm_uvm.drivers`.
    prefetch : {"auto", "always", "never"}
        "never" leaves new slabs to page faults.
    account : ManagedAccount, optional
        The cap to count against; by default the one of the process, which follows the environment
        variable ``RMM_UVM_MANAGED_LIMIT``.
    budget : rmm_uvm.residency.Budget, optional
        How much of the device its memory may take; by default all of it, left to the kernel driver.
    maximum_bytes : int, optional
        Most live bytes of a pool over it, for a `UvmResourceAdaptor` over that pool. The pool may
        then take more addresses than that, and dead blocks past it are discarded. By default
        nothing is limited here.
    populated_bytes : int, optional
        Most bytes of that pool's populated blocks, at least the maximum. By default a tenth more
        than the maximum.
    pool_maximum_bytes : int, optional
        The maximum that RMM's pool over it is made with, so that `UvmResourceAdaptor.trim` can have
        it give slabs back. By default none is given back.

    Notes
    -----
    Thread-safe. Allocating 0 bytes gives a null pointer. Memory is never given back while frames
    that use it are alive, even when the resource is replaced.

    Examples
    --------
    >>> import rmm_uvm
    >>> device = rmm_uvm.simulated_device("256MiB")
    >>> mr = rmm_uvm.mr.ManagedMemoryResource(device)
    >>> pointer = mr.allocate(4 << 20)
    >>> device.resident_bytes(pointer, 4 << 20)
    4194304
    >>> mr.deallocate(pointer, 4 << 20)
    """

    def __cinit__(
        self,
        UvmDriver driver not None,
        *,
        prefetch="auto",
        account=None,
        budget=None,
        maximum_bytes=None,
        populated_bytes=None,
        pool_maximum_bytes=0,
    ):
        cdef prefetch_mode mode = as_mode(prefetch)
        if account is None:
            from rmm_uvm._lib.limits import process_account

            account = process_account()
        self.driver = driver
        self.residency = ManagedResidency(driver, budget)
        if maximum_bytes is not None:
            if populated_bytes is None:
                populated_bytes = maximum_bytes + maximum_bytes // 10
            dereference(self.residency.handle).room().set_maximum(maximum_bytes, populated_bytes)
        self.account = account
        self.pool_maximum_bytes = pool_maximum_bytes
        self.resource.reset(
            new managed_memory_resource(self.residency.handle, self.account.handle, mode)
        )
        self.c_ref = make_device_async_resource_ref(dereference(self.resource))

    def level_source(self):
        """Return what tells its levels, a `LevelSource`: every slab counts as in use."""
        return _as_level_source(dereference(self.resource).levels())

    @property
    def prefetcher(self):
        """The same as ``residency``, by the name that it had."""
        return self.residency

    @property
    def slab_bytes(self):
        """Managed bytes taken from the driver and not given back."""
        return self.residency.slab_bytes

    @property
    def refused_frees(self):
        """Frees refused because pointer and size matched no live allocation."""
        return dereference(self.resource).refused_frees()

    def allocate(self, nbytes, Stream stream=DEFAULT_STREAM):
        """Allocate memory, in stream order.

        Parameters
        ----------
        nbytes : int
            Bytes, >= 0.
        stream : rmm.pylibrmm.stream.Stream
            Stream that may use the memory at once.

        Returns
        -------
        int
            Address, a multiple of 256; 0 for 0 bytes.

        Raises
        ------
        ConfigurationError
            If `nbytes` is no whole number, or negative.
        TypeError
            If `stream` is none, as with RMM's own resources.
        MemoryError
            If the cap, or device and host memory, is exhausted; says what was asked and what
            there was.
        """
        cdef size_t asked = _bytes_of(nbytes)
        cdef void* ptr
        stream = as_stream(stream)
        with nogil:
            ptr = allocate_in(dereference(self.resource), stream.view(), asked, _ALIGNMENT_BYTES)
        return <uintptr_t>ptr

    def deallocate(self, uintptr_t ptr, size_t nbytes, Stream stream=DEFAULT_STREAM):
        """Free an allocation.

        Raises
        ------
        DoubleFreeError
            If no live allocation of exactly `nbytes` begins at `ptr`; nothing is freed.
        """
        cdef bool freed
        stream = as_stream(stream)
        with nogil:
            freed = try_deallocate_in(
                dereference(self.resource), stream.view(), <void*>ptr, nbytes
            )
        if not freed:
            raise DoubleFreeError.at(ptr, nbytes)


cdef ManagedMemoryResource _managed_below(DeviceMemoryResource mr):
    """Find the managed memory resource that a chain of adaptors and pools ends in."""
    while mr is not None:
        if isinstance(mr, ManagedMemoryResource):
            return mr
        mr = getattr(mr, "upstream_mr", None)
    return None


cdef list _accounts_of_new = []


def begin_account(MemoryObserver account not None):
    """Tell an account of every `UvmResourceAdaptor` that is made from now on, as `set_account`.

    A program may make a pool, and allocate from it, before anybody looks for new ones.
    """
    _accounts_of_new.append(account)


def end_account(MemoryObserver account not None):
    """End that; nothing if it is not told."""
    if account in _accounts_of_new:
        _accounts_of_new.remove(account)


@cython.no_gc_clear
cdef class UvmResourceAdaptor(UpstreamResourceAdaptor):
    """Outermost adaptor of a managed chain: prefetch-on-allocate that is free while data fit.

    Parameters
    ----------
    upstream_mr : rmm.mr.DeviceMemoryResource
        A pool or adaptor whose memory comes, in the end, from a `ManagedMemoryResource`.
    prefetch : {"auto", "always", "never"}
        "auto": only blocks that may have left the device, and without copying dead contents;
        "always": the whole allocation every time, as RMM's adaptor; "never": leave it to faults.

    Raises
    ------
    ValueError
        If there is no `rmm_uvm.mr.ManagedMemoryResource` below `upstream_mr`, or the mode
        is unknown.

    Notes
    -----
    Thread-safe. Prefetches are issued in the order of the allocation's stream. Dask's dashboard
    finds `upstream_mr` and `get_allocated_bytes`.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> device = rmm_uvm.simulated_device("64MiB")
    >>> pool = rmm.mr.PoolMemoryResource(
    ...     rmm_uvm.mr.ManagedMemoryResource(device), 32 << 20, 128 << 20
    ... )
    >>> mr = rmm_uvm.mr.UvmResourceAdaptor(pool)
    >>> buffer = rmm.DeviceBuffer(size=1000, mr=mr)
    >>> mr.get_allocated_bytes()
    1000
    """

    def __cinit__(self, DeviceMemoryResource upstream_mr, *, prefetch="auto"):
        cdef prefetch_mode mode = as_mode(prefetch)
        self.managed_mr = _managed_below(upstream_mr)
        if self.managed_mr is None:
            raise ValueError(
                "UvmResourceAdaptor needs a chain that ends in rmm_uvm.mr.ManagedMemoryResource; "
                f"{type(upstream_mr).__name__} ends in another source"
            )
        self.prefetch = prefetch
        self.resource.reset(
            new uvm_resource_adaptor(
                any_of(upstream_mr.get_mr()),
                self.managed_mr.residency.handle,
                mode,
            )
        )
        self.c_ref = make_device_async_resource_ref(dereference(self.resource))
        for account in tuple(_accounts_of_new):
            self.set_account(account)

    def __dealloc__(self):
        # Before the upstream wrapper goes, for the same reason as in RMM's own adaptors.
        with nogil:
            self.c_ref.reset()
            self.resource.reset()

    @property
    def driver(self):
        """The driver that is commanded, a `UvmDriver`."""
        return self.managed_mr.driver

    def set_budget(self, budget):
        """Start, change or end the budget of the managed memory below, beside running programs.

        Parameters
        ----------
        budget : int, str, float, rmm_uvm.residency.Budget or None
            Most device memory that managed memory may take: bytes, "12GiB" or a fraction (0 to 1)
            of the device, with all else as it was; "auto" for what ``RMM_UVM_DEVICE_BUDGET`` says,
            else what others leave of the device; a `Budget` with all settings; None to end it, so
            that the kernel driver evicts.

        Raises
        ------
        ConfigurationError
            If the budget is larger than the device, below 8 MiB or no size; if a neighbour that it
            names cannot be one. The budget stays as it was.
        AvailabilityError
            If its thread cannot be started. The budget stays as it was.

        Warns
        -----
        CapacityWarning
            If data cannot exceed the device, as where its memory is the host's: it has no budget.
        NeighborWarning
            If a device that it names cannot be reached, or "auto" finds none.

        Notes
        -----
        Thread-safe, also while others allocate, and no data are lost. What is more than a smaller
        budget leaves soon after. Where a budget starts, or one with other settings takes its place,
        all memory in use before counts as live until it is freed or handed out anew as a whole, so
        that some dead data are copied; figures of `rmm_uvm.residency_statistics` begin anew; and
        what was pinned is not any more. cuDF announces what it uses only where there was a budget
        when `rmm_uvm.reinitialize` was called.

        Examples
        --------
        >>> import rmm_uvm
        >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB")
        >>> mr.set_budget("32MiB")
        >>> rmm_uvm.residency_statistics(mr).budget_bytes
        33554432
        >>> mr.set_budget(None)
        """
        self.managed_mr.residency.set_budget(budget)

    @property
    def budget(self):
        """The budget that is kept, a `rmm_uvm.residency.Budget`, as it was asked for; None without."""
        return self.managed_mr.residency.budget

    @property
    def budget_bytes(self):
        """How large the budget is now, bytes; None without one. It differs where it follows others."""
        return self.managed_mr.residency.budget_bytes

    def get_allocated_bytes(self):
        """Bytes handed out and not freed: the footprint."""
        return dereference(self.resource).allocated_bytes()

    @property
    def peak_bytes(self):
        """Most bytes handed out at once since the start or the last `reset_peak`."""
        return dereference(self.resource).peak_bytes()

    def reset_peak(self):
        """Let `peak_bytes` begin again at the bytes allocated now."""
        dereference(self.resource).reset_peak()

    @property
    def refused_frees(self):
        """Frees refused because pointer and size matched no live allocation."""
        return dereference(self.resource).refused_frees()

    def trim(self):
        """Give back what the pool holds and nobody uses; see `rmm_uvm.trim`.

        RMM's pool writes to its log that it could not serve a request.

        Returns
        -------
        tuple of int, int, str
            Bytes of slabs that went back to the driver; bytes that were discarded in slabs that
            stay; why not all that could go went, empty otherwise.
        """
        from rmm_uvm._lib.current_device import current_device

        cdef trim_outcome outcome
        with current_device(self.driver):  # RMM's pool makes an event for a stream of ours
            with nogil:
                outcome = dereference(self.resource).trim(self.managed_mr.pool_maximum_bytes)
        return outcome.given_back_bytes, outcome.discarded_bytes, outcome.reason.decode()

    def allocation_at(self, uintptr_t address):
        """Find the live allocation that holds an address, which may be inside of it.

        Returns
        -------
        tuple of int or None
            Its address and its size in bytes; None where it has handed out nothing, or it was
            freed.
        """
        cdef optional[memory_range] found
        with nogil:
            found = dereference(self.resource).allocation_at(address)
        if not found.has_value():
            return None
        return found.value().address, found.value().bytes

    def level_source(self):
        """Return what tells its levels, a `LevelSource`; keeps none of its memory alive."""
        return _as_level_source(dereference(self.resource).levels())

    def observe(self, MemoryObserver observer):
        """Tell an observer of every allocation and free from now on.

        Parameters
        ----------
        observer : MemoryObserver or None
            Such as a trace writer; None for none.

        Notes
        -----
        Thread-safe, also while others allocate. An observer that was attached lives as long as
        the adaptor.
        """
        cdef shared_ptr[memory_observer] handle
        if observer is not None:
            handle = observer.handle
        dereference(self.resource).observe(handle)

    def attach_observer(self, MemoryObserver observer not None):
        """Observe as with `observe`, unless another observer is there that still listens.

        Returns
        -------
        bool
            Whether it observes now.
        """
        return dereference(self.resource).observers().attach(observer.handle)

    def detach_observer(self, MemoryObserver observer not None):
        """End observing; nothing if another observer took the place."""
        dereference(self.resource).observers().detach(observer.handle.get())

    def set_account(self, MemoryObserver account not None):
        """Tell an account of allocations, frees and moves, beside an observer.

        Any number of accounts are told. Thread-safe, as `observe`.
        """
        dereference(self.resource).observers().set_account(account.handle)
        self.driver.set_account(account)

    def end_account(self, MemoryObserver account not None):
        """End that; nothing if it is not told."""
        self.driver.end_account(account)
        dereference(self.resource).observers().end_account(account.handle.get())

    @property
    def observed(self):
        """Whether an observer is there that still listens."""
        return dereference(self.resource).observers().taken()

    def statistics(self):
        """What was prefetched, discarded and skipped, and why; see `ManagedResidency.statistics`."""
        return self.managed_mr.residency.statistics()

    def allocate(self, nbytes, Stream stream=DEFAULT_STREAM):
        """Allocate memory, in stream order.

        Parameters
        ----------
        nbytes : int
            Bytes, >= 0.
        stream : rmm.pylibrmm.stream.Stream
            Stream that may use the memory at once.

        Returns
        -------
        int
            Address, a multiple of 256; 0 for 0 bytes.

        Raises
        ------
        ConfigurationError
            If `nbytes` is no whole number, or negative.
        TypeError
            If `stream` is none, as with RMM's own resources.
        MemoryError
            If the pool's maximum, or what lies below it, is exhausted; says what was asked and
            what there was.
        """
        cdef size_t asked = _bytes_of(nbytes)
        cdef void* ptr
        stream = as_stream(stream)
        with nogil:
            ptr = allocate_in(dereference(self.resource), stream.view(), asked, _ALIGNMENT_BYTES)
        return <uintptr_t>ptr

    def deallocate(self, uintptr_t ptr, size_t nbytes, Stream stream=DEFAULT_STREAM):
        """Free an allocation.

        Raises
        ------
        DoubleFreeError
            If no live allocation of exactly `nbytes` begins at `ptr`; nothing is freed.
        """
        cdef bool freed
        stream = as_stream(stream)
        with nogil:
            freed = try_deallocate_in(
                dereference(self.resource), stream.view(), <void*>ptr, nbytes
            )
        if not freed:
            raise DoubleFreeError.at(ptr, nbytes)


cdef class SimulatedCudaMemoryResource(DeviceMemoryResource):
    """What `rmm.mr.CudaMemoryResource` is to a GPU, for a simulated device: cudaMalloc.

    Its memory is never evicted, evicts managed memory, and runs out at the device's capacity.

    Parameters
    ----------
    device : SimulatedDevice
        From `rmm_uvm.drivers.simulated_device`.
    """

    def __cinit__(self, SimulatedDevice device not None):
        self.driver = device
        self.resource.reset(new simulated_cuda_memory_resource(device.model))
        self.c_ref = make_device_async_resource_ref(dereference(self.resource))


@cython.no_gc_clear
cdef class ObservedResource(UpstreamResourceAdaptor):
    """A resource of anybody's, whose allocations and frees accounts are told of.

    Parameters
    ----------
    upstream_mr : rmm.mr.DeviceMemoryResource
        Who allocates.
    device_id : int
        The device that its memory is of.

    Notes
    -----
    Thread-safe. Where one is over another in a chain, the outer one tells. What only the upstream
    has, such as a pool's size, is asked of that.
    """

    def __cinit__(self, DeviceMemoryResource upstream_mr, int device_id):
        self.resource.reset(new observed_resource(any_of(upstream_mr.get_mr()), device_id))
        self.c_ref = make_device_async_resource_ref(dereference(self.resource))

    def __dealloc__(self):
        # Before the upstream wrapper goes, for the same reason as in RMM's own adaptors.
        with nogil:
            self.c_ref.reset()
            self.resource.reset()

    def set_account(self, MemoryObserver account not None):
        """Tell an account from now on, as well as others."""
        dereference(self.resource).observers().set_account(account.handle)

    def end_account(self, MemoryObserver account not None):
        """End that; nothing if it is not told."""
        dereference(self.resource).observers().end_account(account.handle.get())

    @property
    def observed(self):
        """Whether anybody is told."""
        return dereference(self.resource).observers().get() != NULL

    def __getattr__(self, name):
        return getattr(self.upstream_mr, name)


def unobserved(mr):
    """Return a resource as its program made it: without what tells accounts, if that is over it."""
    return mr.upstream_mr if isinstance(mr, ObservedResource) else mr


cdef class _BoundedResource(DeviceMemoryResource):
    """What `bounded` puts over a pool: see there."""

    def __cinit__(self, DeviceMemoryResource asking not None, size_t most_bytes):
        # Its C++ side shares the pool. A Python side would keep it alive, which keeps this.
        self.asking = asking
        self.resource.reset(
            new bounded_resource(any_of(asking.get_mr()), most_bytes)
        )
        self.c_ref = make_device_async_resource_ref(dereference(self.resource))


def bounded(DeviceMemoryResource mr not None, size_t most_bytes, make_room):
    """Let a pool of a fixed size refuse what it can never have, and ask for room for the rest.

    An allocation that fails is tried once more after `make_room`. From wherever it comes: libraries
    allocate without passing through Python.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource
        The pool. From now on it allocates through adaptors over itself.
    most_bytes : int
        Its size. RMM's pool would round a size near 2^64 to nothing.
    make_room : callable
        Called with the bytes that could not be allocated; returns whether any were given back, and
        the allocation is worth another try. It is kept for the rest of the process, and so must
        keep nothing alive itself.

    Returns
    -------
    object
        To be kept as long as `mr`.
    """
    # Never freed: copies of the resource that C++ holds may outlive both, and would call it.
    Py_INCREF(make_room)
    cdef UpstreamResourceAdaptor asking = FailureCallbackResourceAdaptor(mr, make_room)
    # Its C++ side shares the pool. Its Python side would keep `mr` alive, which keeps it.
    asking.upstream_mr = None
    cdef _BoundedResource bound = _BoundedResource(asking, most_bytes)
    mr.c_ref = bound.c_ref
    return bound
