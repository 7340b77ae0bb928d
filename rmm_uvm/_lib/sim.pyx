# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated device (`cpp/include/rmm_uvm/sim`)."""

from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t, uintptr_t
from libcpp cimport bool
from libcpp.memory cimport make_shared, shared_ptr, static_pointer_cast
from libcpp.optional cimport optional
from libcpp.string cimport string

from rmm_uvm._lib.driver cimport (
    MemoryObserver,
    UvmDriver,
    capture_state,
    location,
    memory_observer,
    check,
    memory_range,
    neighbor_load,
    range_of,
    status,
    status_code,
    stream_handle,
    uvm_driver,
)
from rmm_uvm._lib.sim cimport (
    SimulatedDevice,
    NodeModel,
    block_policy,
    direction,
    driver_settings,
    link_traffic,
    machine_profile,
    node_topology,
    simulated_device,
    simulated_device_config,
    simulated_node,
    simulated_node_config,
    simulated_statistics,
)

from rmm_uvm._lib.sim_calls import INJECTED

_FAILURES = {
    "out_of_memory": status_code.out_of_memory,
    "invalid_value": status_code.invalid_value,
    "not_supported": status_code.not_supported,
    "driver_error": status_code.driver_error,
}
_CAPTURE_STATES = {
    "none": capture_state.none,
    "capturing": capture_state.capturing,
    "implied": capture_state.implied,
    "unknown": capture_state.unknown,
}
_TOPOLOGIES = {
    "nvswitch": node_topology.nvswitch,
    "pairs": node_topology.pairs,
    "pcie": node_topology.pcie,
}

TOPOLOGIES = tuple(_TOPOLOGIES)


for _name in INJECTED.values():
    Py_INCREF(_name)  # a status keeps its address for good


cdef object _chosen(table, name, what):
    if name not in table:
        raise ValueError(f"{what} must be {', '.join(map(repr, table))}, not {name!r}")
    return table[name]


def default_machine():
    """Return the constants that the model has where none are given, by name."""
    cdef machine_profile machine
    return machine


def default_driver_settings():
    """Return the kernel driver's parameters that the model has where none are given, by name."""
    cdef driver_settings settings
    return settings


