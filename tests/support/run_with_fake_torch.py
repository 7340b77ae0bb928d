# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run`` where the program's torch sees a GPU: the fake one, on a simulated device.

The fake comes with the program's import of torch, as a GPU would; the program finds it as the
module ``fake_cuda``.
"""

from __future__ import annotations

import sys
import types

import pytest

import rmm_uvm.drivers
import rmm_uvm.pool.arguments
import rmm_uvm.run.torch_memory
from rmm_uvm.integrations.when_imported import when_imported

DEVICE = "simulated:512MiB"


def arrange(*, gpu_of_torch: bool = True) -> None:
    """Put the fake in the place of the GPU and of torch's CUDA side, or only of the GPU."""
    patch = pytest.MonkeyPatch()
    choose = rmm_uvm.drivers.choose_driver

    def simulated(device: int = 0, _driver: object = None) -> object:
        return choose(device, DEVICE)

    for module in (rmm_uvm.pool.arguments, rmm_uvm.run.torch_memory):
        patch.setattr(module, "choose_driver", simulated)

    def come() -> None:
        import rmm_uvm.torch.memory

        from .fake_torch_cuda import FakeTorchCuda

        patch.setattr(rmm_uvm.torch.memory, "choose_driver", simulated)
        module = types.ModuleType("fake_cuda")
        module.cuda = FakeTorchCuda()  # type: ignore[attr-defined]
        module.cuda.install(patch)
        sys.modules["fake_cuda"] = module

    if gpu_of_torch:
        when_imported("torch", come)
