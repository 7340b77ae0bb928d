# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A machine with GPUs that is not there: what a program's memory would do on it, and how long.

Covers programs written against the model directly: allocations, kernels with access patterns,
prefetches, streams. Does not cover running a program on it in place of a GPU; see
`rmm_uvm.simulated_device`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields

from rmm_uvm._lib.model import ADVICE, UvmModel
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator.checks import (
    LARGEST_NUMBER,
    checked_links,
    checked_seconds,
    checked_stream,
    checked_whole,
    shown_address,
)
from rmm_uvm.simulator.patterns import PAGE_BYTES, Pattern, sequential
from rmm_uvm.support.machine_profile import Machine
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes, parse_bytes


@dataclass(frozen=True, slots=True)
class Counters:
    """Sums since a simulator was made, and levels now; bytes and counts.

    Attributes
    ----------
    to_device_bytes, to_host_bytes, peer_bytes : int
        Migrated from the host to GPUs, to the host (evictions included), between GPUs.
    remote_bytes : int
        Accessed by kernels where they lay, through a mapping.
    evicted_bytes, evicted_blocks, dropped_bytes : int
        Written back to make room; blocks whose device memory was taken; discarded bytes that left
        without a copy.
    filled_bytes : int
        Device memory that came without a copy.
    gpu_faults, fault_services, fault_batches, cpu_faults : int
        Pages that faulted, duplicates included; blocks served, once for each batch; batches;
        faults of the CPU.
    block_operations : int
        Blocks migrated, filled, evicted, discarded, or found where they should be.
    managed_bytes, device_bytes, resident_bytes, peak_resident_bytes, host_page_bytes : int
        Now: managed memory, cudaMalloc memory, device memory behind managed pages and the most of
        it, host memory behind them.
    to_third_tier_bytes, from_third_tier_bytes, third_tier_bytes : int
        Written to a third tier behind the host and read from it; there now.
    """

    to_device_bytes: int
    to_host_bytes: int
    peer_bytes: int
    remote_bytes: int
    evicted_bytes: int
    evicted_blocks: int
    dropped_bytes: int
    filled_bytes: int
    gpu_faults: int
    fault_services: int
    fault_batches: int
    cpu_faults: int
    block_operations: int
    managed_bytes: int
    device_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    host_page_bytes: int
    to_third_tier_bytes: int
    from_third_tier_bytes: int
    third_tier_bytes: int

    def since(self, earlier: Counters) -> Counters:
        """Return what was added since; levels are those of now."""
        return Counters(
            **{
                one.name: getattr(self, one.name)
                - (0 if one.name in _LEVELS else getattr(earlier, one.name))
                for one in fields(self)
            }
        )


_LEVELS = frozenset(
    (
        *("managed_bytes", "device_bytes", "resident_bytes", "peak_resident_bytes"),
        *("host_page_bytes", "third_tier_bytes"),
    )
)


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """Parameters of the UVM kernel driver, as its module parameters.

    Parameters
    ----------
    prefetch : bool
        ``uvm_perf_prefetch_enable``: whether a page fault brings pages around it.
    prefetch_threshold : int
        ``uvm_perf_prefetch_threshold``, percent, 0..100.
    min_faults : int
        ``uvm_perf_prefetch_min_faults``, 1..20.
    two_passes : bool
        Whether a prefetch call of several blocks goes over them twice, as drivers 580 and 595 do.
    evict_pages : bool
        Device memory is taken and freed in pages of 4 KiB, as in simulators of papers; the kernel
        driver does so in blocks of 2 MiB.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds.
    """

    prefetch: bool = True
    prefetch_threshold: int = 51
    min_faults: int = 1
    two_passes: bool = True
    evict_pages: bool = False

    def __post_init__(self) -> None:
        checked_whole(self.prefetch_threshold, "prefetch_threshold", 0, 100)
        checked_whole(self.min_faults, "min_faults", 1, 20)


_FIRST_ADDRESS, _LAST_ADDRESS = 1 << 40, 1 << 53
_MOST_GPUS = 8
_HOST = -1
_MOST_FAULTS = 2**20
# The model takes some 40 bytes for each 2 MiB: a slip of the pen shall not take all memory.
_MOST_MANAGED_BYTES = 16 << 40


