# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A machine with GPUs that is not there: what a program's memory would do on it, and how long.

Covers programs written against the model directly: allocations, kernels with access patterns,
prefetches, streams. Does not cover running a program on it in place of a GPU; see
`rmm_uvm.simulated_device`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rmm_uvm._lib.model import ADVICE, UvmModel
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator.counters import Counters
from rmm_uvm.simulator.driver_settings import DriverSettings
from rmm_uvm.simulator.patterns import PAGE_BYTES, Pattern, sequential
from rmm_uvm.simulator.profile import Machine
from rmm_uvm.units import parse_bytes

_BLOCK_BYTES = 2 << 20
_FIRST_ADDRESS = 1 << 40
_MOST_GPUS = 8
_HOST = -1
_MOST_SECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Access:
    """What a kernel does with one range.

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


def _checked_seconds(seconds: float, name: str) -> float:
    if not 0 <= seconds < _MOST_SECONDS:
        raise ConfigurationError(f"{name}={seconds!r}: use seconds, 0 or more")
    return seconds


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
            raise ConfigurationError(f"machine={machine!r}: use load_machine({str(machine)!r})")
        size_bytes = machine.device_bytes // _BLOCK_BYTES * _BLOCK_BYTES
        if device_bytes is not None:
            size_bytes = parse_bytes(device_bytes, name="device_bytes")
        if size_bytes <= 0 or size_bytes % _BLOCK_BYTES:
            raise ConfigurationError(
                f"device_bytes is {size_bytes}: a simulated GPU has a multiple of 2 MiB"
            )
        if not 1 <= gpus <= _MOST_GPUS:
            raise ConfigurationError(f"gpus={gpus!r}: use 1 to {_MOST_GPUS}")
        if links is not None and (
            len(links) != gpus or not all(0 <= link < gpus for link in links)
        ):
            raise ConfigurationError(
                f"links={list(links)}: name for each of {gpus} GPUs a link, 0 to {gpus - 1}"
            )
        self.machine = machine
        self.device_bytes = size_bytes
        self.gpus = gpus
        self._model = UvmModel(
            machine.constants(),
            asdict(driver or DriverSettings()),
            size_bytes,
            host_bytes=None if host_bytes is None else parse_bytes(host_bytes, name="host_bytes"),
            gpus=gpus,
            links=list(links or ()),
            peers=peers,
        )
        self._next_address = _FIRST_ADDRESS
        self._sizes_bytes: dict[int, int] = {}
        self._device: dict[int, tuple[int, int]] = {}

    def allocate_managed(self, nbytes: int | str) -> int:
        """Allocate managed memory; return its address, a multiple of 2 MiB.

        Raises
        ------
        ConfigurationError
            If `nbytes` is not above 0.
        """
        size_bytes = parse_bytes(nbytes, name="nbytes")
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
        if not self._model.remove_range(address):
            raise ConfigurationError(f"{address:#x} is no managed memory of this simulator")
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
            raise ConfigurationError(f"{address:#x} is no device memory of this simulator")
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
        self._model.prefetch(address, size_bytes, self._place(gpu), stream)

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
        self._model.discard_and_prefetch(address, size_bytes, self._place(gpu), stream)

    def advise(self, address: int, nbytes: int | str, advice: str, *, gpu: int | None = 0) -> None:
        """Advise as cuMemAdvise does; holds for the blocks of 2 MiB that have any of the range.

        Parameters
        ----------
        advice : {"read_mostly", "preferred_location", "accessed_by"}, or one of them after "unset_"
            What.
        gpu : int or None
            For the latter two: where, None is the host.

        Raises
        ------
        ConfigurationError
            If there is no such advice, or the range is not inside one managed allocation.
        """
        if advice not in ADVICE:
            raise ConfigurationError(f"advice={advice!r}: use {', '.join(ADVICE)}")
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
            Pages on which it faults before all of it stalls; by default the machine's.

        Raises
        ------
        MemoryError
            If neither device nor host can hold the pages: on a GPU the process would die.
        ConfigurationError
            If a range is not inside one managed allocation, a recorded page not in its range, or a
            time below 0.
        """
        listed = [self._listed(access) for access in accesses]
        compute_ns = _checked_seconds(compute_seconds, "compute_seconds") * 1e9
        if outstanding_faults is not None and outstanding_faults < 1:
            raise ConfigurationError(f"outstanding_faults={outstanding_faults!r}: use 1 or more")
        self._model.launch(
            listed, compute_ns, self._known_gpu(gpu), stream, outstanding_faults or 0
        )

    def cpu_touch(self, address: int, nbytes: int | str, *, write: bool = False) -> None:
        """Let the CPU read, or read and write, a range, upwards. Errors as in `kernel`."""
        self._model.cpu_touch(address, self._inside(address, nbytes), write)

    def host_work(self, seconds: float) -> None:
        """Let the host do something else for so long."""
        self._model.host_work(_checked_seconds(seconds, "seconds") * 1e9)

    def synchronize(self, stream: int | None = None) -> None:
        """Let the host wait for a stream, or for everything."""
        self._model.synchronize(stream)

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
        self._next_address += -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
        return address

    def _inside(self, address: int, nbytes: int | str) -> int:
        """Return the bytes of a range; it must lie inside one managed allocation."""
        size_bytes = parse_bytes(nbytes, name="nbytes")
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
        if not 0 <= gpu < self.gpus:
            raise ConfigurationError(f"gpu={gpu!r}: this simulator has {self.gpus}, from 0")
        return gpu

    def _place(self, gpu: int | None) -> int:
        return _HOST if gpu is None else self._known_gpu(gpu)

    def _listed(
        self, access: Access
    ) -> tuple[int, int, bool, str, int, int, float, int, tuple[int, ...] | None]:
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
