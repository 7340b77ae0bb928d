# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of full-size models with copied activations, without a GPU: who leaves, and how much.

The program is real and its tensors are fake: nothing is computed. Each storage is handed out by a
caching allocator like torch's, from segments of a simulated device with a budget; hooks, copies
and residency are the package's. Time is that of kernels by a roofline, a host that launches each in
`HOST_SECONDS`, and a link of `LINK_BYTES_PER_SECOND` each way.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.residency import Budget
from rmm_uvm.residency.budget import of_torch
from rmm_uvm.simulator import load_machine
from rmm_uvm.torch.activations import copies
from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.activations.leaving import is_parameter
from rmm_uvm.torch.extents import SMALL_BYTES, Extent
from rmm_uvm.torch.shadow.roofline import roofline_for
from rmm_uvm.torch.shadow.running import mode_for
from rmm_uvm.torch.uses import Uses

from .fake_torch_cuda import FakeTorchCuda

HOST_SECONDS = 5e-6
LINK_BYTES_PER_SECOND = 50e9
COUNTED = ("evicted_bytes", "dropped_bytes")


@dataclass
class Round:
    """What one step did, in bytes, and what it came to."""

    evicted_bytes: int
    dropped_bytes: int
    copied_bytes: int
    returned_bytes: int
    needed_bytes: int
    peak_bytes: int  # that torch handed out
    confirmed: bool
    seconds: float


@dataclass
class Clock:
    """When the host and the program's stream are done with what they were given."""

    host: float = 0.0
    stream: float = 0.0


@dataclass
class Link:
    """A side of the copies: when it is done."""

    done: float = 0.0


@dataclass
class HostBuffer:
    """Pinned memory that holds nothing."""

    nbytes: int

    def untyped_storage(self) -> None:
        """Return nothing: nothing is copied."""


@dataclass
class PacedStreams:
    """See `rmm_uvm.torch.activations.side_streams.SideStreams`; marks are moments of the clock."""

    clock: Clock
    out: Link = field(default_factory=Link)
    back: Link = field(default_factory=Link)
    staging_bytes: int = 0

    def current(self) -> int:
        return 0

    def is_usual(self, stream: int) -> bool:
        return stream == 0

    def follow(self, side: Link, _stream: int) -> None:
        side.done = max(side.done, self.clock.stream, self.clock.host)

    def copy(self, side: Link, _target: Any, _source: Any, nbytes: int) -> None:
        side.done = max(side.done, self.clock.host) + nbytes / LINK_BYTES_PER_SECOND

    def mark(self, side: Link) -> float:
        return side.done

    def wait(self, _stream: int, mark: float) -> None:
        self.clock.stream = max(self.clock.stream, mark)

    def passed(self, mark: float) -> bool:
        return mark <= self.clock.host

    def finish(self) -> None:
        """Wait for nothing."""

    def host_buffer(self, nbytes: int) -> HostBuffer:
        return HostBuffer(nbytes)


