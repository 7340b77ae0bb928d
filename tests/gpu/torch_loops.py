# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A network and its training, for tests of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def network(width: int = 1024, depth: int = 8) -> Any:
    torch.manual_seed(3)
    layers: list[Any] = []
    for _ in range(depth):
        layers += [torch.nn.Linear(width, width), torch.nn.GELU()]
    return torch.nn.Sequential(*layers).cuda()


def losses_of(
    steps: int,
    rows: int = 4096,
    wrap: Callable[[Any], Any] = lambda model: model,
    seed: int = 4,
) -> list[float]:
    """Train with kernels that give the same on every run; return the losses.

    `wrap` gives what is called in the place of the model; `seed` is that of the data.
    """
    model = wrap(network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(rows, 1024, generator=torch.Generator().manual_seed(seed)).cuda()
    losses = []
    for _ in range(steps):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return [loss.item() for loss in losses]
