# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing a trace of kernels that something else has recorded: their memory and their times.

Covers programs that are known as a list of kernels. Does not cover recording a running program;
see `rmm_uvm.trace.TraceWriter`.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from numbers import Real
from pathlib import Path
from typing import Any, Self, TypeAlias

from rmm_uvm._lib.trace import TimedEvents
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.residency.streams import stream_handle
from rmm_uvm.support.messages import shown
from rmm_uvm.support.output import check_trace, written_whole
from rmm_uvm.support.units import Bytes, format_bytes, parse_bytes, whole_number

__all__ = ["KernelTraceWriter", "Part"]

Part: TypeAlias = int | tuple[int, int, int]
"""A whole allocation, by its number; or its number, the first byte, and bytes."""

_TICK_NS = 1000  # of the format
_MOST_SECONDS = 1e9  # until the last kernel's end
_MOST_NS = round(_MOST_SECONDS * 1e9)
_ALIGNED_BYTES = 256  # as RMM's pool aligns
_FIRST_ADDRESS = 1 << 40
_END_ADDRESS = 1 << 56  # what `rmm-uvm plan` reads lies below
_MOST_BYTES = 1 << 43  # in one allocation; the same


class KernelTraceWriter:
    """Writes a trace of kernels, allocation by allocation and kernel by kernel.

    The result is a trace as ``rmm-uvm run --trace`` writes one: ``rmm-uvm plan``,
    `rmm_uvm.trace.read` and `rmm_uvm.planner.replay_paced` read it.

    Parameters
    ----------
    path : str or path-like
        The trace; no file, or an empty one, may be there. It is there when the ``with`` block has
        ended; after an error nothing is.
    facts : mapping, optional
        What is known about the program, JSON-serializable, at most 1 MiB;
        docs/understand/trace-format.md names what readers look for.

    Raises
    ------
    ConfigurationError
        On entering, if the file exists or cannot be written. From every method, if it is told
        something that cannot have happened; the trace is then as before the call.
    DataError
        If `facts` are too large, something is no stream, or the file could not be written whole.
    TypeError
        On entering, if `facts` cannot be written as JSON.

    Notes
    -----
    Not thread-safe. Calls are in order of time. The trace keeps whole microseconds: times are
    rounded down. A kernel begins, and a stage begins or ends, at least one after the kernel or the
    use by the CPU before, which is then in the stage in which it was told; what was to happen in
    between happens then. Without `at` a call
    happens when the last kernel of its stream has ended, and no earlier than the call before.

    Examples
    --------
    >>> import tempfile
    >>> from rmm_uvm.trace import KernelTraceWriter, read
    >>> folder = tempfile.TemporaryDirectory()
    >>> with KernelTraceWriter(f"{folder.name}/two.trace") as trace:
    ...     data = trace.allocate("64MiB")
    ...     sums = trace.allocate(4096)
    ...     with trace.stage("step 1"):
    ...         trace.kernel("fill", writes=[data], seconds=0.001)
    ...         trace.kernel("add", reads=[(data, 0, 1 << 20)], writes=[sums], seconds=0.002)
    ...     trace.free(data)
    >>> found = read(f"{folder.name}/two.trace")
    >>> found.kernels, found.duration_seconds
    (((0.0, 'fill'), (0.001, 'add')), 0.003)
    >>> folder.cleanup()
    """

    def __init__(
        self, path: str | os.PathLike[str], facts: Mapping[str, Any] | None = None
    ) -> None:
        self._path = Path(path)
        self._facts = dict(facts or {})
        self._events: TimedEvents | None = None
        self._opened: AbstractContextManager[None] | None = None
        self._sizes: list[int] = []  # by number
        self._live: dict[int, int] = {}  # addresses by number
        self._places = _Places()
        self._begins: list[int] = []  # of live allocations whose addresses were given
        self._sizes_there: dict[int, int] = {}
        self._given = False  # whether addresses are
        self._latest_ns = 0  # as written
        self._told_ns = 0  # the same, before it was moved to a microsecond of its own
        self._next_ns = 0  # when a kernel or a stage can begin
        self._ends_ns: dict[int, int] = {}  # of each stream's last kernel
        self._last_end_ns = 0  # of them all

    def __enter__(self) -> Self:
        if self._opened is not None:
            raise ConfigurationError(f"{self._path} was begun already: make another writer")
        check_trace("the trace", self._path)
        self._opened = self._open()
        self._opened.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._opened is not None:
            self._opened.__exit__(*error)

    @contextmanager
    def _open(self) -> Iterator[None]:
        with written_whole(self._path, "the trace", private=True) as target:
            file = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
            try:
                self._events = events = TimedEvents(file, self._facts)
            finally:
                os.close(file)
            try:
                yield
                self._at(self._synchronized_ns())
                events.annotate("end of the last kernel")
            finally:
                self._events = None
                failed = events.close()
            if failed:
                raise DataError(f"the trace {self._path} cannot be written: {failed}")

    def allocate(
        self,
        nbytes: Bytes,
        *,
        address: int | None = None,
        stream: Any = None,
        at: float | None = None,
    ) -> int:
        """Note an allocation.

        Parameters
        ----------
        nbytes : int or str
            Bytes, or such as "64MiB"; 1 to 8 TiB.
        address : int, optional
            Where it was; for all allocations of a trace, or for none. By default the smallest
            free place that fits, as RMM's pool chooses.
        stream : optional
            A CUDA stream or its handle; the default stream if not given.
        at : float, optional
            Seconds since the trace began.

        Returns
        -------
        int
            Its number, from 0.
        """
        writing, size = self._writing, parse_bytes(nbytes, "nbytes")
        if size > _MOST_BYTES:
            raise ConfigurationError(
                f"nbytes={shown(nbytes)}: an allocation has at most {format_bytes(_MOST_BYTES)}"
            )
        handle, time_ns = self._when(stream, at)
        if self._sizes and self._given != (address is not None):
            raise ConfigurationError(
                f"address={shown(address)}: give the address of every allocation, or of none"
            )
        if address is not None:
            address = self._usable(address, size)
            self._given = True
            insort(self._begins, address)
            self._sizes_there[address] = size
        else:
            address = self._places.take(size)
        self._at(time_ns)
        writing.allocated(address, size, handle)
        number = len(self._sizes)
        self._sizes.append(size)
        self._live[number] = address
        return number

    def free(self, allocation: int, *, stream: Any = None, at: float | None = None) -> None:
        """Note a free.

        Parameters
        ----------
        allocation : int
            What `allocate` returned.
        stream, at
            As of `allocate`.
        """
        address, size = self._place(allocation)
        handle, time_ns = self._when(stream, at)
        self._at(time_ns)
        self._writing.freed(address, size, handle)
        del self._live[allocation]
        if self._given:
            del self._begins[bisect_left(self._begins, address)]
            del self._sizes_there[address]
        else:
            self._places.give_back(address, size)

    def kernel(
        self,
        name: str,
        reads: Iterable[Part] = (),
        writes: Iterable[Part] = (),
        seconds: float = 0.0,
        *,
        stream: Any = None,
        at: float | None = None,
    ) -> None:
        """Note a kernel.

        Parameters
        ----------
        name : str
            Cut at 1024 bytes.
        reads, writes : iterable of int or (int, int, int)
            What it uses, in this order: allocations, or parts of them as allocation, first byte and
            bytes. What is in both is read and written.
        seconds : float
            How long it computes with all of that on the device, 0 to 1e9; it ends no later than
            1e9 seconds after the trace began.
        stream : optional
            As of `allocate`. Kernels of different streams may run at the same time.
        at : float, optional
            When it begins, seconds since the trace began.
        """
        if not isinstance(name, str):
            raise ConfigurationError(f"name={shown(name)}: a kernel's name is text")
        length_ns = _ns(seconds, "seconds")
        uses = self._uses(reads, writes)
        handle, time_ns = self._when(stream, at)
        begin_ns = max(time_ns, self._latest_ns, self._next_ns)
        end_ns = (begin_ns if at is None else time_ns) + length_ns
        if end_ns > _MOST_NS:
            raise ConfigurationError(
                f"seconds={shown(seconds)}: the kernel would end {end_ns / 1e9:g} s after the "
                f"trace began, and at most {_MOST_SECONDS:g} s are allowed"
            )
        self._at(time_ns, begin_ns)
        self._writing.kernel(name)
        for (address, size), write in uses.items():
            self._writing.touched(address, size, handle, write=write, by_cpu=False)
        self._next_ns = _next_tick(begin_ns)
        self._ends_ns[handle] = end_ns
        self._last_end_ns = max(self._last_end_ns, end_ns)

    def cpu(
        self, reads: Iterable[Part] = (), writes: Iterable[Part] = (), *, at: float | None = None
    ) -> None:
        """Note that the CPU reads, or reads and writes; by default when all kernels have ended.

        Parameters are as of `kernel`.
        """
        uses = self._uses(reads, writes)
        self._at(self._synchronized_ns() if at is None else self._given_ns(at))
        for (address, size), write in uses.items():
            self._writing.touched(address, size, 0, write=write, by_cpu=True)
        self._next_ns = _next_tick(self._latest_ns)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note a stage: a stretch of the program that results are told of, such as a step.

        It begins and ends when all kernels have ended. In a stage there may be others.

        Parameters
        ----------
        name : str
            Cut at 1024 bytes. Stages of one name are told of together.
        """
        if not isinstance(name, str):
            raise ConfigurationError(f"name={shown(name)}: a stage's name is text")
        self._at(self._synchronized_ns(), self._next_ns)
        self._writing.stage_begin(name)
        try:
            yield
        finally:
            self._at(self._synchronized_ns(), self._next_ns)
            self._writing.stage_end()

    @property
    def _writing(self) -> TimedEvents:
        if self._events is None:
            raise ConfigurationError(
                f"{self._path} is not open: write in `with KernelTraceWriter(...) as trace:`"
            )
        return self._events

    def _at(self, time_ns: int, earliest_ns: int = 0) -> None:
        """Have what follows happen at a time, or as soon after it as can be written."""
        written_ns = max(time_ns, earliest_ns, self._latest_ns)
        self._writing.at(written_ns)
        if time_ns != self._latest_ns:
            self._told_ns = max(self._told_ns, time_ns)
        self._latest_ns = written_ns

    def _synchronized_ns(self) -> int:
        return max(self._latest_ns, self._last_end_ns)

    def _when(self, stream: Any, at: float | None) -> tuple[int, int]:
        """Return a stream's handle, and the time of what is asked of it."""
        handle = stream_handle(stream)
        if at is not None:
            return handle, self._given_ns(at)
        return handle, max(self._latest_ns, self._ends_ns.get(handle, 0))

    def _given_ns(self, at: float) -> int:
        time_ns = _ns(at, "at")
        if time_ns < self._told_ns:
            raise ConfigurationError(
                f"at={shown(at)}: the trace is at {self._told_ns / 1e9:.9g} s already; write "
                "calls in order of time"
            )
        return time_ns

    def _usable(self, given: int, size: int) -> int:
        """Return an address that was given as a number."""
        address = whole_number(given)
        if address is None or not 1 <= address < _END_ADDRESS - size:
            raise ConfigurationError(
                f"address={shown(given)}: a number from 1, with the end of the allocation below "
                f"{_END_ADDRESS:#x}"
            )
        place = bisect_right(self._begins, address + size - 1) - 1
        begin = self._begins[place] if place >= 0 else 0
        if place >= 0 and begin + self._sizes_there[begin] > address:
            raise ConfigurationError(
                f"address={address:#x}: {size} bytes there overlap the {self._sizes_there[begin]} "
                f"bytes at {begin:#x}, which live; free them first"
            )
        return address

    def _place(self, allocation: int) -> tuple[int, int]:
        """Return address and bytes of a live allocation."""
        number = whole_number(allocation)
        if number is None or not 0 <= number < len(self._sizes):
            raise ConfigurationError(
                f"allocation {shown(allocation)}: there are {len(self._sizes)}, numbered from 0 "
                "as `allocate` returned"
            )
        if number not in self._live:
            raise ConfigurationError(f"allocation {number} was freed: allocate it again")
        return self._live[number], self._sizes[number]

    def _uses(self, reads: Iterable[Part], writes: Iterable[Part]) -> dict[tuple[int, int], bool]:
        """Return address and bytes of everything that is used, and whether it is written."""
        for name, parts in (("reads", reads), ("writes", writes)):
            if not isinstance(parts, Iterable):
                raise ConfigurationError(
                    f"{name}={shown(parts)}: a list of allocations and parts, such as [0]"
                )
        uses = dict.fromkeys(map(self._range, reads), False)
        uses.update(dict.fromkeys(map(self._range, writes), True))
        return uses

    def _range(self, part: Part) -> tuple[int, int]:
        if not isinstance(part, tuple):
            return self._place(part)
        numbers = map(whole_number, part) if len(part) == 3 else iter((None, None, None))
        allocation, first, nbytes = numbers
        if allocation is None or first is None or nbytes is None:
            raise ConfigurationError(
                f"{shown(part)}: a part is (allocation, first byte, bytes), three numbers"
            )
        address, size = self._place(allocation)
        if first < 0 or nbytes < 1 or first + nbytes > size:
            raise ConfigurationError(
                f"{shown(part)}: allocation {allocation} has {size} bytes; a part begins at 0 or "
                "later, has a byte at least, and ends in it"
            )
        return address + first, nbytes


