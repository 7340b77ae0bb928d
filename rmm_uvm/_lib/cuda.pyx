# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries and devices (`cpp/include/rmm_uvm/cuda`): libcuda, NVML, kernel counters."""

from cpython.exc cimport PyErr_CheckSignals
from libcpp cimport bool
from libcpp.memory cimport make_shared, static_pointer_cast
from libcpp.string cimport string
from libcpp.vector cimport vector

from rmm_uvm._lib.driver cimport (
    MemoryReader,
    UvmDriver,
    as_availability,
    availability,
    device_memory_reader,
    migration_totals,
)

import time
import uuid as uuids

from rmm_uvm.errors import AvailabilityError, ConfigurationError, DriverError


cdef class CudaDriver(UvmDriver):
    """A GPU, through libcuda. Made by `rmm_uvm.drivers.cuda_driver`.

    Raises
    ------
    DriverError
        If there is no libcuda, it is too old, or the device cannot be opened.
    """

    def __init__(self, int device_id=0, *, bool counters=True):
        cdef loaded_cuda_api library = load_cuda_api()
        if not library.loaded.available:
            raise DriverError(
                f"{library.loaded.reason.decode()}; \"rmm-uvm doctor\" says more, and "
                "a simulated device (\"simulated:16GiB\") needs no GPU"
            )
        cdef opened_cuda_driver opened
        with nogil:
            opened = open_cuda_driver(library.api, device_id, counters)
        if not opened.opened.available:
            raise DriverError(opened.opened.reason.decode())
        self.handle = opened.driver


def libcuda_available():
    """Whether libcuda can be loaded here, a `rmm_uvm.machine.device_info.Availability`."""
    return as_availability(load_cuda_api().loaded)


def attachable(int pid):
    """Whether the counters of a process can be read, a `rmm_uvm.machine.device_info.Availability`.

    Looks at its descriptors and lets go of them again; opens no counters. `pid` may be any number.
    """
    cdef availability found
    with nogil:
        found = may_attach(pid)
    return as_availability(found)


cdef string _uuid_bytes(uuid) except *:
    """Return the 16 bytes of "GPU-..."; none for None."""
    if uuid is None:
        return b""
    try:
        return uuids.UUID(str(uuid).removeprefix("GPU-")).bytes
    except ValueError:
        raise ConfigurationError(f"uuid must be a GPU's, such as \"GPU-...\", not {uuid!r}") from None


