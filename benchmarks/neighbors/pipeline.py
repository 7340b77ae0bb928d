# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Pipeline-parallel training in one process, with uneven stages: the first has most layers."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import nn


class _Block(nn.Module):
    """Two matrices about a non-linearity, beside a way past them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.out(nn.functional.gelu(self.into(self.norm(x))))


class Pipeline:
    """Stages on two devices, a step of training in micro-batches.

    Parameters
    ----------
    devices : tuple of torch.device or str
        Of the first stage and of the second.
    layers : tuple of int
        Of each stage.
    width, rows, micro_batches : int
        Of each layer, of a micro-batch, and how many of them a step has.
    """

    def __init__(
        self,
        devices: tuple[Any, Any],
        layers: tuple[int, int] = (12, 3),
        width: int = 3072,
        rows: int = 1024,
        micro_batches: int = 4,
    ) -> None:
        self.devices = [torch.device(one) for one in devices]
        torch.manual_seed(20260)
        self.stages = []
        for device, count in zip(self.devices, layers, strict=True):
            with device:
                self.stages.append(nn.Sequential(*(_Block(width) for _ in range(count))))
        with self.devices[0]:
            self.inputs = [torch.randn(rows, width) for _ in range(micro_batches)]
        self.optimizers = [torch.optim.AdamW(one.parameters(), lr=1e-4) for one in self.stages]

    def step(self) -> float:
        """Forward of all micro-batches, then backward of all, then the optimisers."""
        losses = []
        for batch in self.inputs:
            between = self.stages[0](batch).to(self.devices[1])
            losses.append(self.stages[1](between).square().mean())
        total = torch.stack(losses).mean()
        total.backward()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return float(total.detach())

    def train(self, steps: int) -> dict[str, Any]:
        """Return the median of a step's seconds after the first half, and the losses."""
        seconds, losses = [], []
        for _ in range(steps):
            begin = time.perf_counter()
            losses.append(self.step())
            for device in self.devices:
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
            seconds.append(time.perf_counter() - begin)
        return {"seconds": statistics.median(seconds[steps // 2 :]), "losses": losses}
