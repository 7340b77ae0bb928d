# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A transformer in little, and what training leaves in a model."""

from __future__ import annotations

import torch
from torch import nn

from .announced_uses import batch


class Attention(nn.Module):
    """A block of a transformer with views, slices, a tied matrix and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.all = nn.Linear(8, 24)
        self.tied = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.all(self.norm(x)).view(5, 3, 8).transpose(0, 1).unbind(0)
        weights = torch.softmax(q @ k.t() / 8**0.5, dim=-1)
        x = x + torch.dropout(weights @ v, 0.25, train=True)
        x = x + nn.functional.gelu(self.tied(x))
        return torch.tanh(x @ self.tied.weight.t() + x[:, ::2].repeat(1, 2) * x[:, 1:2])


def transformer() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(*(Attention() for _ in range(3)))


def gradients(model: nn.Module, steps: int = 3) -> list[torch.Tensor]:
    """Return what the last of some steps left."""
    torch.manual_seed(6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(batch()).square().mean().backward()
        optimizer.step()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