cdef class ProcessCounters:
    """The kernel counters of any process that this one may trace; it need not know of it.

    Let go of by `close`, at the end of a ``with`` block, and when `exited` or `wait` see that the
    process has ended. Look often, at least once a second: until then the process' device memory is
    kept.

    Parameters
    ----------
    pid : int
        A process that uses CUDA.
    uuid : str, optional
        Of the GPU to watch, "GPU-..."; all together by default.
    faults : bool
        Count faults too: a program that only faults takes up to 10 % longer.

    Raises
    ------
    AvailabilityError
        If there is no such process, it does not use CUDA, this one may not look into it, or the
        kernel driver's counters cannot be had.
    ConfigurationError
        If `uuid` is none.

    Notes
    -----
    Thread-safe. Creates no CUDA context. Totals count from now on. In a forked child they read as
    zeros; make new ones there.
    """

    def __init__(self, int pid, uuid=None, *, bool faults=False):
        cdef string processor = _uuid_bytes(uuid)
        cdef opened_process_counters opened
        with nogil:
            opened = open_process_counters(make_request(pid, processor, faults))
        if not opened.opened.available:
            raise AvailabilityError(opened.opened.reason.decode())
        self.handle.swap(opened.counters)
        self.pid = pid

    cdef process_counters* _counters(self) except NULL:
        if self.handle.get() == NULL:
            raise AvailabilityError("the counters were not opened")
        return self.handle.get()

    @property
    def available(self):
        """Whether counting goes on, a `rmm_uvm.machine.device_info.Availability`."""
        return as_availability(self._counters().available())

    @property
    def exited(self):
        """Whether the process has ended; looks, and lets go of it if it has."""
        return self._counters().wait_exit(0)

    def read(self):
        """Return the totals since the counters were opened; after the end, the last ones.

        Returns
        -------
        dict of str to int
            ``host_to_device_bytes``, ``device_to_host_bytes``, and ``cpu_faults``, ``gpu_faults``:
            0 unless asked for. CPU faults are those of the whole process.
        """
        cdef migration_totals totals = self._counters().read()
        return totals

    def wait(self, timeout_seconds=None):
        """Wait for the process to end; other threads run meanwhile.

        Parameters
        ----------
        timeout_seconds : float, optional
            At most so long; for ever by default.

        Returns
        -------
        bool
            Whether it has ended. False at once when the counters were closed before that.
        """
        cdef process_counters* counters = self._counters()
        cdef bool ended
        cdef int step_ms
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            left = 3600.0 if deadline is None else min(3600.0, deadline - time.monotonic())
            # Rounded up: a wait that is too short would be repeated with 0 again and again.
            step_ms = max(0, -int(-left * 1000 // 1))
            with nogil:
                ended = counters.wait_exit(step_ms)
            PyErr_CheckSignals()
            if ended or left <= 0.0 or not counters.available().available:
                return ended

    def close(self):
        """Let go of the process; totals stay readable. Idempotent."""
        if self.handle.get() != NULL:
            self.handle.get().close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


cdef class Nvml:
    """NVIDIA's management library, by dlopen: device memory without a CUDA context.

    Making one never fails: `available`, a `rmm_uvm.machine.device_info.Availability`, says whether there
    is such a library here, and every question raises `AvailabilityError` when there is not.

    Notes
    -----
    Thread-safe. Devices are named by their UUID ("GPU-..."), since NVML counts them in another
    order than CUDA.

    Examples
    --------
    >>> from rmm_uvm._lib.cuda import Nvml
    >>> nvml = Nvml()
    >>> nvml.available.reason != "" or len(nvml.devices()) >= 0
    True
    """

    def __init__(self):
        cdef loaded_nvml_api loaded = load_nvml_api()
        if not loaded.loaded.available:
            self.available = as_availability(loaded.loaded)
            return
        cdef opened_nvml opened
        with nogil:
            opened = open_nvml(loaded.api)
        self.library = opened.library
        self.available = as_availability(opened.opened)

    cdef nvml* _open(self) except NULL:
        if self.library.get() == NULL:
            raise AvailabilityError(
                self.available.reason if self.available is not None else "NVML was not opened"
            )
        return self.library.get()

    def devices(self):
        """List the devices, in NVML's order.

        Returns
        -------
        tuple of (str, str)
            UUID and name of each.
        """
        cdef nvml* library = self._open()
        cdef vector[nvml_device] found
        cdef availability asked
        with nogil:
            asked = library.devices(found)
        _require(asked)
        return tuple((one.uuid.decode(), one.name.decode(errors="replace")) for one in found)

    def memory(self, uuid):
        """Read the memory of one device, in bytes.

        Returns
        -------
        tuple of int
            (used, free, total), of all processes. `total` is what the card has, a little more than
            CUDA tells; what the driver keeps for itself is in none of the other two, but before
            driver 510 it is in `used`.
        """
        cdef nvml* library = self._open()
        cdef string asked_for = uuid.encode()
        cdef nvml_memory found
        cdef availability asked
        with nogil:
            asked = library.memory(asked_for, found)
        _require(asked)
        return found.used_bytes, found.free_bytes, found.total_bytes

    def pcie_bytes_per_second(self, uuid):
        """Measure all traffic of one device over PCIe.

        Blocks for about 40 ms, of which the driver measures 20 each way. Other threads run.

        Returns
        -------
        tuple of int
            (received, sent) by the device, bytes a second.
        """
        cdef nvml* library = self._open()
        cdef string asked_for = uuid.encode()
        cdef pcie_throughput found
        cdef availability asked
        with nogil:
            asked = library.pcie(asked_for, found)
        _require(asked)
        return found.received_bytes_per_second, found.sent_bytes_per_second

    def utilization(self, uuid):
        """Read how busy one device was in NVML's latest sampling period, 1/6 s to 1 s.

        Returns
        -------
        tuple of float
            (kernels, memory): fractions of the time in which a kernel ran, and in which device
            memory was read or written. Not told of a device that MIG divides.
        """
        cdef nvml* library = self._open()
        cdef string asked_for = uuid.encode()
        cdef nvml_utilization found
        cdef availability asked
        with nogil:
            asked = library.utilization(asked_for, found)
        _require(asked)
        return found.kernel_percent / 100, found.memory_percent / 100

    def nvlink(self, uuid):
        """Read the NVLinks of one device, all together.

        Returns
        -------
        dict of str to int
            ``active_links``; ``link_bytes_per_second`` of each, each way, 0 if not told;
            ``sent_bytes``, ``received_bytes`` by the device since some time in the past, and
            ``read_at_us``, when those were read: two readings give a rate.
        """
        cdef nvml* library = self._open()
        cdef string asked_for = uuid.encode()
        cdef nvlink_reading found
        cdef availability asked
        with nogil:
            asked = library.nvlink(asked_for, found)
        _require(asked)
        return found

    def processes(self, uuid):
        """List the processes that compute on one device.

        Returns
        -------
        tuple of (int, int or None)
            PID, and device memory in bytes if it is told. In a container PIDs may be the host's.
        """
        cdef nvml* library = self._open()
        cdef string asked_for = uuid.encode()
        cdef vector[nvml_process] found
        cdef availability asked
        with nogil:
            asked = library.processes(asked_for, found)
        _require(asked)
        return tuple(
            (one.pid, one.used_bytes.value() if one.used_bytes.has_value() else None)
            for one in found
        )

    def memory_reader(self, uuid):
        """Return what the sampler asks for free memory, a `MemoryReader`."""
        self._open()
        cdef string of = uuid.encode()
        cdef MemoryReader reader = MemoryReader.__new__(MemoryReader)
        reader.handle = static_pointer_cast[device_memory_reader, nvml_memory_reader](
            make_shared[nvml_memory_reader](self.library, of)
        )
        return reader


cdef int _require(const availability& asked) except -1:
    if not asked.available:
        raise AvailabilityError(asked.reason.decode())
    return 0
