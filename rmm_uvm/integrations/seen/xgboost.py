# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""XGBoost: a frame's columns, all together where they are handed to its library.

Single arrays are told by their interface (`seen.cupy`, `seen.libcudf`), and columns too, but one at
a time: the first may be away again when the last has come.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.integrations.seen.announcer import Announcer, Use
from rmm_uvm.integrations.seen.arrays import ArrayUses
from rmm_uvm.integrations.seen.seam import Seam
from rmm_uvm.integrations.wiring import Wiring

__all__ = ["XgboostData", "wire_xgboost_data"]

_DATA = "xgboost.data"


def wire_xgboost_data(residencies: Sequence[ManagedResidency]) -> Wiring:
    """Announce frames that XGBoost is given, as soon as it is imported.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        Of the managed pools that keep a budget.
    """
    return XgboostData(residencies).wiring("xgboost_data", package="xgboost")


class XgboostData(Seam):
    """Columns of cuDF that XGBoost takes as they are: for its matrices, and to predict."""

    def __init__(self, residencies: Sequence[ManagedResidency]) -> None:
        super().__init__(Announcer("XGBoost", residencies), {_DATA: self._attach})
        self._arrays = ArrayUses()

    def _attach(self) -> None:
        data = sys.modules[_DATA]
        transformed = getattr(data, "CudfTransformed", None)
        if transformed is not None:  # asked for its interfaces just before each use
            ours = self.announcer.before(
                "array_interface", transformed.array_interface, self._of_frame, only_read=True
            )
            self.announcer.replace(transformed, "array_interface", ours, "array_interface")
            return
        name = "_cudf_array_interfaces"  # before there was one
        ours = self.announcer.before(name, getattr(data, name), self._of_arguments, only_read=True)
        self.announcer.replace(data, name, ours, name)

    def _of_frame(self, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> tuple[list[Use], int]:
        frame = args[0]
        things = (*frame.columns, getattr(frame, "temporary_buffers", ()))
        return self._arrays.of_things(things), 0

    def _of_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Use], int]:
        return self._arrays.of_things((*args, *kwargs.values())), 0
