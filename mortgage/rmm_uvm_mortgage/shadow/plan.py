# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The plan of one operator: what it does to device memory, as a list of plain events.

A plan says in order what is allocated, freed, read and written. It is made by pure functions
(:mod:`rmm_uvm_mortgage.shadow.operators`) and carried out by
:class:`rmm_uvm_mortgage.shadow.enactor.Enactor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rmm_uvm_mortgage.shadow.sizes import ColumnShape

Buffer = tuple[str, str]
"""Name of a buffer within a plan: column or work space, and role."""


@dataclass(frozen=True, slots=True)
class Allocate:
    """A buffer comes to life."""

    buffer: Buffer
    nbytes: int


@dataclass(frozen=True, slots=True)
class PlannedFree:
    """A buffer dies."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """The GPU reads and writes buffers, each one wholly."""

    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]


Event = Allocate | PlannedFree | PlannedKernel


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """A column within a plan: its name there and its shape."""

    name: str
    shape: ColumnShape

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers of the column."""
        return tuple((self.name, role) for role in self.shape.buffers)

    def role(self, *roles: str) -> tuple[Buffer, ...]:
        """Return the buffers of the given roles that the column has."""
        return tuple((self.name, role) for role in self.shape.buffers if role in roles)


@dataclass(frozen=True, slots=True)
class WorkSpace:
    """A temporary buffer of an operator."""

    name: str

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The one buffer."""
        return ((self.name, "work"),)


Operand = PlannedColumn | WorkSpace


class EventPlan:
    """A growing list of events.

    Notes
    -----
    Names of columns and work spaces are made unique within the plan, so an operator may be
    planned several times. Buffers of size zero are left out, as RMM never sees them.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._names = 0

    def _unique(self, name: str) -> str:
        self._names += 1
        return f"{name}#{self._names}"

    def allocate_column(self, name: str, shape: ColumnShape) -> PlannedColumn:
        """Allocate all buffers of a new column."""
        column = PlannedColumn(self._unique(name), shape)
        for role, nbytes in shape.buffers.items():
            self.events.append(Allocate((column.name, role), nbytes))
        return column

    def allocate_roles(self, column: PlannedColumn, *roles: str) -> None:
        """Allocate some buffers of a column made by `declare_column`."""
        for role, nbytes in column.shape.buffers.items():
            if role in roles:
                self.events.append(Allocate((column.name, role), nbytes))

    def declare_column(self, name: str, shape: ColumnShape) -> PlannedColumn:
        """Name a new column whose buffers are allocated one by one."""
        return PlannedColumn(self._unique(name), shape)

    def free_column(self, column: PlannedColumn) -> None:
        """Free all buffers of a column."""
        self.events.extend(PlannedFree(buffer) for buffer in column.buffers)

    def allocate(self, name: str, nbytes: int) -> WorkSpace:
        """Allocate work space that lives until `free`."""
        work = WorkSpace(self._unique(name) if nbytes > 0 else "")
        if work.name:
            self.events.append(Allocate(work.buffers[0], nbytes))
        return work

    def free(self, *spaces: WorkSpace) -> None:
        """Free work spaces."""
        self.events.extend(PlannedFree(space.buffers[0]) for space in spaces if space.name)

    @contextmanager
    def work(self, name: str, nbytes: int) -> Iterator[WorkSpace]:
        """Allocate work space for the enclosed events."""
        space = self.allocate(name, nbytes)
        yield space
        self.free(space)

    def kernel(
        self, reads: Sequence[Operand | Buffer] = (), writes: Sequence[Operand | Buffer] = ()
    ) -> None:
        """Have the GPU read and write columns, work spaces or single buffers."""
        self.events.append(PlannedKernel(_buffers(reads), _buffers(writes)))

    @property
    def peak_bytes(self) -> int:
        """Largest sum of live requested bytes, without the operator's inputs."""
        live: dict[Buffer, int] = {}
        now = peak = 0
        for event in self.events:
            if isinstance(event, Allocate):
                live[event.buffer] = event.nbytes
                now += event.nbytes
                peak = max(peak, now)
            elif isinstance(event, PlannedFree):
                now -= live.pop(event.buffer, 0)
        return peak

    @property
    def kept_bytes(self) -> int:
        """Requested bytes that are still live at the end: the operator's outputs."""
        live: dict[Buffer, int] = {}
        for event in self.events:
            if isinstance(event, Allocate):
                live[event.buffer] = event.nbytes
            elif isinstance(event, PlannedFree):
                live.pop(event.buffer, None)
        return sum(live.values())


def _buffers(operands: Sequence[Operand | Buffer]) -> tuple[Buffer, ...]:
    buffers: list[Buffer] = []
    for operand in operands:
        if isinstance(operand, tuple):
            buffers.append(operand)
        elif not (isinstance(operand, WorkSpace) and not operand.name):
            buffers.extend(operand.buffers)
    return tuple(buffers)