class Allocator(FakeTorchCuda):
    """The fake one, which counts what is handed out."""

    active_bytes = peak_bytes = 0

    def allocate(self, nbytes: int) -> int:
        address = super().allocate(nbytes)
        self.active_bytes += -(-nbytes // 512) * 512
        self.peak_bytes = max(self.peak_bytes, self.active_bytes)
        return address

    def free(self, address: int) -> None:
        segment = next(one for one in self.segments.values() if address in one.blocks)
        self.active_bytes -= segment.blocks[address][0]
        super().free(address)

    def _statistics(self, device: int) -> dict[str, Any]:
        assert device == self.device
        now = {"all": {"current": self.active_bytes}}
        return {"active_bytes": now, "allocated_bytes": now}


@dataclass
class Receiver:
    """Of what the program does: see `rmm_uvm.torch.shadow.uses.Receiver`."""

    allocator: Allocator
    clock: Clock

    def allocate(self, nbytes: int) -> int:
        return self.allocator.allocate(nbytes)

    def free(self, allocation: int) -> None:
        self.allocator.free(allocation)

    def given(self, use: Any) -> None:
        """Contents that were there before are no matter."""

    def kernel(self, _uses: Any, compute_seconds: float) -> None:
        self.clock.host += HOST_SECONDS
        self.clock.stream = max(self.clock.stream, self.clock.host) + compute_seconds


class Rounds:
    """Makes a model and goes through steps; in a test, whose patches it needs.

    Parameters
    ----------
    patch : pytest.MonkeyPatch
        Undone at the end of the test.
    make : callable
        Returns what has a ``step``.
    """

    def __init__(self, patch: pytest.MonkeyPatch, make: Any) -> None:
        self._make = make
        self._clock = Clock()
        self._allocator = Allocator()
        self._allocator.install(patch)
        machine = load_machine("h200-pcie5")
        receiver = Receiver(self._allocator, self._clock)
        self._mode = mode_for(receiver, roofline_for(None, machine))
        patch.setattr("rmm_uvm.torch.memory.CudaSideStreams", lambda *_: PacedStreams(self._clock))
        patch.setattr(
            "rmm_uvm.torch.memory.CopiedActivations",
            lambda streams, _, budget_bytes, live_bytes, **asked: copies_of_the_cpu(
                streams, budget_bytes, live_bytes, **asked
            ),
        )
        patch.setattr(
            "rmm_uvm.torch.memory.Uses", functools.partial(Uses, extents=self._extents_of)
        )
        patch.setattr(
            "rmm_uvm.torch.activations.copied.address_that_may_leave", self._address_that_may_leave
        )
        patch.setattr(copies.Kept, "view_of", _view_of)

    def active_bytes(self) -> int:
        """Return what is handed out now."""
        return self._allocator.active_bytes

    def peak_bytes(self) -> int:
        """Return the most that is handed out where everything fits."""
        self._run(None, 2)
        return self._allocator.peak_bytes

    def under(self, budget_bytes: int, total: int) -> list[Round]:
        """Return what each step did under a budget."""
        budget = of_torch(Budget(budget_bytes, background=False), eager=None)
        return self._run(budget, total)

    def _run(self, budget: Budget | None, total: int) -> list[Round]:
        mr = rmm_uvm.managed_pool(
            driver=rmm_uvm.simulated_device("40GiB"),
            initial_pool_size="8MiB",
            device_budget=budget,
        )
        found = []
        allocator, clock = self._allocator, self._clock
        with (
            FakeTensorMode(),
            rmm_uvm.torch.managed(mr=mr, activations="copy") as memory,
            self._mode as mode,
        ):
            program = self._make()
            before = dict.fromkeys((*COUNTED, "copied_bytes", "returned_bytes"), 0)
            for _ in range(total):
                allocator.peak_bytes = allocator.active_bytes
                clock.host = since = clock.stream = max(clock.host, clock.stream)
                program.step()
                mode.settle()
                now = self._counts(memory)
                found.append(
                    Round(
                        *(now[name] - before[name] for name in before),
                        needed_bytes=now["needed_bytes"],
                        peak_bytes=allocator.peak_bytes,
                        confirmed=mr.managed_mr.residency.confirmed_present(),
                        seconds=max(clock.host, clock.stream) - since,
                    )
                )
                before = {name: now[name] for name in before}
            del program
            mode.close()
        gc.collect()
        allocator.empty_cache()
        return found

    def _counts(self, memory: rmm_uvm.torch.TorchMemory) -> dict[str, int]:
        statistics = memory.statistics()
        of_copies = statistics["activations"] or {}
        names = ("copied_bytes", "returned_bytes", "needed_bytes")
        return {
            **{name: (statistics["residency"] or {}).get(name, 0) for name in COUNTED},
            **{name: of_copies.get(name) or 0 for name in names},
        }

    def _extents_of(self, tensors: Iterable[torch.Tensor | None]) -> list[Extent]:
        entries = self._mode._storages._entries
        found: list[Extent] = []
        for tensor in tensors:
            if tensor is None or tensor.layout is not torch.strided:
                continue
            entry = entries.get(tensor.untyped_storage()._cdata)
            if entry is not None and entry.nbytes > SMALL_BYTES:
                found.append((entry.allocation, entry.nbytes, entry.allocation))
        return found

    def _address_that_may_leave(self, tensor: torch.Tensor, *_: object) -> int:
        if isinstance(tensor, torch.nn.Parameter) or is_parameter(tensor):
            return 0
        extents = self._extents_of((tensor,))
        return sum(address for address, nbytes, _ in extents if 2 * tensor.nbytes >= nbytes)


def copies_of_the_cpu(
    streams: Any, budget_bytes: int, live_bytes: Callable[[bool], tuple[int, int]], **asked: Any
) -> CopiedActivations:
    """Return what copies tensors of the CPU."""
    return CopiedActivations(streams, torch.device("cpu"), budget_bytes, live_bytes, **asked)


def _view_of(kept: copies.Kept, _storage: object) -> torch.Tensor:
    """Return the tensor over what there is of its copy: a storage of fakes can be no other's."""
    assert kept.copy is not None
    there = kept.copy.device if kept.copy.back is None else kept.copy.back
    assert there is not None
    dtype, offset, shape, stride = kept._layout
    return there.detach().view(dtype).as_strided(shape, stride, offset)