@dataclass(frozen=True, slots=True)
class Access:
    """The access of a kernel to one range.

    Parameters
    ----------
    address, nbytes : int, or str for the bytes
        The range, inside one managed allocation.
    pattern : Pattern
        In what order.
    write : bool
        Whether it writes what it reads.
    """

    address: int
    nbytes: int | str
    pattern: Pattern = field(default_factory=sequential)
    write: bool = False


class Simulator:
    """A machine with GPUs as the UVM kernel driver would run it, in modelled time.

    Calls take effect in their order; their times follow streams, the driver's thread and the copy
    engines. Equal calls give equal results on every computer.

    Parameters
    ----------
    machine : Machine
        Rates and times; see `rmm_uvm.simulator.load_machine`.
    device_bytes : int or str, optional
        Memory of each GPU for programs, a multiple of 2 MiB; by default the machine's.
    gpus : int
        1 to 8.
    host_bytes : int or str, optional
        Host memory that pages may take; by default without limit.
    driver : DriverSettings
        The kernel driver's parameters.
    links : sequence of int, optional
        For each GPU the number of its link to the host, from 0; GPUs with the same number share
        it. By default each has its own.
    peers : bool
        Whether peer access is enabled between GPUs, where the machine has it.

    Raises
    ------
    ConfigurationError
        If a value is out of its bounds.

    Notes
    -----
    Thread-safe. No memory stands behind the addresses.

    Examples
    --------
    >>> from rmm_uvm.simulator import Access, Simulator, load_machine
    >>> simulator = Simulator(load_machine("h200-pcie5"), device_bytes="1GiB")
    >>> data = simulator.allocate_managed("1536MiB")
    >>> for _ in range(2):
    ...     simulator.kernel([Access(data, 1536 << 20, write=True)])
    >>> simulator.synchronize()
    >>> simulator.counters().evicted_bytes >> 20
    2048
    """

    def __init__(
        self,
        machine: Machine,
        *,
        device_bytes: int | str | None = None,
        gpus: int = 1,
        host_bytes: int | str | None = None,
        driver: DriverSettings | None = None,
        links: Sequence[int] | None = None,
        peers: bool = True,
    ) -> None:
        if not isinstance(machine, Machine):
            named = machine if isinstance(machine, str) else "h200-pcie5"
            raise ConfigurationError(f"machine={shown(machine)}: use load_machine({shown(named)})")
        size_bytes = machine.device_bytes // VA_BLOCK_BYTES * VA_BLOCK_BYTES
        if device_bytes is not None:
            size_bytes = parse_bytes(device_bytes, name="device_bytes")
        if size_bytes <= 0 or size_bytes % VA_BLOCK_BYTES:
            raise ConfigurationError(
                f"device_bytes is {size_bytes}: a simulated GPU has a multiple of 2 MiB"
            )
        gpus = checked_whole(gpus, "gpus", 1, _MOST_GPUS)
        if driver is not None and not isinstance(driver, DriverSettings):
            raise ConfigurationError(f"driver={shown(driver)}: use DriverSettings(...)")
        self.machine = machine
        self.device_bytes = size_bytes
        self.gpus = gpus
        self._model = UvmModel(
            machine.constants(),
            asdict(driver or DriverSettings()),
            size_bytes,
            host_bytes=None if host_bytes is None else parse_bytes(host_bytes, name="host_bytes"),
            gpus=gpus,
            links=checked_links(links, gpus),
            peers=bool(peers),
            third_tier=machine.behind_host(),
        )
        self._next_address = _FIRST_ADDRESS
        self._sizes_bytes: dict[int, int] = {}
        self._device: dict[int, tuple[int, int]] = {}

    def allocate_managed(self, nbytes: int | str) -> int:
        """Allocate managed memory; return its address, a multiple of 2 MiB.

        Raises
        ------
        ConfigurationError
            If `nbytes` is not above 0, or all managed memory would be more than 16 TiB: the model
            keeps account of every 2 MiB.
        """
        size_bytes = parse_bytes(nbytes, name="nbytes")
        managed_bytes = self._model.counters()["managed_bytes"]
        if size_bytes > _MOST_MANAGED_BYTES - managed_bytes:
            raise ConfigurationError(
                f"{format_bytes(size_bytes)} of managed memory beside "
                f"{format_bytes(managed_bytes)}: a simulator has at most "
                f"{format_bytes(_MOST_MANAGED_BYTES)}"
            )
        address = self._take_address(size_bytes)
        self._model.add_range(address, size_bytes)
        self._sizes_bytes[address] = size_bytes
        return address

    def free_managed(self, address: int) -> None:
        """Free managed memory; waits for everything, as cudaFree does.

        Raises
        ------
        ConfigurationError
            If `allocate_managed` did not return this address, or it was freed.
        """
        if address not in self._sizes_bytes:
            raise ConfigurationError(
                f"{shown_address(address)} is not managed memory of this simulator: "
                "give what allocate_managed returned"
            )
        self._model.remove_range(address)
        del self._sizes_bytes[address]

    def allocate_device(self, nbytes: int | str, *, gpu: int = 0) -> int:
        """Take device memory as cudaMalloc does, of this process or any other.

        Raises
        ------
        MemoryError
            If evicting managed memory does not make enough room.
        """
        size_bytes = parse_bytes(nbytes, name="nbytes")
        self._model.allocate_device(self._known_gpu(gpu), size_bytes)
        address = self._take_address(size_bytes)
        self._device[address] = (gpu, size_bytes)
        return address

    def free_device(self, address: int) -> None:
        """Give device memory back."""
        if address not in self._device:
            raise ConfigurationError(
                f"{shown_address(address)} is not device memory of this simulator: "
                "give what allocate_device returned"
            )
        self._model.free_device(*self._device.pop(address))

    def prefetch(
        self, address: int, nbytes: int | str, *, gpu: int | None = 0, stream: int = 0
    ) -> None:
        """Move pages as cuMemPrefetchAsync does.

        Parameters
        ----------
        address, nbytes : int, or str for the bytes
            Inside one managed allocation.
        gpu : int or None
            To where; None is the host.
        stream : int
            Waits for what was issued there before.

        Raises
        ------
        MemoryError
            If the pages have no room anywhere; what was moved before stays moved.
        ConfigurationError
            If the range is not inside one managed allocation.
        """
        size_bytes = self._inside(address, nbytes)
        self._model.prefetch(address, size_bytes, self._place(gpu), checked_stream(stream))

    def discard(self, address: int, nbytes: int | str, *, unmap: bool = True) -> None:
        """Drop the contents of whole pages, as cuMemDiscardBatchAsync does.

        `unmap` False keeps the mappings, which the kernel driver can do and CUDA does not ask for.
        Errors as in `prefetch`.
        """
        self._model.discard(address, self._inside(address, nbytes), unmap)

    def discard_and_prefetch(
        self, address: int, nbytes: int | str, *, gpu: int | None = 0, stream: int = 0
    ) -> None:
        """Drop contents and make the pages usable there, uncopied. Errors as in `prefetch`."""
        size_bytes = self._inside(address, nbytes)
        place, order = self._place(gpu), checked_stream(stream)
        self._model.discard_and_prefetch(address, size_bytes, place, order)

    def advise(self, address: int, nbytes: int | str, advice: str, *, gpu: int | None = 0) -> None:
        """Advise as cuMemAdvise does; holds for the blocks of 2 MiB that have any of the range.

        Parameters
        ----------
        advice : {"read_mostly", "preferred_location", "accessed_by"}
            What; ``"unset_"`` before one of them takes it back.
        gpu : int or None
            For the latter two: where, None is the host.

        Raises
        ------
        ConfigurationError
            If there is no such advice, or the range is not inside one managed allocation.
        """
        if advice not in ADVICE:
            raise ConfigurationError(f"advice={shown(advice)}: use {', '.join(ADVICE)}")
        self._model.advise(address, self._inside(address, nbytes), advice, self._place(gpu))

    def kernel(
        self,
        accesses: Sequence[Access],
        *,
        compute_seconds: float = 0.0,
        gpu: int = 0,
        stream: int = 0,
        outstanding_faults: int | None = None,
    ) -> None:
        """Launch a kernel.

        Parameters
        ----------
        accesses : sequence of Access
            What it reads and writes. They go forward together, 64 KiB of each in turn.
        compute_seconds : float
            Time that it takes with all pages resident, besides reading them.
        gpu, stream : int
            Where; it waits for what was issued to the stream before.
        outstanding_faults : int, optional
            Pages on which it faults before all of it stalls, 1 to 2^20; by default the machine's.

        Raises
        ------
        MemoryError
            If neither device nor host can hold the pages: on a GPU the process would die.
        ConfigurationError
            If a range is not inside one managed allocation, a recorded page not in its range, or a
            time below 0.

        Notes
        -----
        Ctrl-C is answered in the main thread while the kernel goes on: it ends there, and what it
        moved stays moved.
        """
        listed = [self._listed(access) for access in accesses]
        compute_ns = checked_seconds(compute_seconds, "compute_seconds") * 1e9
        faults = 0
        if outstanding_faults is not None:
            faults = checked_whole(outstanding_faults, "outstanding_faults", 1, _MOST_FAULTS)
        self._model.launch(listed, compute_ns, self._known_gpu(gpu), checked_stream(stream), faults)

    def cpu_touch(self, address: int, nbytes: int | str, *, write: bool = False) -> None:
        """Let the CPU read, or read and write, a range, upwards. Errors as in `kernel`."""
        self._model.cpu_touch(address, self._inside(address, nbytes), write)

    def host_work(self, seconds: float) -> None:
        """Let the host do something else for so long."""
        self._model.host_work(checked_seconds(seconds, "seconds") * 1e9)

    def synchronize(self, stream: int | None = None) -> None:
        """Let the host wait for a stream, or for everything."""
        self._model.synchronize(None if stream is None else checked_stream(stream))

    @property
    def seconds(self) -> float:
        """Modelled time of the host, since the simulator was made."""
        return self._model.now_ns / 1e9

    def counters(self) -> Counters:
        """Return all counts and levels now."""
        return Counters(**self._model.counters())

    def resident_bytes(self, address: int, nbytes: int | str, *, gpu: int | None = 0) -> int:
        """Return how many bytes of a range lie on a GPU, or with None on the host."""
        size_bytes = self._inside(address, nbytes)
        return self._model.resident_bytes(address, size_bytes, self._place(gpu))

    def free_bytes(self, *, gpu: int = 0) -> int:
        """Return how much memory of a GPU nobody holds."""
        return self._model.free_bytes(self._known_gpu(gpu))

    @property
    def footprint_bytes(self) -> int:
        """Host memory that the model itself takes, in bytes."""
        return self._model.footprint_bytes

    def _take_address(self, size_bytes: int) -> int:
        if size_bytes <= 0:
            raise ConfigurationError("nbytes is 0: allocate at least one byte")
        address = self._next_address
        if size_bytes > _LAST_ADDRESS - address:
            raise ConfigurationError(
                "the addresses of this simulator are used up: make a new one, or free less often"
            )
        self._next_address += -(-size_bytes // VA_BLOCK_BYTES) * VA_BLOCK_BYTES
        return address

    def _inside(self, address: int, nbytes: int | str) -> int:
        """Return the bytes of a range; it must lie inside one managed allocation."""
        size_bytes = parse_bytes(nbytes, name="nbytes")
        address = checked_whole(address, "address", 0, LARGEST_NUMBER)
        begin = max((known for known in self._sizes_bytes if known <= address), default=None)
        if begin is None or address + size_bytes > begin + self._sizes_bytes[begin]:
            raise ConfigurationError(
                f"{size_bytes} bytes at {address:#x} do not lie inside one managed allocation "
                "of this simulator"
            )
        if size_bytes == 0:
            raise ConfigurationError("nbytes is 0: a range has at least one byte")
        return size_bytes

    def _known_gpu(self, gpu: int) -> int:
        return checked_whole(gpu, "gpu", 0, self.gpus - 1)

    def _place(self, gpu: int | None) -> int:
        return _HOST if gpu is None else self._known_gpu(gpu)

    def _listed(
        self, access: Access
    ) -> tuple[int, int, bool, str, int, int, float, int, tuple[int, ...] | None]:
        if not isinstance(access, Access) or not isinstance(access.pattern, Pattern):
            raise ConfigurationError(
                f"access {shown(access)}: use Access(address, nbytes, pattern)"
            )
        pattern = access.pattern
        size_bytes = self._inside(access.address, access.nbytes)
        page_count = -(-(access.address % PAGE_BYTES + size_bytes) // PAGE_BYTES)
        if pattern.pages and max(pattern.pages) >= page_count:
            raise ConfigurationError(
                f"recorded page {max(pattern.pages)} is not in a range of {page_count} pages"
            )
        return (
            access.address,
            size_bytes,
            access.write,
            pattern.kind,
            pattern.count,
            pattern.stride_bytes // PAGE_BYTES,
            pattern.exponent,
            pattern.seed,
            pattern.pages if pattern.kind == "recorded" else None,
        )
