# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Models to train, with random weights and data: for GPUs, the CPU and fake tensors alike.

`make("gpt2", device="cuda")` gives a step of training to call again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.training.networks import AlexNet, DenseNet, LstmLanguageModel, UNet3d

SEED = 20260
_CLASSES = 1000
# No dropout there: the CPU's attention kernels have none, and without one of those torch keeps
# matrices of tokens by tokens that no GPU's kernel keeps.
_IN_ATTENTION = 0.0


@dataclass(frozen=True)
class Program:
    """A model and a step of its training.

    Attributes
    ----------
    name, dtype : str
        As asked for.
    batch : int
        Samples in a step.
    model : torch.nn.Module
        In training mode, with parameters in FP32.
    optimizer : torch.optim.Optimizer
        AdamW.
    forward : callable
        Returns the loss of the data, with its graph.
    step : callable
        Forward, loss, backward, optimiser, gradients to None; returns the loss, detached and still
        on the device. Always over the same data.
    """

    name: str
    dtype: str
    batch: int
    model: Any
    optimizer: Any
    forward: Callable[[], Any]
    step: Callable[[], Any]


@dataclass(frozen=True)
class _Kind:
    """How a model is made: ``model(size)`` and ``data(batch, size)``, on the default device.

    ``data`` returns keyword arguments of ``loss(model, **data)``.
    """

    full_batch: int
    model: Callable[[str], Any]
    data: Callable[[int, str], dict[str, Any]]
    loss: Callable[..., Any]
    small_batch: int = 4


def make(
    name: str,
    size: str = "full",
    batch: int | None = None,
    dtype: str = "fp32",
    device: Any = "cuda",
    *,
    fused: bool = True,
) -> Program:
    """Make a model with its optimiser and data.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    size : {"full", "small"}
        "small" trains within seconds on a CPU.
    batch : int, optional
        Samples in a step, > 0; by default one whose peak is 8 to 16 GiB in full size and FP32.
    dtype : {"fp32", "bf16"}
        "bf16" runs forward and loss under `torch.autocast`.
    device : str or torch.device
        Where. Under `FakeTensorMode` "cpu" takes neither memory nor time.
    fused : bool
        Whether AdamW is one operator. Without it the default of the device is taken, which needs
        temporaries of the parameters' size on a GPU and real tensors for its step count.

    Raises
    ------
    ValueError
        If there is no such name, size or dtype.
    """
    if name not in _KINDS:
        raise ValueError(f"name={name!r}: use one of {', '.join(NAMES)}")
    if size not in ("full", "small") or dtype not in ("fp32", "bf16"):
        raise ValueError(f"size={size!r}, dtype={dtype!r}: use full or small, fp32 or bf16")
    kind = _KINDS[name]
    device = torch.device(device)
    batch = batch or (kind.small_batch if size == "small" else kind.full_batch)
    torch.manual_seed(SEED)
    with device:
        model = kind.model(size).train()
        data = kind.data(batch, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused or None)

    def forward() -> Any:
        with torch.autocast(device.type, torch.bfloat16, enabled=dtype == "bf16"):
            return kind.loss(model, **data)

    def step() -> Any:
        loss = forward()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return Program(name, dtype, batch, model, optimizer, forward, step)


def full_batch(name: str) -> int:
    """Return the samples in a step of a model in full size: 8 to 16 GiB at the peak, in FP32."""
    return _KINDS[name].full_batch


def _images(batch: int, size: str) -> dict[str, Any]:
    side = 64 if size == "small" else 224
    return {
        "images": torch.randn(batch, 3, side, side),
        "labels": torch.randint(_CLASSES, (batch,)),
    }


def _loss_of_classes(model: Any, images: Any, labels: Any) -> Any:
    outputs = model(images)
    logits = getattr(outputs, "logits", outputs)
    if torch.are_deterministic_algorithms_enabled():
        # For logits of more than two dimensions it has no deterministic kernel.
        logits, labels = logits.movedim(1, -1).flatten(0, -2), labels.flatten()
    return nn.functional.cross_entropy(logits, labels)


def _resnet(*depths: int) -> _Kind:
    def model(size: str) -> Any:
        from transformers import ResNetConfig, ResNetForImageClassification

        wide = [32, 64, 128, 256] if size == "small" else [256, 512, 1024, 2048]
        return ResNetForImageClassification(
            ResNetConfig(
                embedding_size=16 if size == "small" else 64,
                hidden_sizes=wide,
                depths=[1, 1, 1, 1] if size == "small" else list(depths),
                layer_type="bottleneck",
                num_labels=_CLASSES,
            )
        )

    return _Kind({50: 96, 101: 64, 152: 48}[3 * sum(depths) + 2], model, _images, _loss_of_classes)


