# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training in less memory as people do it: some blocks are run again, or all that is kept is moved.

Checkpointed are the first blocks, as few as the device memory allows: they are found by trying, as
a person would, and what is tried does not count.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.past_the_edge.programs.training import Training


def blocks_of(model: Any) -> list[Any]:
    """Return the blocks of a model in order: members of lists in which a kind of part comes again.

    Of a list within another one the longer counts.

    Examples
    --------
    >>> from torch import nn
    >>> parts = (nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)) for _ in range(3))
    >>> len(blocks_of(nn.Sequential(nn.Embedding(4, 2), nn.ModuleList(parts))))
    3
    """
    return [block for blocks in _lists_in(model) for block in blocks]


def _lists_in(model: Any) -> Iterator[list[Any]]:
    from torch import nn

    for child in model.children():
        inner = list(_lists_in(child))
        kinds = [type(each) for each in child.children() if any(each.children())]
        is_list = isinstance(child, nn.ModuleList | nn.Sequential)
        if is_list and len(set(kinds)) < len(kinds) >= max(map(len, inner), default=0):
            yield list(child)
        else:
            yield from inner


def checkpointed(
    kind: type[Training], data_bytes: int, pieces: int, _budget_bytes: int
) -> Training:
    """Return a program some of whose blocks are run again in the backward pass."""
    import torch
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(kind):  # type: ignore[misc, valid-type]
        """The program, with checkpoints."""

        def make(self) -> None:
            super().make()
            fewest, most = 0, len(blocks_of(self._model))
            while fewest < most:
                tried = (fewest + most) // 2
                fewest, most = (fewest, tried) if self._fits(tried) else (tried + 1, most)
            self._make_with(fewest)

        def _make_with(self, blocks: int) -> None:
            self.drop()
            super().make()
            for block in blocks_of(self._model)[:blocks]:
                block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

        def _fits(self, blocks: int) -> bool:
            try:
                self._make_with(blocks)
                for number in range(2 * self.STEPS):
                    self.operation(number)
                torch.cuda.synchronize()
            except (RuntimeError, MemoryError):  # what is refused is told in either way
                self.drop()
                return False
            return True

    return Checkpointed(data_bytes, pieces)


def saved_on_cpu(
    kind: type[Training], data_bytes: int, pieces: int, _budget_bytes: int
) -> Training:
    """Return a program of which all that autograd keeps is copied to pinned host memory."""
    import torch

    class Saved(kind):  # type: ignore[misc, valid-type]
        """The program, under `torch.autograd.graph.save_on_cpu`."""

        def make(self) -> None:
            super().make()
            plain = self._forward

            def forward() -> Any:
                with torch.autograd.graph.save_on_cpu(pin_memory=True):
                    return plain()

            self._forward = forward

    return Saved(data_bytes, pieces)
