# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of RMM and arrays of RAFT whose interface somebody asks for: to use them.

cuDF asks for it as well, of each buffer that libcudf returns, to wrap it: nothing uses it then, and
nothing writes it. What uses it later is announced by itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.integrations.seen.announcer import Announcer, Use, stands_in
from rmm_uvm.integrations.seen.seam import Seam
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.residency.memory_of import buffer_region, interface_regions

__all__ = ["HandedBuffers", "wire_buffers"]

_RMM = "rmm.pylibrmm.device_buffer"
_RAFT = "pylibraft.common.device_ndarray"
_NAME = "__cuda_array_interface__"
_WRAPPERS = {"cudf", "cudf_polars", "dask_cudf", "pylibcudf"}


def wire_buffers(residencies: Sequence[ManagedResidency]) -> Wiring:
    """Announce buffers of RMM, and arrays of RAFT once it is imported, that are handed to others.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        Of the managed pools that keep a budget.
    """
    seam = HandedBuffers(residencies)
    wiring = seam.wiring("buffers")
    if "DeviceBuffer" in seam.announcer.refused:
        seam.detach()
        return Wiring("buffers", active=False, reason="this RMM's buffers cannot be seen")
    return wiring


class HandedBuffers(Seam):
    """``__cuda_array_interface__`` of `rmm.DeviceBuffer`, and of RAFT's own arrays."""

    def __init__(self, residencies: Sequence[ManagedResidency]) -> None:
        attach = {_RMM: self._attach_to_rmm, _RAFT: self._attach_to_raft}
        super().__init__(Announcer("the user of a buffer", residencies), attach)

    def _attach_to_rmm(self) -> None:
        buffer = sys.modules[_RMM].DeviceBuffer
        theirs = vars(buffer)[_NAME].__get__
        announced = self.announcer.before(f"DeviceBuffer.{_NAME}", theirs, _of_buffer)

        @functools.wraps(announced)
        def handed_out(this: Any) -> Any:
            return (theirs if _only_wraps(sys._getframe().f_back) else announced)(this)

        self._put_in(buffer, handed_out)

    def _attach_to_raft(self) -> None:
        array = sys.modules[_RAFT].device_ndarray
        interface = vars(array)[_NAME].__get__

        def of_array(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> tuple[list[Use], int]:
            regions = interface_regions(interface(args[0]))
            return [(*region, region.address) for region in regions], 0

        self._put_in(array, self.announcer.before(f"device_ndarray.{_NAME}", interface, of_array))

    def _put_in(self, kind: type, ours: Callable[[Any], Any]) -> None:
        self.announcer.replace(kind, _NAME, property(ours), kind.__name__)


def _only_wraps(caller: FrameType | None) -> bool:
    """Whether an interface is asked for by cuDF, or within a call of libcudf."""
    if caller is None:  # a thread of somebody's C
        return False
    # pylibcudf is compiled: its caller is the one that is seen.
    module = caller.f_globals.get("__name__")
    return stands_in(caller.f_code) or (
        isinstance(module, str) and module.partition(".")[0] in _WRAPPERS
    )


def _of_buffer(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> tuple[list[Use], int]:
    address, nbytes = buffer_region(args[0])
    return [(address, nbytes, address)], 0