class _Places:
    """Addresses for allocations: the smallest free place that fits, else new ones."""

    def __init__(self) -> None:
        self._end = _FIRST_ADDRESS
        self._by_size: list[tuple[int, int]] = []  # bytes and address, ascending
        self._sizes: dict[int, int] = {}  # the same, by begin
        self._begins: dict[int, int] = {}  # and by end

    def take(self, nbytes: int) -> int:
        """Return the address of a place."""
        size = _aligned(nbytes)
        fits = bisect_left(self._by_size, (size, 0))
        if fits == len(self._by_size):
            if self._end + size >= _END_ADDRESS:
                raise ConfigurationError(
                    f"{nbytes} bytes: no address is left below {_END_ADDRESS:#x}; free something "
                    "first"
                )
            self._end += size
            return self._end - size
        free, address = self._by_size[fits]
        self._remove(address, free)
        if free > size:
            self._add(address + size, free - size)
        return address

    def give_back(self, address: int, nbytes: int) -> None:
        """Free a place; it becomes one with those beside it."""
        size = _aligned(nbytes)
        if after := self._sizes.get(address + size):
            self._remove(address + size, after)
            size += after
        if (before := self._begins.get(address)) is not None:
            self._remove(before, address - before)
            address, size = before, size + address - before
        self._add(address, size)

    def _add(self, address: int, size: int) -> None:
        insort(self._by_size, (size, address))
        self._sizes[address] = size
        self._begins[address + size] = address

    def _remove(self, address: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, address))]
        del self._sizes[address], self._begins[address + size]


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED_BYTES) * _ALIGNED_BYTES


def _next_tick(time_ns: int) -> int:
    return (time_ns // _TICK_NS + 1) * _TICK_NS


def _ns(seconds: float, name: str) -> int:
    # NumPy's numbers are no int or float. What is compared may be NaN.
    good = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if not good or not 0 <= seconds <= _MOST_SECONDS:
        raise ConfigurationError(f"{name}={shown(seconds)}: seconds, 0 to {_MOST_SECONDS:g}")
    return round(float(seconds) * 1e9)
