# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 of random weights past a budget, by Hugging Face: prints JSON.

    python huggingface_program.py {trainer,generate} FOLDER

For `test_torch_programs.py`. Without a network; on one GPU, since Trainer takes all that it sees.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from budgeted import MIB, within_a_budget

WORDS = 8192


def gpt2(layers: int) -> Any:
    """Return a model of 16.5 MiB, and 12 MiB a layer."""
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=WORDS,
            n_positions=256,
            n_embd=512,
            n_layer=layers,
            n_head=8,
            bos_token_id=None,
            eos_token_id=None,  # no text ends early
            attn_implementation="eager",  # its kernels give the same on every run
        )
    )


def train(folder: Path) -> list[float]:
    """Train by the Trainer, with accumulation and checkpointing; return the losses."""
    # Of few words, which is soon learnt.
    rows = torch.randint(64, (16, 256), generator=torch.Generator().manual_seed(1)).tolist()
    trainer = transformers.Trainer(
        model=gpt2(4),
        args=transformers.TrainingArguments(
            output_dir=str(folder),
            max_steps=6,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            gradient_checkpointing=True,
            learning_rate=1e-4,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=3,
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],
    )
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def trainer(folder: Path) -> dict[str, Any]:
    """Train without a budget, and past one: parameters, gradients and state are 258 MiB."""
    return {"expected": train(folder), **within_a_budget(lambda: train(folder))}


def generated() -> list[int]:
    """Return a text of 32 tokens and its beginning, by a model of 160 MiB."""
    model = gpt2(12).eval().cuda()
    tokens = model.generate(
        torch.arange(8).cuda().unsqueeze(0),
        attention_mask=torch.ones(1, 8, dtype=torch.long).cuda(),
        max_new_tokens=32,
        do_sample=False,
        pad_token_id=0,
    )
    found: list[int] = tokens[0].tolist()
    return found


def generate(_folder: Path) -> dict[str, Any]:
    """Generate without a budget, and past one."""
    return {"expected": generated(), **within_a_budget(generated, 96 * MIB)}


PROGRAMS = {"trainer": trainer, "generate": generate}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]](Path(sys.argv[2])), default=str))
