# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""DDP over NCCL on two GPUs, without a budget and past one, for `test_torch_programs.py`.

    python ranks_program.py FOLDER

Prints JSON: what each rank found, with rows of its own.
"""

from __future__ import annotations

import datetime
import gc
import json
import os
import sys
from pathlib import Path

import torch
import torch.multiprocessing
from budgeted import within_a_budget
from torch.nn.parallel import DistributedDataParallel
from torch_loops import losses_of

RANKS = 2
STEPS = 12
# Ranks of one host need neither a network nor multicast, which is set up for all GPUs of the host.
NCCL = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NVLS_ENABLE": "0"}


def train(rank: int) -> list[float]:
    """Train the model that all ranks have, with rows that no other has."""
    return losses_of(STEPS, wrap=DistributedDataParallel, seed=rank)


def run(rank: int, folder: str) -> None:
    """Train as one of the ranks, each on its own GPU; write what was found."""
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        "nccl",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=RANKS,
        device_id=torch.device("cuda", rank),
        timeout=datetime.timedelta(seconds=60),  # a rank that waits for one that failed ends
    )
    result = {"expected": train(rank), **within_a_budget(lambda: train(rank))}
    Path(folder, f"{rank}.json").write_text(json.dumps(result, default=str))
    gc.collect()  # models of the group go before it
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(NCCL)
    folder = Path(sys.argv[1])
    torch.multiprocessing.spawn(run, args=(str(folder),), nprocs=RANKS)
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]
    print(json.dumps({"ranks": found}))
