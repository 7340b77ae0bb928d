# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Managed embeddings compute what those of torch compute, before and after rows change places."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.torch import ManagedEmbedding, ManagedEmbeddingBag

# torch's sparse tensors say once that their invariants are not checked.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

ROWS, DIM = 30_000, 48  # 5.5 MiB: three blocks, and rows that do not divide a block
SMALL = {"driver": "simulated:64MiB", "hot_bytes": 2 << 20}


def pair(**words: Any) -> tuple[torch.nn.Embedding, ManagedEmbedding]:
    """Return torch's embedding and ours, with the same rows."""
    theirs = torch.nn.Embedding(ROWS, DIM, **words)
    ours = ManagedEmbedding(ROWS, DIM, **words, **SMALL)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def bags(**words: Any) -> tuple[torch.nn.EmbeddingBag, ManagedEmbeddingBag]:
    """Return torch's bag and ours, with the same rows."""
    theirs = torch.nn.EmbeddingBag(ROWS, DIM, **words)
    ours = ManagedEmbeddingBag(ROWS, DIM, **words, **SMALL)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def learnt(ours: Any, *optimizers: torch.optim.Optimizer, ids: torch.Tensor | None = None) -> None:
    """Have a module see some ids of its last block often, and reorder its rows by that."""
    ids = torch.arange(ROWS - 900, ROWS, 3).repeat(4) if ids is None else ids
    with torch.no_grad():
        ours(ids[None])
    assert ours.reorder(*optimizers) > 0


def ids_of(seed: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, ROWS, shape, generator=torch.Generator().manual_seed(seed))


def test_random_rows_are_those_of_torch() -> None:
    torch.manual_seed(5)
    theirs = torch.nn.Embedding(ROWS, DIM, padding_idx=3)
    torch.manual_seed(5)
    ours = ManagedEmbedding(ROWS, DIM, padding_idx=3, **SMALL)
    assert torch.equal(ours.weight, theirs.weight)
    torch.manual_seed(6)
    assert not torch.equal(ManagedEmbedding(ROWS, DIM, **SMALL).weight, theirs.weight)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 99),
    shape=st.sampled_from([(0,), (7,), (3, 5), (2, 3, 4)]),
    padding_idx=st.sampled_from([None, 0, ROWS - 3, -1]),
    sparse=st.booleans(),
    scale=st.booleans(),
    reordered=st.booleans(),
)
def test_embedding_and_its_gradient_are_those_of_torch(
    seed: int,
    shape: tuple[int, ...],
    padding_idx: int | None,
    sparse: bool,
    scale: bool,
    reordered: bool,
) -> None:
    theirs, ours = pair(
        padding_idx=padding_idx, sparse=sparse, scale_grad_by_freq=scale and not sparse
    )
    if reordered:
        learnt(ours)
    ids = ids_of(seed, *shape)
    if ids.numel():
        ids.reshape(-1)[0] = ROWS - 3  # moved by the reordering, and padding in some cases
    factors = torch.rand(*shape, DIM, generator=torch.Generator().manual_seed(seed))
    found, expected = ours(ids), theirs(ids)
    assert torch.equal(found, expected)
    (found * factors).sum().backward()
    (expected * factors).sum().backward()
    grad, wanted = (one.weight.grad.to_dense() for one in (ours, theirs))
    assert torch.allclose(ours.in_id_order(grad), wanted, atol=1e-6)
    by_id = ours.in_id_order(ours.weight.grad)
    assert by_id.is_sparse is sparse
    assert torch.allclose(by_id.to_dense(), wanted, atol=1e-6)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 99),
    mode=st.sampled_from(["sum", "mean", "max"]),
    flat=st.booleans(),
    weighted=st.booleans(),
    last=st.booleans(),
    reordered=st.booleans(),
    kind=st.sampled_from([torch.int32, torch.int64]),
)
def test_bags_and_their_gradients_are_those_of_torch(
    seed: int,
    mode: str,
    flat: bool,
    weighted: bool,
    last: bool,
    reordered: bool,
    kind: torch.dtype,
) -> None:
    last = last and flat
    theirs, ours = bags(mode=mode, sparse=mode != "max", include_last_offset=last, padding_idx=8)
    if reordered:
        learnt(ours)
    ids = ids_of(seed, 20 if flat else 4, *(() if flat else (5,))).to(kind)
    offsets = torch.tensor([0, 3, 3, 9, 20] if last else [0, 3, 3, 9], dtype=kind) if flat else None
    weights = torch.rand(ids.shape) if weighted and mode == "sum" else None
    found, expected = ours(ids, offsets, weights), theirs(ids, offsets, weights)
    assert torch.allclose(found, expected, atol=1e-6)
    found.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    grad, wanted = (one.weight.grad.to_dense() for one in (ours, theirs))
    assert torch.allclose(ours.in_id_order(grad), wanted, atol=1e-5)


