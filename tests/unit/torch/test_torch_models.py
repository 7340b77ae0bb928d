# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The models that benchmarks train: each makes its step, anywhere, and the same one every time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rmm_uvm.torch import recorded

from ...scenarios.residency_scripts import script

NAMES = (
    *("alexnet", "resnet50", "resnet101", "resnet152", "densenet121", "unet3d", "lstm"),
    *("gpt2", "gpt2-medium", "bert", "whisper-small"),
)
# Published numbers of parameters, in millions.
PARAMETERS = {"alexnet": 61.1, "resnet50": 25.6, "densenet121": 8.0, "gpt2": 124.4, "bert": 109.5}


@pytest.fixture
def models() -> Any:
    return script("training/models")


def test_every_model_of_the_table_is_there(models: Any) -> None:
    assert models.NAMES == NAMES


@pytest.mark.filterwarnings("default")  # of transformers
@pytest.mark.parametrize("name", NAMES)
def test_step_of_each_small_model_trains_all_parameters(models: Any, name: str) -> None:
    program = models.make(name, "small", batch=2, device="cpu")
    before = [one.detach().clone() for one in program.model.parameters()]

    loss = program.step()

    assert torch.isfinite(loss)
    assert not loss.requires_grad
    changed = [
        not torch.equal(old, new)
        for old, new in zip(before, program.model.parameters(), strict=True)
    ]
    # Whisper's positions of the encoder are fixed.
    assert changed.count(False) <= (1 if name == "whisper-small" else 0)
    assert all(one.grad is None for one in program.model.parameters())


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_same_model_has_the_same_losses_and_they_fall(models: Any, dtype: str) -> None:
    def losses() -> list[float]:
        program = models.make("bert", "small", batch=2, dtype=dtype, device="cpu")
        return [float(program.step()) for _ in range(3)]

    first = losses()
    assert first == losses()
    assert first[-1] < first[0]


class Operators(TorchDispatchMode):
    """Notes what torch computes with."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(str(func).partition(".")[2].partition(".")[0])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["unet3d", "resnet50"])
def test_operators_with_deterministic_kernels_give_the_losses_of_the_ordinary_ones(
    models: Any, name: str
) -> None:
    def trained() -> tuple[list[float], set[str]]:
        program = models.make(name, "small", batch=2, device="cpu")
        with Operators() as seen:
            losses = [program.step().item() for _ in range(3)]
        return losses, seen.names

    def without_kernels(names: set[str]) -> list[str]:
        return sorted(one for one in names if one.startswith(("max_pool3d", "nll_loss2d")))

    ordinary, theirs = trained()
    torch.use_deterministic_algorithms(True)
    try:
        deterministic, ours = trained()
    finally:
        torch.use_deterministic_algorithms(False)
    assert deterministic == pytest.approx(ordinary, rel=1e-5)
    assert bool(without_kernels(theirs)) is (name == "unet3d")
    assert not without_kernels(ours)


@pytest.mark.parametrize("side", [224, 256])
def test_alexnet_averages_by_a_deterministic_kernel_where_that_changes_nothing(
    models: Any, side: int
) -> None:
    torch.manual_seed(5)
    features = models.AlexNet(width=8, hidden=64).features
    images = torch.randn(2, 3, side, side)
    expected = features(images)
    torch.use_deterministic_algorithms(True)
    try:
        with Operators() as seen:
            found = features(images)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(found, expected)
    averaged = any("adaptive_avg_pool2d" in one for one in seen.names)
    assert averaged is (side == 256)


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_full_models_on_fake_tensors_have_their_published_size(models: Any, name: str) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        program = models.make(name, device="cpu")
        millions = sum(one.numel() for one in program.model.parameters()) / 1e6
    assert round(millions, 1) == PARAMETERS[name]


def test_16_bits_take_less_memory_than_32(models: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    peaks = []
    for dtype in ("fp32", "bf16"):
        with FakeTensorMode(), recorded() as program:
            models.make("bert", "small", batch=64, dtype=dtype, device="cpu").step()
        peaks.append(program.peak_bytes)
    assert peaks[1] < peaks[0]


def test_full_step_on_fake_tensors_is_recorded_without_taking_memory(models: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), recorded() as program:
        models.make("alexnet", device="cpu").step()
    assert program.peak_bytes > 4 << 30


@pytest.mark.parametrize(
    "arguments", [{"name": "lenet"}, {"size": "huge"}, {"dtype": "fp8"}], ids=str
)
def test_unknown_models_sizes_and_types_are_refused(models: Any, arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="use"):
        models.make(**{"name": "gpt2", "device": "cpu", **arguments})
