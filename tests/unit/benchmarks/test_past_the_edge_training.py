# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training by the protocol: the networks, a program's operations, and the sides of torch."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rmm
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.integrations import Wiring

from ...support.fake_torch_cuda import FakeTorchCuda
from .scripts import script

loop = script("benchmarks", "past_the_edge/run")
swin = script("benchmarks", "past_the_edge/programs/swin")
graphsage = script("benchmarks", "past_the_edge/programs/graphsage")
training = script("benchmarks", "past_the_edge/programs/training")
by_hand = script("benchmarks", "past_the_edge/programs/training_by_hand")
sides = script("benchmarks", "common/past_the_edge/sides")
memory = script("benchmarks", "common/past_the_edge/memory")

MIB = 1 << 20


class SmallSwin(training.SwinTraining):  # type: ignore[misc, name-defined]
    """Two stages of 8 x 8 and 4 x 4 tokens, in windows of 4 x 4."""

    DEVICE = "cpu"

    def network(self, _data_bytes: int) -> tuple[Any, Any]:
        model = swin.Swin(width=16, depths=(2, 2), heads=(2, 4), side=32, window=4, classes=10)
        return self.classes_of(model, torch.randn(4, 3, 32, 32), torch.randint(10, (4,)))


class SmallSage(training.SageTraining):  # type: ignore[misc, name-defined]
    """A hundred nodes."""

    DEVICE = "cpu"


def test_swin_b_has_the_parameters_of_the_paper() -> None:
    with torch.device("meta"):
        model = swin.Swin()

    assert sum(each.numel() for each in model.parameters()) == 87_768_224


@pytest.mark.parametrize("shifted", [False, True])
def test_tokens_see_those_of_their_window_and_no_other_edge(shifted: bool) -> None:
    torch.manual_seed(1)
    block = swin._Block(8, 2, side=8, window=4, shifted=shifted)
    image = torch.randn(1, 8, 8, 8, requires_grad=True)

    def sees(row: int, column: int) -> set[tuple[int, int]]:
        (found,) = torch.autograd.grad(block(image)[0, row, column].sum(), image)
        return {(int(a), int(b)) for a, b in (found[0].abs().amax(-1) > 1e-12).nonzero()}

    edge = {(a, b) for a in range(2) for b in range(2)}
    corner = {(a, b) for a in range(4) for b in range(4)}
    middle = {(a, b) for a in range(2, 6) for b in range(2, 6)}
    # Without a shift four windows; with one the middle is a window, and each corner its own.
    assert sees(0, 0) == (edge if shifted else corner)
    assert sees(3, 3) == (middle if shifted else corner)


def test_bias_of_two_tokens_is_that_of_their_difference() -> None:
    attention = swin._Attention(8, 2, window=3)
    index = attention.index.view(3, 3, 3, 3)

    assert len(index.unique()) == 25
    assert index[0, 0, 1, 2] == index[1, 0, 2, 2] != index[1, 2, 0, 0]


def test_layer_of_graphsage_takes_the_mean_of_neighbors() -> None:
    torch.manual_seed(2)
    graph = graphsage.Graph(20, 60)
    layer = graphsage._Layer(graph, 4, 3)
    nodes = torch.randn(20, 4)

    means = torch.zeros(20, 4)
    for node in range(20):
        sources = graph.sources[graph.targets == node]
        means[node] = nodes[sources].mean(0) if len(sources) else 0
    torch.testing.assert_close(layer(nodes), layer.neighbors(means) + layer.own(nodes))


def trained(kind: type[Any], rounds: int, *, announced: bool = False) -> list[list[int]]:
    program = kind(0, 2, announced=announced)
    program.make()
    told = [[program.operation(each) for each in range(program.operations)] for _ in range(rounds)]
    model = weakref.ref(program._model)
    program.drop()
    gc.collect()
    assert model() is None
    assert not torch.are_deterministic_algorithms_enabled()
    return told


@pytest.mark.parametrize("kind", [SmallSwin, SmallSage])
def test_losses_fall_and_are_the_same_in_each_run(kind: type[Any]) -> None:
    first, second = trained(kind, 5), trained(kind, 5)

    assert first == second
    assert [len(one) for one in first] == [6] * 5
    losses = torch.tensor([[one[2], one[5]] for one in first], dtype=torch.int32).flatten()
    losses = losses.view(torch.float32)
    assert losses.isfinite().all()
    assert losses[-3:].mean() < losses[:3].mean()


def test_uses_are_announced_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    begin = rmm_uvm.torch.announcements.Uses.begin

    def noted(uses: Any) -> None:
        begun.append(uses)
        begin(uses)

    monkeypatch.setattr(rmm_uvm.torch.announcements.Uses, "begin", noted)
    with rmm_uvm.reinitialize(
        "32MiB", driver="simulated:64MiB", device_budget="32MiB", libraries=(), monitor=False
    ):
        announced = trained(SmallSwin, 1, announced=True)

    assert [uses.steps for uses in begun] == [2]
    assert announced == trained(SmallSwin, 1)


@pytest.mark.parametrize(
    ("kind", "data_bytes"), [(training.SwinTraining, 2 << 30), (training.SageTraining, 1 << 30)]
)
def test_what_lives_at_the_peak_is_about_the_data(
    kind: type[Any], data_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "DEVICE", "cpu")
    monkeypatch.setattr(training, "bits_of", lambda _: 0)
    monkeypatch.setattr(torch.Tensor, "item", lambda _: 0.0)  # fake tensors have no number
    program = kind(data_bytes, 1)
    with FakeTensorMode(), rmm_uvm.torch.recorded() as recording:
        program.make()
        program._loss = torch.zeros(())
        for parameter in program._model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        for number in (2, 0, 1):  # moments come with the first step of the optimiser
            program.operation(number)
    program.drop()

    # The rest is what kernels of a GPU take within themselves, and what of an image is left.
    assert 0.9 * data_bytes < recording.peak_bytes < data_bytes


