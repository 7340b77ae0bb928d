# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Networks that `transformers` does not have: AlexNet, DenseNet, a 3D U-Net, an LSTM model.

With the layers and widths of their papers; weights are random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class AlexNet(nn.Module):
    """Five convolutions and three linear layers, in one tower."""

    def __init__(self, *, width: int = 64, hidden: int = 4096, classes: int = 1000) -> None:
        super().__init__()
        wide = [width, 3 * width, 6 * width, 4 * width, 4 * width]
        self.features = nn.Sequential(
            *_convolution(3, wide[0], 11, stride=4, padding=2),
            nn.MaxPool2d(3, 2),
            *_convolution(wide[0], wide[1], 5, padding=2),
            nn.MaxPool2d(3, 2),
            *_convolution(wide[1], wide[2], 3, padding=1),
            *_convolution(wide[2], wide[3], 3, padding=1),
            *_convolution(wide[3], wide[4], 3, padding=1),
            nn.MaxPool2d(3, 2),
            _AveragePool(6),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(),
            nn.Linear(36 * wide[4], hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: Any) -> Any:
        return self.classifier(self.features(images))


class _AveragePool(nn.AdaptiveAvgPool2d):
    """Its backward pass has no deterministic kernel; of images of 224 x 224 it changes nothing."""

    def forward(self, features: Any) -> Any:
        if torch.are_deterministic_algorithms_enabled() and set(features.shape[2:]) == {6}:
            return features
        return super().forward(features)


def _convolution(inputs: int, outputs: int, size: int, **settings: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, size, **settings), nn.ReLU(inplace=True)]


class _DenseLayer(nn.Module):
    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, features: list[Any]) -> Any:
        return self.layers(torch.cat(features, 1))


class _DenseBlock(nn.Module):
    def __init__(self, layers: int, channels: int, growth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _DenseLayer(channels + number * growth, growth) for number in range(layers)
        )

    def forward(self, before: Any) -> Any:
        features = [before]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    """DenseNet-121 by default."""

    def __init__(
        self,
        *,
        layers: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        width: int = 64,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = [
            nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
        ]
        channels = width
        for number, count in enumerate(layers):
            parts.append(_DenseBlock(count, channels, growth))
            channels += count * growth
            if number < len(layers) - 1:
                parts += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
                parts += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
                channels //= 2
        parts += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)]
        self.layers = nn.Sequential(*parts, nn.Flatten(), nn.Linear(channels, classes))

    def forward(self, images: Any) -> Any:
        return self.layers(images)


class _Convolutions3d(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        parts: list[nn.Module] = []
        for channels in (inputs, outputs):
            parts += [
                nn.Conv3d(channels, outputs, 3, padding=1, bias=False),
                nn.InstanceNorm3d(outputs, affine=True),
                nn.LeakyReLU(0.01, inplace=True),
            ]
        super().__init__(*parts)


def pooled(volumes: Any) -> Any:
    """Return the largest of each 2 x 2 x 2 voxels, of an even number along each side."""
    if not torch.are_deterministic_algorithms_enabled():
        return nn.functional.max_pool3d(volumes, 2)
    # The backward pass of max_pool3d has no deterministic kernel. Where several are the largest, it
    # gives the gradient to one of them; this spreads it.
    *outer, depth, height, width = volumes.shape
    return volumes.reshape(*outer, depth // 2, 2, height // 2, 2, width // 2, 2).amax((-5, -3, -1))


class UNet3d(nn.Module):
    """A U-Net for volumes: channels double where the resolution halves, and back."""

    def __init__(self, *, width: int = 32, levels: int = 5, classes: int = 4) -> None:
        super().__init__()
        wide = [width << level for level in range(levels)]
        self.down = nn.ModuleList(
            _Convolutions3d(inputs, outputs)
            for inputs, outputs in zip([1, *wide], wide, strict=False)
        )
        self.widen = nn.ModuleList(
            nn.ConvTranspose3d(2 * outputs, outputs, 2, stride=2) for outputs in wide[-2::-1]
        )
        self.up = nn.ModuleList(_Convolutions3d(2 * outputs, outputs) for outputs in wide[-2::-1])
        self.last = nn.Conv3d(width, classes, 1)

    def forward(self, volumes: Any) -> Any:
        kept = []
        features = volumes
        for level, convolutions in enumerate(self.down):
            features = convolutions(features if level == 0 else pooled(kept[-1]))
            kept.append(features)
        features = kept.pop()
        for widen, convolutions in zip(self.widen, self.up, strict=True):
            features = convolutions(torch.cat([kept.pop(), widen(features)], 1))
        return self.last(features)


class LstmLanguageModel(nn.Module):
    """A word-level language model: an embedding, LSTM layers and a linear layer over the words."""

    def __init__(
        self, *, words: int = 33278, width: int = 256, units: int = 256, layers: int = 2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, units, layers, dropout=0.2)
        self.dropout = nn.Dropout(0.2)
        self.decoder = nn.Linear(units, words)

    def forward(self, words: Any) -> Any:
        outputs, _ = self.lstm(self.dropout(self.embedding(words)))
        return self.decoder(self.dropout(outputs))
