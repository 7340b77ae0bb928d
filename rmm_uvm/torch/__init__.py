# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch past GPU memory: its tensors in managed memory, moved before they are needed.

`managed` and `install` have torch's own caching allocator take its segments from managed memory.
While everything fits nothing else happens. When it does not, what a training step uses is learnt
from the step itself, without a change to the model. See docs/training.md.

Needs the extra ``torch``. On a GPU of which torch knows nothing, and without one, see `simulated`.
"""

from __future__ import annotations

from rmm_uvm.errors import AvailabilityError

try:
    import torch as _torch
except ImportError as error:
    raise AvailabilityError(
        "rmm_uvm.torch needs PyTorch, which is not installed: pip install 'rmm-uvm[torch]'"
    ) from error

from rmm_uvm.torch.memory import TorchMemory, install, installed_memory, managed

__all__ = ["TorchMemory", "install", "installed_memory", "managed"]

del _torch
