# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch past GPU memory: its tensors in managed memory, moved before they are needed.

`managed` and `install` have torch's own caching allocator take its segments from managed memory.
While everything fits nothing else happens. When it does not, what a training step uses is learnt
from the step itself, without a change to the model. See docs/use/training.md.

`announced` is for a torch that allocates through RMM.

`simulated` runs a program on a simulated device, without a GPU, and `recorded` keeps what it does
with memory.

`ManagedEmbedding` and `ManagedEmbeddingBag` are tables larger than the GPU. See
docs/use/embeddings.md.

Needs the extra ``torch``.
"""

from __future__ import annotations

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.support.optional_packages import too_old
from rmm_uvm.support.requirements import install_extra

try:
    import torch as _torch
except ImportError as error:
    raise AvailabilityError(
        f"rmm_uvm.torch needs PyTorch, which is not installed: {install_extra('torch')}"
    ) from error
if problem := too_old("torch"):
    raise AvailabilityError(f"rmm_uvm.torch: {problem}")

from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.torch.announcements import announced
from rmm_uvm.torch.embeddings.modules import ManagedEmbedding, ManagedEmbeddingBag
from rmm_uvm.torch.memory import TorchMemory, install, installed_memory, managed
from rmm_uvm.torch.shadow.program import Program, recorded
from rmm_uvm.torch.shadow.roofline import Roofline
from rmm_uvm.torch.shadow.running import Shadow, simulated

__all__ = [
    "ManagedEmbedding",
    "ManagedEmbeddingBag",
    "Program",
    "Roofline",
    "Shadow",
    "ShadowStatistics",
    "TorchMemory",
    "announced",
    "install",
    "installed_memory",
    "managed",
    "recorded",
    "simulated",
]

del _torch