cdef class SimulatedDevice(UvmDriver):
    """A device without a GPU: follows the UVM kernel driver's rules, in modelled time.

    Made by `rmm_uvm.drivers.simulated_device`. Every operation happens at once, in call order.
    Thread-safe.
    """

    def __init__(
        self,
        size_t capacity_bytes,
        *,
        host_bytes=None,
        bool backing=False,
        bool concurrent_managed_access=True,
        bool discard=True,
        bool counters=True,
        bool tells_moves=True,
        bool direct_migration=False,
        bool integrated=False,
        numa_node=None,
        int device_id=0,
        unsigned neighbors=0,
        machine=None,
        driver=None,
        third_tier=None,
    ):
        cdef simulated_device_config config
        config.capacity_bytes = capacity_bytes
        if host_bytes is not None:
            config.host_bytes = host_bytes
        config.backing = backing
        config.concurrent_managed_access = concurrent_managed_access
        config.discard = discard
        config.counters = counters
        config.tells_moves = tells_moves
        config.direct_migration = direct_migration
        config.integrated = integrated
        if numa_node is not None:
            config.numa_node = optional[int](<int>numa_node)
        config.device_id = device_id
        config.neighbors = neighbors
        if machine is not None:
            config.machine = machine
        if driver is not None:
            config.driver = driver
        if third_tier is not None:
            config.behind_host = third_tier
        self.model = make_shared[simulated_device](config)
        self.handle = static_pointer_cast[uvm_driver, simulated_device](self.model)

    @property
    def backing(self):
        """Whether there is real host memory behind the addresses."""
        return dereference(self.model).view().backing()

    def touch(self, uintptr_t address, size_t nbytes, bool write=False):
        """Let a kernel read, or read and write, a managed range.

        Raises
        ------
        DriverError
            If the range is not inside one managed allocation.
        MemoryError
            If neither device nor host can hold the pages: on a GPU the process would die.
        """
        cdef memory_range pages = range_of(address, nbytes)
        cdef status result
        with nogil:
            result = dereference(self.model).program().touch(pages, write)
        check(result, f"a simulated kernel touching {nbytes} bytes")

    def cpu_touch(self, uintptr_t address, size_t nbytes, bool write=False):
        """Let the CPU read, or read and write, a managed range. Errors as in `touch`."""
        cdef memory_range pages = range_of(address, nbytes)
        cdef status result
        with nogil:
            result = dereference(self.model).program().cpu_touch(pages, write)
        check(result, f"the CPU touching {nbytes} bytes")

    def compute(self, double seconds):
        """Let a kernel compute for so long, with no memory to speak of; modelled seconds, >= 0.

        Raises
        ------
        DriverError
            If it is a negative time, or none.
        """
        cdef status result
        with nogil:
            result = dereference(self.model).program().compute(seconds * 1e9)
        check(result, f"a simulated kernel of {seconds} seconds")

    def migrate_beside(self, bool beside):
        """Say whose thread migrates from now on: one beside the program, or the program's own.

        `UvmDriver.migrate`, and budgets through it: what a budget's thread would do is asked for
        by the only thread that there is. On a node a kernel waits for what that moves where it
        uses it; on a device alone it is the program's time.

        Parameters
        ----------
        beside : bool
            True for a thread beside the program; False, as at first, for its own.
        """
        dereference(self.model).program().migrate_beside(beside)

    def observe(self, MemoryObserver observer):
        """Tell an observer of every touch from now on.

        Parameters
        ----------
        observer : MemoryObserver or None
            Such as a trace writer; None for none. It lives as long as the device.
        """
        cdef shared_ptr[memory_observer] handle
        if observer is not None:
            handle = observer.handle
        dereference(self.model).program().observe(handle)

    def attach_observer(self, MemoryObserver observer not None):
        """Observe as with `observe`, unless another observer is there that still listens.

        Returns
        -------
        bool
            Whether it observes now.
        """
        return dereference(self.model).program().observers().attach(observer.handle)

    def detach_observer(self, MemoryObserver observer not None):
        """End observing; nothing if another observer took the place."""
        dereference(self.model).program().observers().detach(observer.handle.get())

    @property
    def observed(self):
        """Whether an observer is there that still listens."""
        return dereference(self.model).program().observers().taken()

    def resident_bytes(self, uintptr_t address, size_t nbytes, where="device"):
        """Bytes of a managed range that reside in a place now.

        Parameters
        ----------
        address, nbytes : int
            The range.
        where : {"device", "host"} or int
            This device, host memory, or the ordinal of a neighbour.
        """
        cdef memory_range pages = range_of(address, nbytes)
        cdef location place
        if where == "device":
            place.device_id = dereference(self.handle).info().device_id
        elif where != "host":
            place.device_id = where
        return dereference(self.model).view().resident_bytes(pages, place)

    def occupy_neighbor(self, int device_id, size_t nbytes):
        """Let programs on a neighbour hold so much memory of their own there from now on.

        Managed pages leave for it, to the host.

        Raises
        ------
        DriverError
            If there is no such neighbour.
        MemoryError
            If it has not as much.
        """
        cdef status result
        with nogil:
            result = dereference(self.model).neighbors().occupy(device_id, nbytes)
        check(result, f"occupying {nbytes} bytes of device {device_id}")

    def set_neighbor_load(
        self, int device_id, *, kernel_fraction=None, memory_fraction=None, link_fraction=None
    ):
        """Let a neighbour be so busy from now on; see `neighbor_load`. Fractions, 0 to 1.

        Raises
        ------
        DriverError
            If there is no such neighbour.
        """
        cdef neighbor_load load
        if kernel_fraction is not None:
            load.kernel_fraction = <double>kernel_fraction
        if memory_fraction is not None:
            load.memory_fraction = <double>memory_fraction
        if link_fraction is not None:
            load.link_fraction = <double>link_fraction
        check(
            dereference(self.model).neighbors().set_load(device_id, load),
            f"setting how busy device {device_id} is",
        )

    def advised(self, uintptr_t address):
        """What was advised about the block that an address is in.

        Returns
        -------
        tuple of (bool, str)
            Whether it is read mostly, and where it belongs: "device", "host" or "none".
        """
        cdef block_policy found = dereference(self.model).view().advised(address)
        places = {dereference(self.model).view().gpu(): "device", -1: "host"}
        return found.read_mostly, places.get(found.preferred, "none")

    def statistics(self):
        """Everything counted so far, and all levels now.

        Returns
        -------
        dict of str to int
            Bytes, counts, and ``modelled_ns``: modelled time of all driver work. Field by field in
            ``docs/use/metrics.md``.
        """
        cdef simulated_statistics s = dereference(self.model).view().statistics()
        return s

    def fail_call(self, call, code="driver_error", unsigned skip=0):
        """Let one future driver call fail: the one after `skip` further calls of that name.

        Parameters
        ----------
        call : str
            Name of the seam's method, such as ``"prefetch"``; ``"available"``, ``"request_faults"``
            and ``"start"`` are of counters and events. What is told of the failure names it. An
            error lists all of them.
        code : {"out_of_memory", "invalid_value", "not_supported", "driver_error"}
            What it shall answer.
        skip : int
            Calls that still succeed.

        Raises
        ------
        ValueError
            If there is no such call, or `code` is none of these.
        """
        cdef bytes name = _chosen(INJECTED, call, "call")
        cdef status failure
        failure.code = _chosen(_FAILURES, code, "code")
        failure.native_error = 0
        failure.call = name
        dereference(self.model).answers().plan(<string>call.encode(), failure, skip)

    def cancel_failures(self):
        """Take back what `fail_call` planned and no call has met yet; return how many (int)."""
        return dereference(self.model).answers().cancel()

    def set_capture_state(self, uintptr_t stream, state):
        """Let a stream look as if it were capturing: "none", "capturing", "implied", "unknown"."""
        cdef capture_state value = _chosen(_CAPTURE_STATES, state, "state")
        dereference(self.model).answers().set_capture_state(<stream_handle>stream, value)

    def end_graphs(self):
        """End all graphs that "capturing" streams captured so far, as if they were deleted."""
        dereference(self.model).answers().end_graphs()


