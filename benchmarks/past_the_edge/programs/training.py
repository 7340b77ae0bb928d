# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training in FP32 with AdamW, by kernels that give the same on every run.

Checksums are the bits of losses. The data of a program are all that lives at its peak.
"""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

SEED = 20261127


class Training:
    """A step is a forward pass, a backward pass and a step of the optimiser.

    Parameters
    ----------
    data_bytes : int
        Of parameters, gradients, moments and activations together, at the peak of a step.
    pieces : int
        Steps of a round.
    announced : bool
        Announce uses with `rmm_uvm.torch.announced`.
    """

    STEPS = 3
    SIDES = ("resident", "default", "announced", "lazy", "copies", "automatic", "fault-driven")
    PIECES = 2
    DEVICE = "cuda"
    MODULES = ("rmm_uvm.torch",)
    """What a process imports before it is told what to run: none of them touches the device."""

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        import torch

        self._torch, self._announced = torch, announced
        self._data_bytes, self.operations = data_bytes, pieces * self.STEPS
        self._ends = ExitStack()
        self._model: Any = None
        self._forward: Any = None
        self.optimizer: Any = None
        self._loss: Any = None

    def make(self) -> None:
        torch = self._torch
        fills = torch.utils.deterministic.fill_uninitialized_memory
        torch.use_deterministic_algorithms(True)  # noqa: FBT003 - torch's own
        torch.utils.deterministic.fill_uninitialized_memory = False  # nobody reads it
        self._ends.callback(torch.use_deterministic_algorithms, False)  # noqa: FBT003
        self._ends.callback(setattr, torch.utils.deterministic, "fill_uninitialized_memory", fills)
        if self._announced:
            import rmm_uvm.torch

            self._ends.enter_context(rmm_uvm.torch.announced())
        torch.manual_seed(SEED)
        self._model, self._forward = self.network(self._data_bytes)
        self._model.train()
        self.optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4, fused=True)

    def network(self, data_bytes: int) -> tuple[Any, Callable[[], Any]]:
        """Return a model, and what returns its loss."""
        raise NotImplementedError

    def classes_of(self, model: Any, inputs: Any, labels: Any) -> tuple[Any, Callable[[], Any]]:
        """Return the same of a model that tells classes."""
        loss = self._torch.nn.functional.cross_entropy
        return model, lambda: loss(model(inputs), labels)

    def operation(self, number: int) -> int:
        step = number % self.STEPS
        if step == 0:
            self._loss = self._forward()
        elif step == 1:
            self._loss.backward()
            self._loss = self._loss.detach()
        else:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            return bits_of(self._loss.item())
        return number

    def drop(self) -> None:
        self._model = self._forward = self.optimizer = self._loss = None
        self._ends.close()
        gc.collect()
        if self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()
            self._torch._C._cuda_clearCublasWorkspaces()
            self._torch.cuda.empty_cache()


class SwinTraining(Training):
    """Swin-B on images of 224 x 224: as many in a step as the data have room for."""

    BYTES_BESIDE = 1_240_000_000
    """Parameters, both moments and workspaces: live at the peak, whatever the number of images."""
    BYTES_PER_IMAGE = 221_000_000

    def network(self, data_bytes: int) -> tuple[Any, Callable[[], Any]]:
        """Return it; at least one image."""
        from benchmarks.past_the_edge.programs.swin import Swin

        torch = self._torch
        images = max(1, (data_bytes - self.BYTES_BESIDE) // self.BYTES_PER_IMAGE)
        with torch.device(self.DEVICE):
            return self.classes_of(
                Swin(), torch.randn(images, 3, 224, 224), torch.randint(1000, (images,))
            )


class SageTraining(Training):
    """GraphSAGE on a whole graph of ten edges a node: as many nodes as the data have room for."""

    EDGES_PER_NODE = 10
    BYTES_PER_NODE = 12_500
    """With its edges. A kernel uses half of it at once: messages alone are 5120."""

    def network(self, data_bytes: int) -> tuple[Any, Callable[[], Any]]:
        """Return it; at least a hundred nodes."""
        from benchmarks.past_the_edge.programs.graphsage import CLASSES, WIDTH, Graph, GraphSage

        torch = self._torch
        nodes = max(100, data_bytes // self.BYTES_PER_NODE)
        with torch.device(self.DEVICE):
            model = GraphSage(Graph(nodes, nodes * self.EDGES_PER_NODE))
            return self.classes_of(
                model, torch.randn(nodes, WIDTH), torch.randint(CLASSES, (nodes,))
            )


class ModelTraining(Training):
    """A model of benchmarks/training/models.py: as many samples as the data have room for."""

    MODEL = ""
    BYTES_BESIDE = 0
    """Parameters, both moments and workspaces: live at the peak, whatever the batch."""
    BYTES_PER_SAMPLE = 1
    MODULES = (*Training.MODULES, "transformers.modeling_utils")

    def network(self, data_bytes: int) -> tuple[Any, Callable[[], Any]]:
        """Return it; at least one sample."""
        from benchmarks.training import models

        samples = max(1, (data_bytes - self.BYTES_BESIDE) // self.BYTES_PER_SAMPLE)
        made = models.make(self.MODEL, batch=samples, device=self.DEVICE)
        return made.model, made.forward


def _model(name: str, beside: int, per_sample: int) -> type[ModelTraining]:
    members = {"MODEL": name, "BYTES_BESIDE": beside, "BYTES_PER_SAMPLE": per_sample}
    return type(
        "ModelTraining", (ModelTraining,), {"__doc__": f"{name}: {Training.__doc__}", **members}
    )


MODELS = {
    name: _model(name, beside, per_sample)
    for name, beside, per_sample in (
        ("gpt2-medium", 4_260_000_000, 3_750_000_000),
        ("whisper-small", 2_890_000_000, 1_740_000_000),
        ("resnet152", 730_000_000, 178_000_000),
    )
}


def bits_of(loss: float) -> int:
    """Return the bits of a number of 32 bits.

    Examples
    --------
    >>> hex(bits_of(1.0))
    '0x3f800000'
    """
    (found,) = struct.unpack("<I", struct.pack("<f", loss))
    return int(found)
