# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Carries out plans: real allocations from a memory resource, touches on a simulated device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from rmm_uvm_mortgage.shadow.plan import (
    Allocate,
    Buffer,
    EventPlan,
    PlannedColumn,
    PlannedFree,
    PlannedKernel,
)
from rmm_uvm_mortgage.shadow.sizes import ColumnShape
from rmm_uvm_mortgage.shadow.stages import Footprint

if TYPE_CHECKING:
    import rmm.mr


class Device(Protocol):
    """The part of a simulated device that the enactor needs."""

    def touch(self, address: int, nbytes: int, write: bool = ...) -> None:  # noqa: FBT001
        """Let a kernel access a managed range."""


class DeviceBlock:
    """One allocation; freed when the last reference to it goes.

    Parameters
    ----------
    resource : rmm.mr.DeviceMemoryResource
        Allocates and frees.
    footprint : Footprint
        Counts the block while it lives.
    nbytes : int
        Bytes, > 0.

    Raises
    ------
    MemoryError
        The resource has no room.
    """

    __slots__ = ("address", "footprint", "nbytes", "resource")

    def __init__(
        self, resource: rmm.mr.DeviceMemoryResource, footprint: Footprint, nbytes: int
    ) -> None:
        self.address = 0
        self.nbytes = nbytes
        self.resource = resource
        self.footprint = footprint
        self.address = int(resource.allocate(nbytes))
        footprint.add(nbytes)

    def __del__(self) -> None:
        if self.address:
            self.resource.deallocate(self.address, self.nbytes)
            self.footprint.remove(self.nbytes)


class DeviceColumn:
    """A column in (simulated) device memory: its shape and its buffers.

    Frames share device columns by reference, as cuDF's do.

    Parameters
    ----------
    shape : ColumnShape
        What the column is.
    blocks : mapping of str to DeviceBlock
        Buffers by role.
    """

    __slots__ = ("blocks", "derived", "shape")

    def __init__(self, shape: ColumnShape, blocks: Mapping[str, DeviceBlock]) -> None:
        self.shape = shape
        self.blocks = dict(blocks)
        self.derived: dict[str, DeviceColumn] = {}
        """Columns that cuDF caches with this one, such as the year of a date."""


class Enactor:
    """Executes plans against one memory resource.

    Parameters
    ----------
    resource : rmm.mr.DeviceMemoryResource
        Every buffer comes from here, in the order of the plan, on the default stream.
    device : Device or None
        Told about every kernel's accesses; None if the resource's memory cannot migrate.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self, resource: rmm.mr.DeviceMemoryResource, device: Device | None = None) -> None:
        self.resource = resource
        self.device = device
        self.footprint = Footprint()

    def run(
        self,
        plan: EventPlan,
        inputs: Mapping[str, DeviceColumn],
        outputs: Iterable[PlannedColumn],
    ) -> list[DeviceColumn]:
        """Carry out a plan.

        Parameters
        ----------
        plan : EventPlan
            What to do.
        inputs : mapping of str to DeviceColumn
            Columns that exist already, by their names in the plan.
        outputs : iterable of PlannedColumn
            Columns to return; they may be inputs. All else that the plan left is freed.

        Returns
        -------
        list of DeviceColumn
            The outputs, in order.

        Raises
        ------
        MemoryError
            The resource has no room; everything that the plan had allocated is free again.
        """
        live: dict[Buffer, DeviceBlock] = {
            (name, role): block
            for name, column in inputs.items()
            for role, block in column.blocks.items()
        }
        try:
            for event in plan.events:
                if isinstance(event, Allocate):
                    live[event.buffer] = DeviceBlock(self.resource, self.footprint, event.nbytes)
                elif isinstance(event, PlannedFree):
                    del live[event.buffer]
                elif self.device is not None:
                    _touch(self.device, live, event)
            return [_column(output, inputs, live) for output in outputs]
        finally:
            # The traceback of a MemoryError holds this frame; the blocks must not wait for it.
            live.clear()


def _touch(device: Device, live: Mapping[Buffer, DeviceBlock], kernel: PlannedKernel) -> None:
    for buffers, write in ((kernel.reads, False), (kernel.writes, True)):
        for buffer in buffers:
            block = live[buffer]
            device.touch(block.address, block.nbytes, write=write)


def _column(
    output: PlannedColumn,
    inputs: Mapping[str, DeviceColumn],
    live: Mapping[Buffer, DeviceBlock],
) -> DeviceColumn:
    if output.name in inputs:
        return inputs[output.name]
    blocks = {role: live[output.name, role] for role in output.shape.buffers}
    return DeviceColumn(output.shape, blocks)