cdef class NodeModel:
    """Several simulated GPUs; `rmm_uvm.simulator.node.SimulatedNode` is its public face."""

    def __init__(
        self,
        size_t capacity_bytes,
        *,
        unsigned gpus,
        topology,
        links,
        host_bytes,
        bool backing,
        bool discard,
        bool counters,
        bool direct_migration,
        bool places_at_once,
        machine,
        driver,
        third_tier=None,
    ):
        cdef simulated_node_config config
        cdef simulated_device_config features
        config.capacity_bytes = capacity_bytes
        config.gpus = gpus
        config.topology = _TOPOLOGIES[topology]
        config.links = links
        if host_bytes is not None:
            config.host_bytes = host_bytes
        if machine is not None:
            config.machine = machine
        if driver is not None:
            config.driver = driver
        if third_tier is not None:
            config.behind_host = third_tier
        features.backing = backing
        features.discard = discard
        features.counters = counters
        features.direct_migration = direct_migration
        features.places_at_once = places_at_once
        self.node = make_shared[simulated_node](config)
        self.devices = tuple([self._device(gpu, features) for gpu in range(gpus)])

    cdef SimulatedDevice _device(self, unsigned gpu, const simulated_device_config& features):
        cdef SimulatedDevice device = SimulatedDevice.__new__(SimulatedDevice)
        device.model = make_shared[simulated_device](self.node, gpu, features)
        device.handle = static_pointer_cast[uvm_driver, simulated_device](device.model)
        return device

    def occupy(self, unsigned gpu, size_t nbytes):
        cdef status result
        with nogil:
            result = dereference(self.node).occupy(gpu, nbytes)
        check(result, f"occupying {nbytes} bytes of GPU {gpu}")

    def synchronize(self):
        cdef double now_ns
        with nogil:
            now_ns = dereference(self.node).synchronize()
        return now_ns

    def host_traffic(self, unsigned gpu, bool to_host):
        cdef direction way = direction.to_host if to_host else direction.to_device
        cdef link_traffic found = dereference(self.node).host_traffic(gpu, way)
        return found.bytes, found.busy_ns

    def peer_traffic(self, unsigned sender, unsigned receiver):
        cdef link_traffic found = dereference(self.node).peer_traffic(sender, receiver)
        return found.bytes, found.busy_ns
