# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What of torch and of its neighbours works while uses are announced: the table of training.md."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import transformers
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import rmm_uvm.torch

from ...support.announced_uses import announcing, autograd
from ...support.fake_torch_cuda import FakeTorchCuda
from ...support.late_streams import LateStreams
from .test_torch_memory import make_pool

MIB = 1 << 20
pytestmark = pytest.mark.filterwarnings("default")  # of transformers and of torch


def tiny_gpt2() -> Any:
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0,
            eos_token_id=0,
        )
    )  # fmt: skip


def train(folder: Path) -> tuple[list[float], int]:
    """Train by the Trainer of Hugging Face; return the losses and the steps."""
    rows = [{"input_ids": list(range(i, i + 8)), "labels": list(range(i, i + 8))} for i in range(8)]
    trainer = transformers.Trainer(
        model=tiny_gpt2(),
        args=transformers.TrainingArguments(
            output_dir=str(folder),
            max_steps=4,
            per_device_train_batch_size=2,
            gradient_accumulation_steps=2,
            gradient_checkpointing=True,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=3,
        ),
        train_dataset=rows,
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return losses, trainer.state.global_step


def test_trainer_of_hugging_face_trains_as_without(tmp_path: Path) -> None:
    expected = train(tmp_path)
    with announcing() as announced:
        assert train(tmp_path) == expected
        assert announced.steps == 4
        assert announced.measured
        assert autograd._top_saved_tensors_default_hooks(True) is None
    assert len(expected[0]) == 4


def test_generate_gives_what_it_gives_without_and_keeps_nothing() -> None:
    model = tiny_gpt2().eval()
    ids = torch.tensor([[1, 2, 3]])

    def generated() -> torch.Tensor:
        found: torch.Tensor = model.generate(ids, max_new_tokens=5, do_sample=False, pad_token_id=0)
        return found

    expected = generated()
    with announcing() as announced:
        announced.name(model)
        assert torch.equal(generated(), expected)
        layers = [group for group in announced.named() if group[0].endswith("c_fc.weight")]
        new_tokens = expected.shape[1] - ids.shape[1]
        assert len(layers) == 2 * new_tokens  # each layer for each token
        assert not announced.measured


# Row of the table, and the tests that say so.
ROWS = {
    "`rmm-uvm run --torch`": "test_torch_run::test_program_past_the_budget_is_told",
    "exceptions and interrupts": "test_torch_uses::test_step_after_one_that_failed",
    '`evict="activations"`': "test_torch_pinned_state::test_state_of_an_optimiser_is_pinned",
    "gradient accumulation": "test_torch_uses_as_without::test_double_backward",
    "`eval` under": "test_torch_programs::test_generate",
    "activation checkpointing": "test_torch_uses::test_checkpointing_recomputes",
    "hooks of the program": "test_torch_uses::test_save_on_cpu",
    "`torch.func`": "test_torch_uses_as_without::test_functional_transform_within",
    "Hugging Face": "test_torch_programs::test_trainer_of_hugging_face",
    "DDP": "test_torch_programs::test_process_group_counts_as_several",
    "`torch.compile`": "test_torch_uses_as_without::test_compiled_model",
    "CUDA graphs": "test_torch_memory::test_cuda_graph_is_refused",
    "a second install": "test_torch_memory::test_second_install",
    "parameters that the program moves": "test_torch_programs::test_parameters_that_were_moved",
    "workers of a": "test_torch_uses_as_without::test_workers_of_a_data_loader",
    "tensors without memory": "test_torch_programs::test_tensor_without_memory",
    "copying and pickling": "test_torch_uses_as_without::test_modules_are_copied",
    "out of host memory": "test_torch_programs::test_memory_that_the_host_cannot_hold",
}

# What a row says, by tests on a GPU: with kernels, and with libraries that are there only.
ON_A_GPU = {
    "`rmm-uvm run --torch`": "test_torch_programs::test_program_under_run_torch_has_its_losses",
    '`evict="activations"`': "test_torch_programs::test_model_of_which_activations_leave_alone",
    "`eval` under": "test_torch_programs::test_generate_past_the_budget",
    "activation checkpointing": "test_torch_programs::test_checkpointed_model_past_the_budget",
    "Hugging Face": "test_torch_programs::test_trainer_of_hugging_face_past_the_budget",
    "DDP": "test_torch_programs::test_ranks_past_their_budgets_on_two_gpus",
    "`torch.compile`": "test_torch_programs::test_compiled_model_past_the_budget",
}


def test_every_row_of_the_document_has_its_test() -> None:
    here = Path(__file__).resolve()
    document = (here.parents[3] / "docs" / "use" / "training.md").read_text()
    table = document.partition("## What works")[2].partition("\n\nLosses")[0]
    rows = [line[2:] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(ROWS)
    for row, (begins, test) in zip(rows, ROWS.items(), strict=True):
        assert row.startswith(begins)
        file, name = test.split("::")
        assert f"\ndef {name}" in (here.parent / f"{file}.py").read_text()
    assert set(ON_A_GPU) <= set(ROWS)
    for test in ON_A_GPU.values():
        file, name = test.split("::")
        assert f"\ndef {name}" in (here.parents[2] / "gpu" / f"{file}.py").read_text()


@contextmanager
def group_of_one() -> Iterator[None]:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()
        gc.collect()


@pytest.fixture(scope="module")
def started_gloo() -> None:
    """Have its thread and its descriptors, which stay, there before a test looks."""
    with group_of_one():
        DistributedDataParallel(nn.Linear(1, 1))


@pytest.fixture
def process_group(started_gloo: None) -> Iterator[None]:
    with group_of_one():
        yield


@pytest.mark.usefixtures("process_group")
def test_distributed_data_parallel_trains_as_without() -> None:
    def gradients() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(3, 8)).sum().backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in model.parameters()]

    expected = gradients()
    with announcing() as announced:
        found = gradients()
        assert announced.steps == 2
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.usefixtures("process_group")
def test_process_group_counts_as_several_streams(cuda: FakeTorchCuda) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        assert memory.acting
        for address in kept:
            cuda.free(address)
        statistics = memory.statistics()
        assert statistics["segments"]["unfenced"] == 3
        assert statistics["residency"]["dropped_bytes"] == 0