@pytest.mark.parametrize("fewest", [0, 3, 6])
def test_by_hand_as_few_blocks_are_checkpointed_as_fit(
    fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    run_again: list[int] = []

    class Refusing(SmallSwin):
        """Fits where enough blocks are checkpointed."""

        def operation(self, number: int) -> int:
            run_again.append(sum("forward" in vars(each) for each in self._model.modules()))
            if run_again[-1] < fewest:
                raise RuntimeError("CUDA out of memory")
            return int(super().operation(number))

    program = by_hand.checkpointed(Refusing, 0, 2, 0)
    program.make()
    assert program.operation(0) == 0
    assert run_again[-1] == fewest
    program.drop()


@pytest.mark.parametrize("kind", [SmallSwin, SmallSage])
@pytest.mark.parametrize("way", ["checkpointed", "saved_on_cpu"])
def test_by_hand_losses_are_the_same(
    kind: type[Any], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(
        torch.autograd.graph,
        "save_on_cpu",
        lambda **_: torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda kept: kept),
    )

    def made(data_bytes: int, pieces: int, *, announced: bool = False) -> Any:
        assert not announced
        return getattr(by_hand, way)(kind, data_bytes, pieces, 0)

    assert trained(made, 2) == trained(kind, 2)


def test_longer_lists_of_parts_are_the_blocks() -> None:
    with torch.device("meta"):
        model = swin.Swin()
    kinds = [type(each).__name__ for each in by_hand.blocks_of(model)]
    assert kinds.count("_Block") == 24
    stages = torch.nn.Sequential(
        *(
            torch.nn.Sequential(
                *(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()) for _ in range(5))
            )
            for _ in range(3)
        )
    )
    assert len(by_hand.blocks_of(torch.nn.Sequential(stages))) == 15


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTorchCuda]:
    fake = FakeTorchCuda()
    fake.install(monkeypatch)
    yield fake
    installed = rmm_uvm.torch.installed_memory(0)
    if installed is not None:
        installed.close()


@pytest.mark.parametrize("name", ["lazy", "copies", "automatic"])
def test_torchs_own_allocator_has_the_budget_and_is_given_back_whole(
    name: str, cuda: FakeTorchCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = rmm_uvm.simulated_device("256MiB")
    monkeypatch.setattr(rmm_uvm.torch.memory, "choose_driver", lambda *_: device)
    free_bytes = device.memory()[0]
    of_side, give_back = sides.open_memory(sides.SIDES[name], device, 64 * MIB, 96 * MIB)

    assert of_side.residency.residency()["budget_bytes"] == 64 * MIB
    address, dead = cuda.allocate(8 * MIB), cuda.allocate(4 * MIB)
    cuda.free(dead)
    assert of_side.live.ranges() == [(address, 8 * MIB)]
    assert of_side.sample().live_bytes == 8 * MIB
    statistics = {"activations": {"away_bytes": 5 * MIB}}
    monkeypatch.setattr(rmm_uvm.torch.TorchMemory, "statistics", lambda _: statistics)
    assert of_side.sample().live_bytes == 13 * MIB
    cuda.free(address)
    of_side.close()
    assert memory.beside_bytes(device, free_bytes, give_back) == (0, "")


def test_memory_of_torchs_own_is_not_managed(monkeypatch: pytest.MonkeyPatch) -> None:
    block = {"address": 4096, "size": 512, "state": "active_allocated"}
    own = {"device": 0, "segment_pool_id": (0, 0), "blocks": [block]}
    other = {**own, "segment_pool_id": (0, 1), "blocks": [{**block, "address": 8192}]}
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [own, other])

    assert memory.TorchAllocations(0, int).ranges() == [(8192, 512)]


def test_torch_warms_up_through_rmm_on_memory_of_no_side(monkeypatch: pytest.MonkeyPatch) -> None:
    device = rmm_uvm.simulated_device("256MiB")
    free_bytes = device.memory()[0]
    wired: list[str] = []

    def wire(library: str) -> Wiring:
        wired.append(library)
        return Wiring(library, active=True, reason="")

    monkeypatch.setattr(sides, "wire", wire)
    upstream = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    monkeypatch.setattr(rmm.mr, "CudaMemoryResource", lambda: upstream)
    before = rmm.mr.get_per_device_resource(0)
    with sides.warming_torch_up(sides.RESIDENT, device, 64 * MIB + 1):
        pool = rmm.mr.get_per_device_resource(0)
        pool.deallocate(pool.allocate(MIB), MIB)
        del pool
    with sides.warming_torch_up(sides.COPIES, device, 64 * MIB):
        assert rmm.mr.get_per_device_resource(0) is before

    assert wired == ["torch"]
    assert rmm.mr.get_per_device_resource(0) is before
    assert device.memory()[0] == free_bytes


def test_torch_that_cannot_be_wired_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Wiring("torch", active=False, reason="torch sees no GPU")
    monkeypatch.setattr(sides, "wire", lambda _: told)
    device = rmm_uvm.simulated_device("64MiB")

    with (
        pytest.raises(SystemExit, match="torch sees no GPU"),
        sides.warming_torch_up(sides.DEFAULT, device, MIB),
    ):
        pass


def test_sides_of_torch_are_for_programs_of_torch(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--program cudf is none of torch's: swin-b, graphsage"):
        loop.main(["--sides", "lazy,resident", "--json", str(tmp_path / "a")])