@pytest.mark.parametrize("reordered", [False, True])
def test_max_norm_shrinks_the_rows_that_torch_shrinks(reordered: bool) -> None:
    theirs, ours = pair(max_norm=1.0)
    if reordered:
        learnt(ours)
        with torch.no_grad():
            theirs(torch.arange(ROWS - 900, ROWS, 3))
    ids = ids_of(1, 50)
    assert torch.allclose(ours(ids), theirs(ids), atol=1e-6)
    assert torch.allclose(ours.state_dict()["weight"], theirs.weight, atol=1e-6)


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda weights: torch.optim.SGD(weights, lr=0.1),
    "Adagrad": lambda weights: torch.optim.Adagrad(weights, lr=0.1),
    "SparseAdam": lambda weights: torch.optim.SparseAdam(list(weights), lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse_training_with_a_reordering_in_between_is_that_of_torch(name: str) -> None:
    theirs, ours = pair(sparse=True)
    made = [OPTIMIZERS[name](one.parameters()) for one in (theirs, ours)]

    def train(first: int) -> None:
        for step in range(first, first + 4):
            ids = ids_of(step, 64)
            ids[:20] = torch.arange(ROWS - 60, ROWS, 3)
            for module, optimizer in zip((theirs, ours), made, strict=True):
                optimizer.zero_grad()
                module(ids).pow(2).sum().backward()
                optimizer.step()

    train(0)
    made[1].zero_grad()
    learnt(ours, made[1])
    train(4)
    assert torch.allclose(ours.state_dict()["weight"], theirs.weight, atol=1e-6)
    saved, expected = (one.state_dict()["state"].get(0, {}) for one in made)
    assert saved.keys() == expected.keys()
    for key in saved:
        if isinstance(saved[key], torch.Tensor):
            assert torch.allclose(saved[key], expected[key], atol=1e-6), key
    # A checkpoint of torch's optimiser goes on in ours: the state is turned when it is loaded.
    made[1].load_state_dict(copy.deepcopy(made[0].state_dict()))
    train(8)
    assert torch.allclose(ours.state_dict()["weight"], theirs.weight, atol=1e-6)


def test_optimizer_that_is_left_out_of_a_reordering_trains_other_rows() -> None:
    theirs, ours = pair(sparse=True)
    made = [OPTIMIZERS["Adagrad"](one.parameters()) for one in (theirs, ours)]
    ids = torch.arange(ROWS - 60, ROWS, 3)
    for step in range(2):
        for module, optimizer in zip((theirs, ours), made, strict=True):
            optimizer.zero_grad()
            module(ids).pow(2).sum().backward()
            optimizer.step()
        made[1].zero_grad()
        if step == 0:
            learnt(ours)  # the twin: its sums stay where other rows are now
    assert not torch.allclose(ours.state_dict()["weight"], theirs.weight, atol=1e-6)


def test_foreign_optimizer_and_pending_gradient_are_refused_by_reorder() -> None:
    ours = ManagedEmbedding(8, 4, sparse=True, **SMALL)
    other = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    with pytest.raises(DataError, match="SGD does not have this embedding's weight"):
        ours.reorder(other)
    ours(torch.tensor([1])).sum().backward()
    with pytest.raises(DataError, match="call zero_grad"):
        ours.reorder()


# --- saving and loading ------------------------------------------------------------------------


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("assign", [False, True])
def test_state_goes_to_an_embedding_of_torch_and_back(reordered: bool, assign: bool) -> None:
    ours = ManagedEmbedding(ROWS, DIM, **SMALL)
    before = ours.weight.detach().clone()
    if reordered:
        learnt(ours)
        assert not torch.equal(ours.weight, before)
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    theirs = torch.nn.Embedding(ROWS, DIM)
    theirs.load_state_dict(torch.load(file))
    assert torch.equal(theirs.weight, before)
    with torch.no_grad():
        theirs.weight.mul_(2)
    parameter = ours.weight
    ours.load_state_dict(theirs.state_dict(), assign=assign)
    assert ours.weight is parameter
    ids = torch.tensor([0, 5, ROWS - 3])
    assert torch.equal(ours(ids), before[ids] * 2)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "Missing key"),
        ({"weight": torch.zeros(3, 4)}, "size mismatch for weight"),
        ({"weight": torch.zeros(8, 4), "more": torch.zeros(1)}, "Unexpected key"),
    ],
)
def test_state_that_does_not_fit_is_refused_in_the_words_of_torch(
    state: dict[str, Any], message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        ManagedEmbedding(8, 4, **SMALL).load_state_dict(state)


def test_pretrained_rows_are_taken_and_frozen() -> None:
    rows = torch.rand(9, 4)
    ours = ManagedEmbedding(9, 4, _weight=rows, _freeze=True, **SMALL)
    assert torch.equal(ours.weight, rows)
    assert not ours.weight.requires_grad
    with pytest.raises(ConfigurationError, match=r"_weight has the shape \(9, 4\): expected"):
        ManagedEmbedding(9, 5, _weight=rows, **SMALL)


def test_from_pretrained_uses_the_device_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    rows = torch.rand(9, 4)
    for kind in (ManagedEmbedding, ManagedEmbeddingBag):
        ours = kind.from_pretrained(rows, freeze=True)
        assert torch.equal(ours.weight, rows)
        assert not ours.weight.requires_grad
        assert torch.equal(kind.from_pretrained(rows, freeze=False).weight, rows)


def test_module_that_is_copied_or_pickled_is_refused() -> None:
    ours = ManagedEmbedding(8, 4, **SMALL)
    for attempt in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(DataError, match="save its state_dict"):
            attempt(ours)


# --- other places and types --------------------------------------------------------------------


@pytest.mark.parametrize("reordered", [False, True])
def test_change_of_dtype_keeps_rows_parameter_and_order(reordered: bool) -> None:
    theirs, ours = pair()
    if reordered:
        learnt(ours)
    model, parameter = torch.nn.Sequential(ours), ours.weight
    ids = torch.tensor([0, 5, ROWS - 3])
    model.bfloat16()
    assert ours.weight is parameter
    assert torch.equal(ours(ids), theirs(ids).bfloat16())
    model.to(torch.float64)
    assert torch.equal(ours(ids), theirs(ids).bfloat16().double())
    assert ours.to("cpu") is ours  # where it is already


def test_parameters_of_a_subclass_follow_and_grad_too() -> None:
    class Scaled(ManagedEmbedding):
        def __init__(self) -> None:
            super().__init__(8, 4, **SMALL)
            self.scale = torch.nn.Parameter(torch.ones(4))

    ours = Scaled()
    (ours(torch.tensor([1])) * ours.scale).sum().backward()
    ours.half()
    kinds = {one.dtype for one in (ours.weight, ours.scale, ours.weight.grad, ours.scale.grad)}
    assert kinds == {torch.float16}


def test_other_device_is_refused_and_nothing_changes() -> None:
    ours = ManagedEmbedding(8, 4, **SMALL)
    before = ours.weight.detach().clone()
    with pytest.raises(ConfigurationError, match="cannot go to meta: its rows are in managed"):
        ours.to("meta")
    with pytest.raises(ConfigurationError, match="device='cuda:0': the pool is of simulated"):
        ManagedEmbedding(8, 4, device="cuda:0", **SMALL)
    assert torch.equal(ours.weight, before)


def test_weight_that_is_replaced_is_refused_and_one_that_is_written_is_used() -> None:
    ours = ManagedEmbedding(8, 4, **SMALL)
    torch.nn.init.ones_(ours.weight)
    assert torch.equal(ours(torch.tensor([1])), torch.ones(1, 4))
    ours.weight = torch.nn.Parameter(torch.zeros(8, 4))
    with pytest.raises(DataError, match="the weight of this embedding was replaced"):
        ours(torch.tensor([1]))


def test_default_device_of_torch_is_that_of_other_tensors() -> None:
    ours = ManagedEmbedding(ROWS, DIM, sparse=True, **SMALL)
    theirs = torch.nn.Embedding(ROWS, DIM, sparse=True)
    theirs.load_state_dict(ours.state_dict())
    ids = ids_of(1, 20)
    with torch.device("meta"):  # stands for any that is not the host
        learnt(ours, ids=torch.arange(ROWS - 900, ROWS, 3, device="cpu").repeat(4))
        ours(ids).sum().backward()
        state, grad = ours.state_dict(), ours.in_id_order(ours.weight.grad)
        ours.place()
    theirs(ids).sum().backward()
    assert state["weight"].device.type == grad.device.type == "cpu"
    assert torch.equal(state["weight"], theirs.weight)
    assert torch.equal(grad.to_dense(), theirs.weight.grad.to_dense())