def test_looking_for_streams_asks_no_proxy_what_it_is(cuda: FakeTorchCuda) -> None:
    asked: list[str] = []

    class Proxy:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            asked.append("class")
            return torch.cuda.Stream

    proxy = Proxy()
    with rmm_uvm.torch.managed(mr=make_pool(64)) as memory:
        kept = [cuda.allocate(30 * MIB) for _ in range(3)]
        assert memory.acting
        cuda.free(kept[0])
        assert memory.statistics()["segments"]["unfenced"] == 0
    assert type(proxy) is Proxy
    assert not asked


@pytest.mark.parametrize(
    "move",
    [
        lambda model: model.to(torch.float64),
        lambda model: model.to("meta").to_empty(device="cpu"),
        lambda model: model.cpu(),
    ],
)
def test_parameters_that_were_moved_are_announced_where_they_are(
    move: Callable[[nn.Module], nn.Module],
) -> None:
    model: nn.Module = nn.Linear(8, 8)
    with announcing() as announced:
        model(torch.ones(1, 8))
        model = move(model)
        announced.groups.clear()
        announced.names.clear()
        announced.name(model)
        model(torch.ones(1, 8, dtype=next(model.parameters()).dtype))
        assert announced.named()[0] == ("weight", "bias")


def test_tensor_without_memory_of_its_own_is_passed_over(
    recwarn: pytest.WarningsRecorder,
) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from rmm_uvm.torch.extents import extents_of

    with FakeTensorMode():
        fake = torch.empty(4 * MIB, device="cuda")
    assert fake.is_cuda
    assert extents_of([fake, torch.empty(4 * MIB, device="meta"), None]) == []
    assert [str(each.message) for each in recwarn] == []


def test_memory_that_the_host_cannot_hold_is_torchs_error_and_the_next_step_works(
    cuda: FakeTorchCuda,
) -> None:
    with rmm_uvm.torch.managed(mr=make_pool(64), maximum="96MiB") as memory:
        kept = cuda.allocate(60 * MIB)
        with pytest.raises(torch.OutOfMemoryError):
            cuda.allocate(60 * MIB)
        assert memory.statistics()["last_refusal"]
        cuda.free(kept)
        torch.cuda.empty_cache()
        assert cuda.allocate(60 * MIB)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("activations", ["migrate", "copy"])
def test_install_and_close_a_hundred_times_leaves_nothing(
    cuda: FakeTorchCuda, activations: Literal["migrate", "copy"], monkeypatch: pytest.MonkeyPatch
) -> None:
    import weakref

    from torch.cuda import _gpu_trace

    from ...support.announced_uses import hooks_there

    registries = (
        _gpu_trace.MemoryAllocationCallbacks,
        _gpu_trace.MemoryDeallocationCallbacks,
        _gpu_trace.StreamCreationCallbacks,
        _gpu_trace.EventWaitCallbacks,
    )

    def there() -> tuple[object, ...]:
        callbacks = [list(one.callback_list) for one in registries]
        return (*hooks_there(), callbacks, torch.cuda.CUDAGraph.capture_begin)

    monkeypatch.setattr("rmm_uvm.torch.memory.CudaSideStreams", lambda *_: LateStreams())
    before = there()
    gone: list[weakref.ref[Any]] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            memory = rmm_uvm.torch.install(mr=make_pool(64), activations=activations)
            addresses = [cuda.allocate(30 * MIB) for _ in range(3)]
            assert memory.acting
            assert (memory.statistics()["activations"] is None) == (activations == "migrate")
            model = nn.Linear(8, 8)
            loss = model(torch.ones(1, 8)).sum()
            memory.close()
            loss.backward()
            for address in addresses:
                cuda.free(address)
            cuda.empty_cache()
            gone += [weakref.ref(memory), weakref.ref(model)]
            del memory, model, loss
        assert not [one for one in gone if one() is not None]  # without looking for cycles
    finally:
        gc.enable()
    assert there() == before
    assert cuda.released == 100