def _volumes(batch: int, size: str) -> dict[str, Any]:
    side = 16 if size == "small" else 128
    return {
        "images": torch.randn(batch, 1, side, side, side),
        "labels": torch.randint(4, (batch, side, side, side)),
    }


def _sequences(words: int, length: int, small_length: int) -> Callable[[int, str], dict[str, Any]]:
    def data(batch: int, size: str) -> dict[str, Any]:
        shape = (batch, small_length if size == "small" else length)
        return {"words": torch.randint(512 if size == "small" else words, shape)}

    return data


def _loss_of_next_words(model: Any, words: Any) -> Any:
    return model(input_ids=words, labels=words, use_cache=False).loss


def _loss_of_words(model: Any, words: Any) -> Any:
    return model(input_ids=words, labels=words).loss


def _loss_of_lstm(model: Any, words: Any) -> Any:
    words = words.t()
    outputs = model(words[:-1])
    return nn.functional.cross_entropy(outputs.flatten(0, 1), words[1:].flatten())


def _lstm(size: str) -> Any:
    return (
        LstmLanguageModel(words=512, width=32, units=32) if size == "small" else LstmLanguageModel()
    )


def _gpt2(layers: int, heads: int, width: int) -> Callable[[str], Any]:
    def model(size: str) -> Any:
        from transformers import GPT2Config, GPT2LMHeadModel

        if size == "small":
            return GPT2LMHeadModel(
                GPT2Config(
                    vocab_size=512,
                    n_positions=128,
                    n_embd=128,
                    n_layer=3,
                    n_head=4,
                    attn_pdrop=_IN_ATTENTION,
                    bos_token_id=0,
                    eos_token_id=0,
                )
            )
        return GPT2LMHeadModel(
            GPT2Config(n_embd=width, n_layer=layers, n_head=heads, attn_pdrop=_IN_ATTENTION)
        )

    return model


def _bert(size: str) -> Any:
    from transformers import BertConfig, BertForMaskedLM

    if size == "small":
        return BertForMaskedLM(
            BertConfig(
                vocab_size=512,
                hidden_size=128,
                num_hidden_layers=3,
                num_attention_heads=4,
                intermediate_size=512,
                attention_probs_dropout_prob=_IN_ATTENTION,
            )
        )
    return BertForMaskedLM(BertConfig(attention_probs_dropout_prob=_IN_ATTENTION))


def _whisper(size: str) -> Any:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    width, layers, heads, words = (64, 2, 4, 512) if size == "small" else (768, 12, 12, 51865)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    special["decoder_start_token_id"] = 3
    return WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=words,
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            max_source_positions=100 if size == "small" else 1500,
            **special,
        )
    )


def _sounds(batch: int, size: str) -> dict[str, Any]:
    return {
        "sounds": torch.randn(batch, 80, 200 if size == "small" else 3000),
        "words": torch.randint(
            4, 512 if size == "small" else 51865, (batch, 32 if size == "small" else 448)
        ),
    }


def _loss_of_sounds(model: Any, sounds: Any, words: Any) -> Any:
    return model(input_features=sounds, labels=words, use_cache=False).loss


_KINDS: dict[str, _Kind] = {
    "alexnet": _Kind(
        1024,
        lambda size: AlexNet(width=8, hidden=64) if size == "small" else AlexNet(),
        _images,
        _loss_of_classes,
    ),
    "resnet50": _resnet(3, 4, 6, 3),
    "resnet101": _resnet(3, 4, 23, 3),
    "resnet152": _resnet(3, 8, 36, 3),
    "densenet121": _Kind(
        96,
        lambda size: DenseNet(layers=(2, 2), growth=8, width=16) if size == "small" else DenseNet(),
        _images,
        _loss_of_classes,
    ),
    "unet3d": _Kind(
        2,
        lambda size: UNet3d(width=4, levels=3) if size == "small" else UNet3d(),
        _volumes,
        _loss_of_classes,
        small_batch=2,
    ),
    "lstm": _Kind(640, _lstm, _sequences(33278, 36, 36), _loss_of_lstm),
    "gpt2": _Kind(8, _gpt2(12, 12, 768), _sequences(50257, 1024, 128), _loss_of_next_words),
    "gpt2-medium": _Kind(4, _gpt2(24, 16, 1024), _sequences(50257, 1024, 128), _loss_of_next_words),
    "bert": _Kind(32, _bert, _sequences(30522, 512, 128), _loss_of_words),
    "whisper-small": _Kind(8, _whisper, _sounds, _loss_of_sounds),
}
NAMES = tuple(_KINDS)
