# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Python's view of the driver seam (`cpp/include/rmm_uvm/driver`)."""

from cython.operator cimport dereference
from libcpp cimport bool
from libcpp.memory cimport make_shared, static_pointer_cast
from libcpp.optional cimport optional

import uuid

from rmm_uvm.machine.device_info import Availability, DeviceInfo
from rmm_uvm.errors import DriverError


cdef object as_availability(const availability& value):
    return Availability(value.available, value.reason.decode())


cdef int check(status result, what) except -1:
    """Raise MemoryError or DriverError when a driver call failed."""
    if result.ok():
        return 0
    message = (
        f"{what}: {result.call.decode()} answered {status_text(result.code).decode()}"
        f" ({result.native_error})"
    )
    if result.code == status_code.out_of_memory:
        raise MemoryError(message)
    raise DriverError(message)


cdef location _location(UvmDriver driver, where) except *:
    cdef location result
    if where == "host":
        result.device_id = -1
    elif where == "device":
        result.device_id = dereference(driver.handle).info().device_id
    else:
        raise ValueError(f"where must be 'device' or 'host', not {where!r}")
    return result


cdef object _whole(const optional[int]& value):
    return value.value() if value.has_value() else None


cdef object _number(const optional[double]& value):
    return value.value() if value.has_value() else None


