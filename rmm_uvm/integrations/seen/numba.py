# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Numba's kernels, at their launch; cuDF's functions of users (`apply`, `rolling`) are such too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.integrations.seen.announcer import Announcer, Use
from rmm_uvm.integrations.seen.arrays import ArrayUses
from rmm_uvm.integrations.seen.seam import Seam
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.residency.streams import stream_handle

__all__ = ["NumbaLaunches", "wire_numba_launches"]

_DISPATCHER = "numba.cuda.dispatcher"


def wire_numba_launches(residencies: Sequence[ManagedResidency]) -> Wiring:
    """Announce what kernels of Numba are given, as soon as its part for CUDA is imported.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        Of the managed pools that keep a budget.
    """
    return NumbaLaunches(residencies).wiring("numba_launches", package="numba")


class NumbaLaunches(Seam):
    """Announces what Numba's kernels are given, just before each launch."""

    def __init__(self, residencies: Sequence[ManagedResidency]) -> None:
        super().__init__(Announcer("Numba", residencies), {_DISPATCHER: self._attach})
        self._arrays = ArrayUses()

    def _attach(self) -> None:
        dispatcher = sys.modules[_DISPATCHER].CUDADispatcher
        ours = self.announcer.before("CUDADispatcher.call", dispatcher.call, self._uses)
        self.announcer.replace(dispatcher, "call", ours, "CUDADispatcher.call")

    def _uses(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Use], int]:
        # (self, args, launch_config), or before that was: (self, args, grid, block, stream, shared)
        names = dict(zip(("self", "args", "launch_config"), args, strict=False)) | kwargs
        configuration: Any = names.get("launch_config")
        if hasattr(configuration, "stream"):
            stream = configuration.stream
        else:
            stream = kwargs["stream"] if "stream" in kwargs else args[4]
        return self._arrays.of_things(names["args"]), stream_handle(stream)
