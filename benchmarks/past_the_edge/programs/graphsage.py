# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""GraphSAGE over a whole graph: a message for each edge, and the mean of those of each node.

Sums are `index_put_` with `accumulate`, which torch computes in a fixed order: `index_add_` does
too, and copies all messages first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTH = 128  # of features and between layers
CLASSES = 47


class Graph:
    """Edges at random, ordered by their targets; made on the default device.

    Parameters
    ----------
    nodes, edges : int
        How many.
    """

    def __init__(self, nodes: int, edges: int) -> None:
        self.sources = torch.randint(nodes, (edges,))
        self.targets = torch.randint(nodes, (edges,)).sort().values
        ends = torch.searchsorted(self.targets, torch.arange(nodes + 1))
        self.shares = 1 / ends.diff().clamp(min=1)[:, None].float()
        """By node, of each message in the mean."""


class _Layer(nn.Module):
    def __init__(self, graph: Graph, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs, bias=False)
        self.neighbors = nn.Linear(inputs, outputs)
        for name in ("sources", "targets", "shares"):
            self.register_buffer(name, getattr(graph, name), persistent=False)

    def forward(self, nodes: Any) -> Any:
        mean = self.shares * torch.zeros_like(nodes).index_put_(
            (self.targets,), nodes[self.sources], accumulate=True
        )
        return self.neighbors(mean) + self.own(nodes)


class GraphSage(nn.Module):
    """Layers with a norm, ReLU and dropout between them.

    Parameters
    ----------
    graph : Graph
        Whose nodes' features are given to it.
    layers : int
        How many.
    """

    def __init__(self, graph: Graph, *, layers: int = 3) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for _ in range(layers - 1):
            parts += [_Layer(graph, WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU(), nn.Dropout()]
        self.parts = nn.Sequential(*parts, _Layer(graph, WIDTH, CLASSES))

    def forward(self, features: Any) -> Any:
        return self.parts(features)