cdef class UvmDriver:
    """Commands to, and observations of, one device; made by `rmm_uvm.drivers`.

    Notes
    -----
    Thread-safe. Stream arguments are integer handles; 0 is the legacy default stream.
    """

    def __init__(self):
        raise TypeError("drivers are made by rmm_uvm.drivers.cuda_driver or .simulated_device")

    @property
    def info(self):
        """Fixed facts about the device, a `rmm_uvm.machine.device_info.DeviceInfo`."""
        cdef const device_info* info = &dereference(self.handle).info()
        cdef uuid_bytes raw = info.uuid
        return DeviceInfo(
            device_id=info.device_id,
            name=info.name.decode(errors="replace"),
            uuid=f"GPU-{uuid.UUID(bytes=(<char*>raw.data())[:16])}",
            total_bytes=info.total_bytes,
            driver_version=info.driver_version,
            concurrent_managed_access=as_availability(info.concurrent_managed_access),
            discard=as_availability(info.discard),
            direct_migration=as_availability(info.direct_migration),
            host_pages=as_availability(info.host_pages),
            pageable_memory_access=info.pageable_memory_access,
            host_page_tables=info.host_page_tables,
            integrated=info.integrated,
            numa_node=_whole(info.numa_node),
            simulated=info.simulated,
        )

    def memory(self):
        """Free and total device memory, of all processes, in bytes.

        Returns
        -------
        tuple of int
            (free_bytes, total_bytes)

        Raises
        ------
        DriverError
            If the driver cannot tell.
        """
        cdef device_memory memory
        check(dereference(self.handle).memory(memory), "asking for free memory")
        return memory.free_bytes, memory.total_bytes

    @property
    def device_count(self):
        """Devices that this process sees; their ordinals are below it."""
        return dereference(self.handle).device_count()

    @property
    def tells_moves(self):
        """Whether accounts are told what did move, and not what was asked for: a model's are."""
        return dereference(self.handle).tells_moves()

    def set_account(self, MemoryObserver account not None):
        """Tell an account of what moves from now on, as well as others that are told."""
        dereference(self.handle).traffic_observers().set_account(account.handle)

    def end_account(self, MemoryObserver account not None):
        """End that; nothing if it is not told."""
        dereference(self.handle).traffic_observers().end_account(account.handle.get())

    def neighbor_uuid(self, int device_id):
        """UUID of a device that `open_neighbor` opened; else a `DriverError`."""
        cdef uuid_bytes raw
        check(
            dereference(self.handle).neighbor_uuid(device_id, raw),
            f"asking for the UUID of device {device_id}",
        )
        return f"GPU-{uuid.UUID(bytes=(<char*>raw.data())[:16])}"

    def neighbor_memory(self, int device_id):
        """Free and total bytes of a device that `open_neighbor` opened; else a `DriverError`."""
        cdef device_memory memory
        check(
            dereference(self.handle).neighbor_memory(device_id, memory),
            f"asking for free memory of device {device_id}",
        )
        return memory.free_bytes, memory.total_bytes

    def open_neighbor(self, int device_id):
        """Let pages of this device's managed memory go to another device, and come back.

        Enables peer access between the two, for the process. May be called again.

        Parameters
        ----------
        device_id : int
            CUDA ordinal of the other device.

        Returns
        -------
        rmm_uvm.machine.device_info.Availability
            Whether they can, and if not, why.

        Examples
        --------
        >>> import rmm_uvm
        >>> rmm_uvm.drivers.simulated_device("64MiB", neighbors=1).open_neighbor(1).available
        True
        """
        cdef availability opened
        with nogil:
            opened = dereference(self.handle).open_neighbor(device_id)
        return as_availability(opened)

    def neighbor_load(self, int device_id):
        """How busy an opened neighbour is, with everybody's work, as NVML tells.

        Returns
        -------
        dict of str to float or None
            ``kernel_fraction``, ``memory_fraction``: of the latest sampling period in which a
            kernel ran, or memory was used; ``link_fraction``: of the NVLinks' rate since the last
            reading. 0 to 1; None for what is not told.

        Raises
        ------
        DriverError
            If the device was not opened by `open_neighbor`, or nothing can be told.
        """
        cdef neighbor_load load
        cdef status result
        with nogil:
            result = dereference(self.handle).read_neighbor_load(device_id, load)
        check(result, f"asking how busy device {device_id} is")
        return {
            "kernel_fraction": _number(load.kernel_fraction),
            "memory_fraction": _number(load.memory_fraction),
            "link_fraction": _number(load.link_fraction),
        }

    def memory_reader(self):
        """Return what the sampler asks for free memory, a `MemoryReader`.

        Examples
        --------
        >>> import rmm_uvm
        >>> rmm_uvm.drivers.simulated_device("64MiB").memory_reader().read()
        (67108864, 67108864)
        """
        cdef MemoryReader reader = MemoryReader.__new__(MemoryReader)
        reader.handle = static_pointer_cast[device_memory_reader, driver_memory_reader](
            make_shared[driver_memory_reader](self.handle)
        )
        return reader

    def counters_available(self):
        """Whether migrated bytes are counted here, a `rmm_uvm.machine.device_info.Availability`."""
        return as_availability(dereference(self.handle).counters().available())

    def migrated_bytes(self):
        """Bytes that managed memory of this process moved, since the driver was opened.

        Returns
        -------
        tuple of int
            (host_to_device_bytes, device_to_host_bytes); zeros when counters are not available.
        """
        cdef migration_totals totals = dereference(self.handle).counters().read()
        return totals.host_to_device_bytes, totals.device_to_host_bytes

    def fault_counts(self):
        """Faults on managed memory while they were counted, since the driver was opened.

        Returns
        -------
        tuple of int
            (cpu_faults, gpu_faults). On a GPU, pages that the device asked for, and faults of the
            CPU in the whole process, so that every device shows the same. On the simulated device,
            groups of 64 KiB (of 4 KiB after a discard), of this device only. Zeros unless
            `request_faults` was called; a budget that follows others has some counted, too.
        """
        cdef migration_totals totals = dereference(self.handle).counters().read()
        return totals.cpu_faults, totals.gpu_faults

    def request_faults(self):
        """Ask that faults be counted too: a program that only faults takes up to 10 % longer.

        Each request that was granted is taken back by one `release_faults`; faults are counted
        while any is standing.

        Returns
        -------
        rmm_uvm.machine.device_info.Availability
            Whether they are counted from now on, and if not, why.
        """
        cdef availability granted
        with nogil:
            granted = dereference(self.handle).counters().request_faults()
        return as_availability(granted)

    def release_faults(self):
        """Take one request back that `request_faults` has granted."""
        with nogil:
            dereference(self.handle).counters().release_faults()

    def command_totals(self):
        """Bytes that this driver was asked to move or drop, since it was opened.

        What was asked for, by whomever, and accepted; pages that were there already are included.

        Returns
        -------
        dict of str to int
            ``prefetched_to_device_bytes``, ``prefetched_to_host_bytes``, ``discarded_bytes``.

        Examples
        --------
        >>> import rmm_uvm
        >>> driver = rmm_uvm.drivers.simulated_device("64MiB")
        >>> driver.command_totals()["prefetched_to_host_bytes"]
        0
        """
        cdef command_totals totals = dereference(self.handle).commands()
        return totals

    def prefetch(self, uintptr_t address, size_t nbytes, where="device", uintptr_t stream=0):
        """Move managed pages to `where`, in stream order; contents are kept.

        Parameters
        ----------
        address : int
            First byte, inside managed memory.
        nbytes : int
            Length, bytes, > 0.
        where : {"device", "host"}
            The driver's own device, or host memory.
        stream : int
            CUDA stream handle.

        Raises
        ------
        DriverError
            If the driver refuses, for example memory that is not managed.
        """
        cdef memory_range pages = range_of(address, nbytes)
        cdef location place = _location(self, where)
        cdef status result
        with nogil:
            result = dereference(self.handle).prefetch(pages, place, <stream_handle>stream)
        check(result, f"prefetching {nbytes} bytes to the {where}")

    def migrate(self, uintptr_t address, size_t nbytes, where="device"):
        """Move managed pages to `where` now, past libcuda; contents are kept.

        Returns when they have arrived. Waits for no stream, and holds up no kernel launch. Only
        where ``info.direct_migration`` is available. Parameters and errors as in `prefetch`.
        """
        cdef memory_range pages = range_of(address, nbytes)
        cdef location place = _location(self, where)
        cdef status result
        with nogil:
            result = dereference(self.handle).migrate(pages, place)
        check(result, f"migrating {nbytes} bytes to the {where}")

    def discard(self, uintptr_t address, size_t nbytes, uintptr_t stream=0):
        """Drop the contents of the whole pages in a range, in stream order.

        Memory that nobody reads before it is written again. Prefetch it before a kernel writes
        it: such a kernel otherwise faults page by page. Parameters and errors as in `prefetch`.
        """
        cdef memory_range pages = range_of(address, nbytes)
        cdef status result
        with nogil:
            result = discard_one(dereference(self.handle), pages, <stream_handle>stream)
        check(result, f"discarding {nbytes} bytes")

    def discard_and_prefetch(
        self, uintptr_t address, size_t nbytes, where="device", uintptr_t stream=0
    ):
        """Drop contents and make the pages usable at `where`, without copying them.

        Parameters and errors as in `prefetch`.
        """
        cdef memory_range pages = range_of(address, nbytes)
        cdef location place = _location(self, where)
        cdef status result
        with nogil:
            result = discard_and_prefetch_one(
                dereference(self.handle), pages, place, <stream_handle>stream
            )
        check(result, f"discarding and prefetching {nbytes} bytes")

    def synchronize(self, uintptr_t stream=0):
        """Wait until all work in `stream` is done."""
        cdef status result
        with nogil:
            result = dereference(self.handle).synchronize(<stream_handle>stream)
        check(result, "synchronizing a stream")


