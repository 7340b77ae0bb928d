# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How long a kernel takes with all its memory on the card: a roofline.

The larger of what its bytes take at the card's memory rate, what its floating-point operations
take at the card's peak, and a launch. Operations are counted by torch's own formulas
(`torch.utils.flop_counter`). No kernel is as fast as that, so times are lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator import Machine
from rmm_uvm.support.messages import shown

__all__ = ["Roofline", "roofline_for"]

# Published: NVIDIA H200 SXM data sheet, without sparsity. For other machines they are too high.
_FP32_FLOPS = 67e12
_TF32_FLOPS = 494e12
_HALF_FLOPS = 989e12


@dataclass(frozen=True)
class Roofline:
    """Rates of a card for kernels whose memory is there. Immutable.

    Parameters
    ----------
    memory_bytes_per_second : float
        Of the card's own memory, > 0.
    launch_seconds : float
        Least time of a kernel, >= 0.
    fp32_flops, tf32_flops, half_flops : float
        Floating-point operations a second, > 0: of FP32, of convolutions in FP32 (torch runs them
        as TF32 by default), and of 16-bit numbers. By default those published for an H200.

    Raises
    ------
    ConfigurationError
        If a rate is not above 0.

    Examples
    --------
    >>> from rmm_uvm.torch import Roofline
    >>> Roofline(4e12, launch_seconds=4e-6).seconds(8_000_000_000)
    0.002
    """

    memory_bytes_per_second: float
    launch_seconds: float = 0.0
    fp32_flops: float = _FP32_FLOPS
    tf32_flops: float = _TF32_FLOPS
    half_flops: float = _HALF_FLOPS

    def __post_init__(self) -> None:
        for name in ("memory_bytes_per_second", "fp32_flops", "tf32_flops", "half_flops"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"{name}={shown(getattr(self, name))}: use more than 0")
        if not 0 <= self.launch_seconds < math.inf:
            raise ConfigurationError(f"launch_seconds={shown(self.launch_seconds)}: use 0 or more")

    @classmethod
    def of(cls, machine: Machine) -> Roofline:
        """Return that of a machine: its memory rate and launch time, an H200's operations."""
        return cls(machine.memory_bytes_per_ns * 1e9, machine.launch_ns / 1e9)

    def seconds(self, nbytes: int, operations: int = 0, peak_flops: float = _FP32_FLOPS) -> float:
        """Return the time of a kernel that moves `nbytes` and does `operations`."""
        return max(
            nbytes / self.memory_bytes_per_second, operations / peak_flops, self.launch_seconds
        )

    def peak_of(self, operator_name: str, element_bytes: int) -> float:
        """Return the peak that an operator is bound by."""
        if element_bytes <= 2:
            return self.half_flops
        return self.tf32_flops if "convolution" in operator_name else self.fp32_flops


def operations_of(func: Any, args: Any, kwargs: Mapping[str, Any], result: Any) -> int:
    """Return how many floating-point operations an operator does; 0 for those without formula."""
    from torch.utils import flop_counter

    packet = func.overloadpacket
    formula = flop_counter.flop_registry.get(packet)
    if formula is not None:
        return int(formula(*args, **kwargs, out_val=result))
    # Of the CPU alone, and so not in torch's table.
    name = packet.__name__
    if name == "_scaled_dot_product_flash_attention_for_cpu":
        return int(flop_counter.sdpa_flop_count(*(one.shape for one in args[:3])))
    if name == "_scaled_dot_product_flash_attention_for_cpu_backward":
        return int(flop_counter.sdpa_backward_flop_count(*(one.shape for one in args[:4])))
    if name in ("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"):
        steps_and_samples = args[0].shape[0] * args[0].shape[1]
        forward = 2 * steps_and_samples * (args[1].numel() + args[2].numel())
        return int(forward if name == "mkldnn_rnn_layer" else 2 * forward)
    return 0


def roofline_for(asked: Roofline | None, machine: Machine) -> Roofline:
    """Return what was asked for, or that of a machine.

    Raises
    ------
    ConfigurationError
        If it is no `Roofline`.
    """
    if asked is None:
        return Roofline.of(machine)
    if not isinstance(asked, Roofline):
        raise ConfigurationError(f"roofline={shown(asked)}: expected a Roofline, or None")
    return asked
