# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Models that are run in other ways past a budget, for `test_torch_programs.py`: prints JSON.

    python torch_program.py {compiled,distributed,checkpointed,activations} FOLDER

In a process of its own, since compilers and NCCL keep threads and files until a process ends.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

import torch
import torch.utils.checkpoint
from budgeted import MIB, within_a_budget
from torch.nn.parallel import DistributedDataParallel
from torch_loops import losses_of

import rmm_uvm.torch
from rmm_uvm.residency import Budget

STEPS = 12


def past_the_budget(wrap: Any) -> dict[str, Any]:
    """Return the losses, and what the memory says of itself."""
    return within_a_budget(lambda: losses_of(STEPS, wrap=wrap))


def compiled(folder: Path) -> dict[str, Any]:
    """Compile with the default backend, into a folder that goes."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    torch._dynamo.utils.counters.clear()
    found = past_the_budget(torch.compile)
    return {**found, "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"]}


def distributed(folder: Path) -> dict[str, Any]:
    """Have a process group over NCCL with this process alone."""
    os.environ["NCCL_SOCKET_IFNAME"] = "lo"
    device = torch.device("cuda", torch.cuda.current_device())
    store = f"file://{folder / 'store'}"
    torch.distributed.init_process_group(
        "nccl", init_method=store, rank=0, world_size=1, device_id=device
    )
    try:
        return past_the_budget(DistributedDataParallel)
    finally:
        gc.collect()  # models of the group go before it
        torch.distributed.destroy_process_group()


class Checkpointed(torch.nn.Module):
    """Recomputes each layer, whose last operator keeps its mask and has other results by then."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(layer, torch.nn.Dropout(0.1)) for layer in model
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the last layer gives."""
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        return x


def checkpointed(_folder: Path) -> dict[str, Any]:
    """Train before, past the budget, and after it."""
    expected = losses_of(STEPS, wrap=Checkpointed)
    found = past_the_budget(Checkpointed)
    return {**found, "expected": expected, "after": losses_of(STEPS, wrap=Checkpointed)}


def pinning(evict: Literal["all", "activations"]) -> dict[str, Any]:
    """Return the losses, what the memory says, and the most that was pinned before a step."""
    pinned_bytes: list[int] = []
    with rmm_uvm.torch.managed(device_budget=Budget(160 * MIB), evict=evict) as memory:

        def looked_at(model: Any) -> Any:
            model.register_forward_pre_hook(
                lambda *_: pinned_bytes.append(memory.statistics()["residency"]["pinned_bytes"])
            )
            return model

        losses = losses_of(STEPS, wrap=looked_at)
        return {"found": losses, "pinned_bytes": max(pinned_bytes), **memory.statistics()}


def activations(_folder: Path) -> dict[str, Any]:
    """Have only activations leave, and everything, to compare."""
    return {**pinning("activations"), "all": pinning("all")}


PROGRAMS = {
    "compiled": compiled,
    "distributed": distributed,
    "checkpointed": checkpointed,
    "activations": activations,
}

if __name__ == "__main__":
    expected = losses_of(STEPS)
    result = PROGRAMS[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps({"expected": expected, **result}, default=str))