cdef class MemoryReader:
    """Free and total memory of one device, of all processes; for the sampler.

    Made by `UvmDriver.memory_reader` and `rmm_uvm._lib.cuda.Nvml.memory_reader`. Thread-safe.
    """

    def __init__(self):
        raise TypeError("made by UvmDriver.memory_reader and Nvml.memory_reader")

    def read(self):
        """Read it now.

        Returns
        -------
        tuple of int, or None
            (free_bytes, total_bytes); None when it cannot be told.
        """
        cdef device_memory memory
        cdef bool told
        with nogil:
            told = dereference(self.handle).read(memory)
        return (memory.free_bytes, memory.total_bytes) if told else None


cdef class LevelSource:
    """Tells the levels of one memory resource; keeps none of its memory alive. Thread-safe.

    Made by ``level_source()`` of `rmm_uvm.mr.UvmResourceAdaptor` and `ManagedMemoryResource`.

    Examples
    --------
    >>> import rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    >>> source = mr.level_source()
    >>> pointer = mr.allocate(1000)
    >>> source.levels()["footprint_bytes"], source.levels()["managed_bytes"]
    (1000, 8388608)
    >>> mr.deallocate(pointer, 1000)
    """

    def __init__(self):
        raise TypeError("a level source is made by level_source() of a memory resource")

    def levels(self):
        """Levels now.

        Returns
        -------
        dict of str to int
            ``footprint_bytes`` and ``managed_bytes``, now; ``prefetched_bytes``,
            ``discarded_bytes`` and ``waited_ns``, so far.
        """
        cdef memory_levels found = dereference(self.handle).levels()
        return {
            "footprint_bytes": found.footprint_bytes,
            "managed_bytes": found.managed_bytes,
            "prefetched_bytes": found.prefetched_bytes,
            "discarded_bytes": found.discarded_bytes,
            "waited_ns": found.waited_ns,
        }


cdef class MemoryObserver:
    """Is told of allocations and frees; the base of trace writers."""

    def __init__(self):
        raise TypeError("a memory observer is made by what observes, such as a trace writer")
