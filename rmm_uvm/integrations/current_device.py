# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""RMM's current device where there is no GPU: the simulated one.

RMM asks CUDA which device is current for `rmm.DeviceBuffer` without a resource, for
`rmm.mr.get_current_device_resource` and for `rmm.statistics`. Without a GPU CUDA has no answer.
"""

from __future__ import annotations

from typing import Any

from rmm._cuda.gpu import CUDARuntimeError
from rmm.pylibrmm.memory_resource import _memory_resource

from rmm_uvm.integrations.wiring import Wiring

__all__ = ["wire_current_device"]

NAME = "rmm device"


def wire_current_device(ordinal: int) -> Wiring:
    """Have RMM take a simulated device for the current one, where CUDA has none.

    Parameters
    ----------
    ordinal : int
        Of the simulated device.

    Returns
    -------
    Wiring
        Not active where CUDA has a device, which stays RMM's current one.
    """
    module: Any = _memory_resource  # its types leave out what it imports
    asked = module.getDevice
    try:
        current = asked()
    except CUDARuntimeError:
        module.getDevice = lambda: ordinal
    else:
        return Wiring(NAME, active=False, reason=f"CUDA has one: {current}")

    def undo() -> None:
        module.getDevice = asked

    return Wiring(
        NAME, active=True, reason=f"RMM's current one is {ordinal}: CUDA has none", undo=undo
    )
