# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of embeddings in four places, with the same rows and the same steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Protocol

import torch

import rmm_uvm
from rmm_uvm.residency import Budget
from rmm_uvm.support.units import VA_BLOCK_BYTES
from rmm_uvm.torch import ManagedEmbeddingBag
from rmm_uvm.torch.embeddings.row_memory import RowMemory, runs_of

LEARNING_RATE = 0.5
_REQUEST_BLOCKS = 64  # of one announcement: a request past the budget would be left out of it


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is measured: rows of 32-bit floats, batches of bags, and the budget."""

    rows: int
    items: int
    bags: int
    ids_of_bag: int
    budget_bytes: int
    zipf: float = 1.05

    @property
    def table_bytes(self) -> int:
        """Of all rows."""
        return self.rows * self.items * 4


class Table(Protocol):
    """What a batch is trained and inferred with."""

    def prepare(self, ids: torch.Tensor) -> None:
        """Do what is not timed."""

    def train(self, ids: torch.Tensor) -> None:
        """Forward, sparse backward, a step of SGD."""

    def infer(self, ids: torch.Tensor) -> torch.Tensor:
        """Forward."""


def batch_of(sizes: Sizes, seed: int, device: torch.device) -> torch.Tensor:
    """Return ids of bounded zipf frequencies, as of a hashed id space: hot ones are anywhere."""
    random = torch.Generator(device).manual_seed(seed)
    uniform = torch.rand(
        sizes.bags, sizes.ids_of_bag, generator=random, device=device, dtype=torch.float64
    )
    power = 1 - sizes.zipf
    rank = ((uniform * (sizes.rows**power - 1) + 1) ** (1 / power)).long() - 1
    # Odd, and rows are a power of two: every rank has an id of its own.
    return rank.clamp_(0, sizes.rows - 1).mul_(2_654_435_761).remainder_(sizes.rows)


def write_rows(weight: torch.Tensor, pieces: Iterable[slice]) -> None:
    """Give each id the row that it has in every table."""
    items = torch.arange(weight.shape[1], device=weight.device)
    with torch.no_grad():
        for piece in pieces:
            ids = torch.arange(piece.start, piece.stop, device=weight.device).reshape(-1, 1)
            weight[piece] = ((ids * 31 + items * 7) % 1000).float().div_(1000)


def pieces_of(rows: int, step: int = 1 << 18) -> Iterable[slice]:
    """Yield the rows of a table in pieces."""
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


class ModuleTable:
    """A module that holds the rows: all of them on the device, or ours."""

    def __init__(self, module: torch.nn.EmbeddingBag) -> None:
        self.module = module
        self.optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)

    def prepare(self, ids: torch.Tensor) -> None:
        """Do nothing."""

    def train(self, ids: torch.Tensor) -> None:
        """Forward, sparse backward, a step of SGD."""
        self.optimizer.zero_grad()
        self.module(ids).pow(2).mean().backward()
        self.optimizer.step()

    def infer(self, ids: torch.Tensor) -> torch.Tensor:
        """Forward."""
        with torch.no_grad():
            found: torch.Tensor = self.module(ids)
            return found


class FaultDrivenTable(ModuleTable):
    """Plain managed memory on a smaller card: what faults would bring drives out what came first.

    The budget is told, before a batch, of the blocks that its ids are in. Kernels touch rows at
    random: with about a hundred rows in each block of 2 MiB a batch faults in most of its pages,
    and the kernel driver evicts by whole blocks. Nothing is fetched for it: kernels fault.
    """

    def __init__(self, sizes: Sizes, driver: Any) -> None:
        budget = Budget(
            sizes.budget_bytes,
            policy="fifo",
            discard_dead=False,
            fetch=False,
            ahead=False,
            background=False,
        )
        whole_bytes = (-(-sizes.table_bytes // VA_BLOCK_BYTES) + 1) * VA_BLOCK_BYTES
        mr = rmm_uvm.managed_pool(
            driver=driver,
            initial_pool_size=whole_bytes,
            maximum_pool_size=whole_bytes,
            device_budget=budget,
        )
        self.memory = RowMemory(sizes.rows, sizes.items, torch.float32, mr)
        weight = self.memory.tensor()
        write_rows(weight, self.memory.chunks())
        module = torch.nn.EmbeddingBag(
            sizes.rows, sizes.items, mode="sum", sparse=True, _weight=weight
        )
        super().__init__(module)
        self._runs: list[tuple[int, int, int]] = []

    def prepare(self, ids: torch.Tensor) -> None:
        """Find the blocks that a batch is in."""
        blocks = (ids.reshape(-1) * self.memory.row_bytes).div(
            VA_BLOCK_BYTES, rounding_mode="floor"
        )
        address = self.memory.address
        self._runs = []
        for first, count in runs_of(set(blocks.unique().tolist())):
            for block in range(first, first + count):
                self._runs.append((address + block * VA_BLOCK_BYTES, VA_BLOCK_BYTES, address))

    def train(self, ids: torch.Tensor) -> None:
        """Announce, then as above."""
        self._announce()
        super().train(ids)

    def infer(self, ids: torch.Tensor) -> torch.Tensor:
        """Announce, then as above."""
        self._announce()
        return super().infer(ids)

    def _announce(self) -> None:
        prefetcher = self.memory.pool.managed_mr.residency
        for first in range(0, len(self._runs), _REQUEST_BLOCKS):
            prefetcher.touch_all(self._runs[first : first + _REQUEST_BLOCKS], 0)


class HostTable:
    """Rows in host memory: each batch's distinct rows are gathered there, and copied over."""

    def __init__(self, sizes: Sizes, device: torch.device) -> None:
        self.rows = torch.empty(sizes.rows, sizes.items)
        write_rows(self.rows, pieces_of(sizes.rows))
        self.device = device
        self.pinned = device.type == "cuda"
        most = min(sizes.rows, sizes.bags * sizes.ids_of_bag)
        self.staging = torch.empty(most, sizes.items, pin_memory=self.pinned)

    def prepare(self, ids: torch.Tensor) -> None:
        """Do nothing."""

    def train(self, ids: torch.Tensor) -> None:
        """As above; the gradient is copied back, and the step is made on the host."""
        distinct, rows, places = self._fetch(ids)
        rows.requires_grad_()
        torch.nn.functional.embedding_bag(places, rows, mode="sum").pow(2).mean().backward()
        back = self.staging[: distinct.numel()]
        back.copy_(rows.grad)
        self.rows.index_add_(0, distinct, back, alpha=-LEARNING_RATE)

    def infer(self, ids: torch.Tensor) -> torch.Tensor:
        """Forward."""
        _, rows, places = self._fetch(ids)
        return torch.nn.functional.embedding_bag(places, rows, mode="sum")

    def _fetch(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        distinct, places = ids.unique(return_inverse=True)
        wanted = distinct.cpu()
        staged = self.staging[: wanted.numel()]
        torch.index_select(self.rows, 0, wanted, out=staged)
        rows = staged.to(self.device, non_blocking=True, copy=True)
        return wanted, rows, places


def resident_table(sizes: Sizes, device: torch.device) -> ModuleTable:
    """Return a table that is on the device as a whole."""
    weight = torch.empty(sizes.rows, sizes.items, device=device)
    write_rows(weight, pieces_of(sizes.rows))
    return ModuleTable(
        torch.nn.EmbeddingBag(sizes.rows, sizes.items, mode="sum", sparse=True, _weight=weight)
    )


def managed_table(sizes: Sizes, driver: Any) -> ModuleTable:
    """Return ours, within the budget."""
    whole_bytes = (-(-sizes.table_bytes // VA_BLOCK_BYTES) + 1) * VA_BLOCK_BYTES
    mr = rmm_uvm.managed_pool(
        driver=driver,
        initial_pool_size=whole_bytes,
        maximum_pool_size=whole_bytes,
        device_budget=sizes.budget_bytes,
    )
    module = ManagedEmbeddingBag(sizes.rows, sizes.items, mode="sum", sparse=True, mr=mr)
    write_rows(module.weight.data, module._table.memory.chunks())
    return ModuleTable(module)
