# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The roofline of a card: how long an operator takes at least."""

from __future__ import annotations

import pytest
import torch

import rmm_uvm.simulator
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.torch import Roofline, recorded


def test_roofline_is_the_largest_of_its_three_times() -> None:
    roofline = Roofline(1e12, launch_seconds=1e-6, fp32_flops=1e12)
    assert roofline.seconds(1) == 1e-6
    assert roofline.seconds(10**9) == 1e-3
    assert roofline.seconds(10**9, 10**12, 1e12) == 1.0
    with pytest.raises(ConfigurationError, match="memory_bytes_per_second"):
        Roofline(0)


def test_kernel_of_16_bits_and_convolutions_have_their_own_peaks() -> None:
    roofline = Roofline.of(rmm_uvm.simulator.load_machine("h200-pcie5"))
    assert roofline.peak_of("mm", 4) == 67e12
    assert roofline.peak_of("convolution", 4) == 494e12
    assert roofline.peak_of("mm", 2) == 989e12


def test_product_of_matrices_takes_its_operations_time() -> None:
    only_computing = Roofline(1e30, fp32_flops=1e9)
    matrix = torch.ones(128, 128)
    with recorded(roofline=only_computing) as program:
        matrix @ matrix
    assert program.compute_seconds == pytest.approx(2 * 128**3 / 1e9)
