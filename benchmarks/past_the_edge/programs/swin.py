# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Swin: a transformer over windows of an image, which are shifted in every other block.

Widths, depths and heads are those of Swin-B by default; weights are random. Patches are embedded by
a linear layer, which computes what a convolution of their size does, so that cuDNN has no choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

PATCH = 4  # pixels along each side
_HIDDEN = -100.0  # added to scores of tokens that are no neighbours


class _Attention(nn.Module):
    """Within windows, with a bias for each difference of two places."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self._heads, self._scale = heads, (width // heads) ** -0.5
        self.all_three = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        nn.init.normal_(self.bias, std=0.02)
        place = torch.cartesian_prod(torch.arange(window), torch.arange(window))
        apart = place[:, None] - place[None] + window - 1
        index = apart[..., 0] * (2 * window - 1) + apart[..., 1]
        self.register_buffer("index", index, persistent=False)

    def forward(self, windows: Any, mask: Any) -> Any:
        count, tokens, width = windows.shape
        three = self.all_three(windows).view(count, tokens, 3, self._heads, -1)
        queries, keys, values = three.permute(2, 0, 3, 1, 4)
        del three
        scores = (queries * self._scale) @ keys.mT + self.bias[self.index].permute(2, 0, 1)
        del queries, keys
        if mask is not None:
            of_image = scores.view(-1, len(mask), self._heads, tokens, tokens)
            scores = (of_image + mask[:, None]).flatten(0, 1)
            del of_image
        found = scores.softmax(-1) @ values
        return self.out(found.transpose(1, 2).reshape(count, tokens, width))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, side: int, window: int, *, shifted: bool) -> None:
        super().__init__()
        self._window = min(window, side)
        self._shift = window // 2 if shifted and side > window else 0
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Attention(width, heads, self._window)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        mask = self._mask(side) if self._shift else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, image: Any) -> Any:
        image = image + self._attended(self.before_attention(image))
        return image + self.layers(self.before_layers(image))

    def _attended(self, image: Any) -> Any:
        shape, shift = image.shape, self._shift
        if shift:
            image = image.roll((-shift, -shift), (1, 2))
        windows = self.attention(self._windows(image), self.mask)
        rows = shape[1] // self._window
        parts = windows.view(-1, rows, rows, self._window, self._window, shape[3])
        image = parts.transpose(2, 3).reshape(shape)
        return image.roll((shift, shift), (1, 2)) if shift else image

    def _windows(self, image: Any) -> Any:
        images, side, _, width = image.shape
        rows = side // self._window
        parts = image.view(images, rows, self._window, rows, self._window, width)
        return parts.transpose(2, 3).reshape(-1, self._window**2, width)

    def _mask(self, side: int) -> Any:
        """Return what hides tokens that a shift brought into one window from two edges."""
        strip = torch.zeros(side)
        strip[-self._window :] = 1
        strip[-self._shift :] = 2
        areas = 3 * strip[:, None] + strip[None]
        areas = self._windows(areas[None, :, :, None]).squeeze(-1)
        return (areas[:, :, None] != areas[:, None]) * _HIDDEN


class _Merging(nn.Module):
    """Four neighbours become one of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.narrow = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, image: Any) -> Any:
        places = ((0, 0), (1, 0), (0, 1), (1, 1))
        return self.narrow(self.norm(torch.cat([image[:, a::2, b::2] for a, b in places], -1)))


class Swin(nn.Module):
    """Swin-B by default."""

    def __init__(
        self,
        *,
        width: int = 128,
        depths: Sequence[int] = (2, 2, 18, 2),
        heads: Sequence[int] = (4, 8, 16, 32),
        side: int = 224,
        window: int = 7,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.embedding = nn.Linear(3 * PATCH**2, width)
        parts: list[nn.Module] = [nn.LayerNorm(width)]
        side //= PATCH
        for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
            if stage:
                parts.append(_Merging(width))
                width, side = 2 * width, side // 2
            parts += [
                _Block(width, count, side, window, shifted=number % 2 == 1)
                for number in range(depth)
            ]
        self.parts = nn.Sequential(*parts, nn.LayerNorm(width))
        self.head = nn.Linear(width, classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, images: Any) -> Any:
        count, colors, side, _ = images.shape
        rows = side // PATCH
        patches = images.view(count, colors, rows, PATCH, rows, PATCH).permute(0, 2, 4, 1, 3, 5)
        tokens = self.embedding(patches.reshape(count, rows, rows, -1))
        return self.head(self.parts(tokens).mean((1, 2)))
