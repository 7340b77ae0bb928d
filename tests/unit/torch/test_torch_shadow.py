# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""torch computes on the CPU, and its memory is shadowed on a simulated device."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import rmm_uvm.torch
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.planner.trials.replaying import replay
from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import load_machine
from rmm_uvm.torch import recorded, simulated
from rmm_uvm.torch.shadow.program import Free, Given, Kernel, Make

from ...support.shadow_rounds import rounds_of

MIB = 1 << 20


def network(width: int = 256) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
    )


def step_of(model: Any, rows: int = 64) -> Callable[[], float]:
    """Return a training step that returns the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    data = torch.randn(rows, model[0].in_features, generator=torch.Generator().manual_seed(1))

    def step() -> float:
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


@pytest.fixture
def anything() -> Iterator[rmm_uvm.torch.Program]:
    with recorded() as program:
        yield program


def test_allocation_of_a_tensor_lives_exactly_as_long_as_its_storage() -> None:
    with simulated("64MiB") as shadow:
        tensor = torch.ones(MIB)
        view = tensor.view(2, -1)[1]
        assert shadow.statistics().live_bytes == 4 * MIB
        del tensor
        assert shadow.statistics().live_bytes == 4 * MIB
        del view
        assert shadow.statistics().live_bytes == 0


def test_storage_that_only_autograd_saves_lives_until_backward() -> None:
    with simulated("64MiB") as shadow:
        leaf = torch.ones(MIB, requires_grad=True)
        total = leaf.exp().sum()  # exp saves its result, which no variable holds
        assert shadow.statistics().live_bytes == 8 * MIB + 4
        total.backward()
        assert leaf.grad is not None
        assert (
            shadow.statistics().live_bytes == 8 * MIB + 4
        )  # its gradient in place of exp's result
        del total
        assert shadow.statistics().live_bytes == 8 * MIB


def test_in_place_operators_and_views_allocate_nothing(anything: rmm_uvm.torch.Program) -> None:
    tensor = torch.ones(MIB)
    before = len(anything.events)
    tensor.add_(1).mul_(2).view(4, -1).t()
    added = anything.events[before:]
    assert [type(event) for event in added] == [Kernel, Kernel]
    assert [use.writes for event in added for use in event.uses] == [True, True]


def test_use_of_a_part_covers_that_part_alone(anything: rmm_uvm.torch.Program) -> None:
    tensor = torch.ones(1024, 1024)
    tensor[256:512].sum()
    read = anything.events[-1].uses[0]
    assert (read.first_byte, read.nbytes, read.writes) == (MIB, MIB, False)


def test_tensor_made_before_is_given_when_first_used() -> None:
    tensor = torch.ones(MIB)
    with recorded() as program:
        tensor.sum()
    assert [type(event) for event in program.events[:2]] == [Make, Given]
    assert program.events[1].use.nbytes == 4 * MIB
    kernel = program.events[-2 if isinstance(program.events[-1], Free) else -1]
    assert [use.fresh for use in kernel.uses] == [False, True]


def test_memory_that_is_only_made_room_for_is_no_kernel(anything: rmm_uvm.torch.Program) -> None:
    kept = torch.empty(MIB)
    assert anything.events == [Make(0, kept.nbytes)]


def test_lists_of_an_optimizer_are_a_kernel_for_each_tensor() -> None:
    model = network()
    step = step_of(model)
    with recorded() as program:
        step()
    of_optimizer = [
        event
        for event in program.events
        if isinstance(event, Kernel) and sum(use.writes for use in event.uses) >= 3
    ]
    assert len(of_optimizer) == len(list(model.parameters()))


def test_backward_and_optimizer_are_shadowed_and_the_losses_are_the_same() -> None:
    plain = step_of(network())
    expected = [plain() for _ in range(3)]
    step = step_of(network())
    with simulated("8MiB", device_budget=8 * MIB) as shadow:
        assert [step() for _ in range(3)] == expected
        parameters = 4 * (2 * 4 * 256 * 256 + 5 * 256)
        # Parameters, gradients, two moments.
        assert shadow.statistics().live_bytes >= 4 * parameters


def test_step_that_fits_moves_nothing_and_one_that_does_not_moves() -> None:
    took = []
    for size in ("256MiB", "8MiB"):
        step = step_of(network(512))
        with simulated(size) as shadow:
            step()
            first = shadow.statistics()
            step()
            took.append(shadow.statistics().since(first))
    fits, does_not = took
    assert (fits.to_device_bytes, fits.to_host_bytes, fits.hit_rate) == (0, 0, 1.0)
    assert fits.seconds == pytest.approx(fits.compute_seconds, rel=0.5)
    assert does_not.to_device_bytes > 0
    assert does_not.hit_rate < 1
    assert does_not.seconds > 2 * fits.seconds
    assert fits.kernels == does_not.kernels
    assert 0 < fits.mean_used_bytes < fits.most_used_bytes < fits.peak_bytes


def test_budget_that_knows_the_order_is_faster_than_page_faults() -> None:
    seconds = []
    for settings in ({"prefetch": "never"}, {"device_budget": 16 * MIB, "policy": "repeat"}):
        step = step_of(network(512))
        with simulated("20MiB", **settings) as shadow:  # type: ignore[arg-type]
            step()
            step()
            first = shadow.statistics()
            step()
            seconds.append(shadow.statistics().since(first).seconds)
    assert seconds[1] < seconds[0]


def test_same_program_takes_the_same_at_every_run() -> None:
    def took() -> Any:
        step = step_of(network(512))
        with simulated("16MiB", device_budget=8 * MIB) as shadow:
            step()
            step()
        return shadow.statistics()

    assert took() == took()


def test_no_tensor_lives_longer_than_without_a_shadow() -> None:
    with simulated("64MiB") as shadow:
        model = network()
        step = step_of(model)
        step()
        watched = [weakref.ref(one) for one in model.parameters()]
        del model, step
        gc.collect()
        assert [one() for one in watched] == [None] * len(watched)
        assert shadow.statistics().live_bytes == 0


def test_tensors_outlive_the_shadow_and_their_death_is_no_business_of_it() -> None:
    with simulated("64MiB") as shadow:
        kept = torch.arange(MIB)
    assert shadow.statistics().live_bytes == 8 * MIB
    assert int(kept[-1]) == MIB - 1
    assert shadow.memory.mr.get_allocated_bytes() == 0
    del kept
    assert shadow.memory.mr.get_allocated_bytes() == 0


def test_exception_in_the_middle_of_a_step_leaves_nothing_allocated() -> None:
    model = network()
    with simulated("64MiB") as shadow:
        step = step_of(model)
        step()
        before = shadow.statistics().live_bytes
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.ones(8, 7))
        assert shadow.statistics().live_bytes == before
        step()
        assert shadow.statistics().live_bytes == before


def test_pool_that_cannot_grow_raises_in_the_operator_and_is_usable_afterwards() -> None:
    with simulated("16MiB") as shadow:
        kept = torch.ones(MIB)
        shadow.memory.device.fail_call("allocate_managed", "out_of_memory")
        with pytest.raises(MemoryError):
            torch.ones(8 * MIB)
        assert shadow.statistics().live_bytes == 4 * MIB
        assert int((kept + torch.ones(8 * MIB)[:MIB]).sum()) == 2 * MIB
        assert shadow.statistics().live_bytes == 4 * MIB


def test_exception_that_leaves_the_context_ends_shadowing() -> None:
    def fail() -> None:
        with simulated("64MiB") as shadow:
            shadows.append(shadow)
            torch.ones(MIB)
            raise KeyError

    shadows: list[Any] = []
    with pytest.raises(KeyError):
        fail()
    kernels = shadows[0].statistics().kernels
    torch.ones(MIB)
    assert shadows[0].statistics().kernels == kernels == 1
    assert shadows[0].memory.mr.get_allocated_bytes() == 0


def test_storage_that_is_resized_is_allocated_anew() -> None:
    with simulated("64MiB") as shadow:
        tensor = torch.ones(MIB)
        tensor.resize_(2 * MIB).fill_(1)
        assert shadow.statistics().live_bytes == 8 * MIB
        tensor.resize_(0).untyped_storage().resize_(0)
        tensor.fill_(1)
        assert shadow.statistics().live_bytes == 0


def test_storage_that_dies_in_another_thread_is_freed() -> None:
    with simulated("64MiB") as shadow:
        box = [torch.ones(MIB)]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        assert shadow.statistics().live_bytes == 0


def test_sparse_tensors_pass_unseen() -> None:
    with simulated("64MiB"):
        indices = torch.tensor([[0, 1], [1, 0]])
        sparse = torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2), check_invariants=True)
        assert torch.equal(torch.mm(sparse, torch.eye(2)), torch.eye(2).flip(0))


def test_recording_replayed_takes_what_the_program_itself_took() -> None:
    step = step_of(network(512))
    with recorded() as program:
        step()
        step()
    again = step_of(network(512))
    with simulated("16MiB", device_budget=8 * MIB) as shadow:
        again()
        again()
    took = shadow.statistics()
    card = ShadowDevice(16 * MIB, load_machine("h200-pcie5"), Budget(8 * MIB))
    program.replay(card)
    replayed = card.statistics()
    for name in ("kernels", "to_device_bytes", "to_host_bytes", "live_bytes", "peak_bytes"):
        assert getattr(replayed, name) == getattr(took, name), name
    assert program.peak_bytes == took.peak_bytes
    assert sum(isinstance(event, Free) for event in program.events) > 0


@pytest.mark.parametrize("kernel_seconds", [0.02, 0.0])
def test_what_is_fetched_ahead_hides_behind_kernels_that_are_long_enough(
    kernel_seconds: float,
) -> None:
    machine = load_machine("h200-pcie5")

    def round_of(*, ahead: bool) -> ShadowStatistics:
        program = rounds_of(kernel_seconds, tensors=12, rounds=8)
        budget = Budget(32 * MIB, ahead=ahead, ahead_bytes=8 * MIB)
        card = ShadowDevice(44 * MIB, machine, budget)
        go_on = program.replayer(card)
        go_on(0, program.marks[5])
        before = card.statistics()
        go_on(program.marks[5], program.marks[6])
        return card.statistics().since(before)

    for ahead in (False, True):
        took = round_of(ahead=ahead)
        assert took.hit_rate == 1.0 if ahead else took.hit_rate < 1.0
        waited_ns = (took.seconds - took.compute_seconds) * 1e9
        assert took.to_host_bytes >= 16 * MIB
        link_ns = took.to_host_bytes / machine.to_host_bytes_per_ns
        if ahead and kernel_seconds:
            assert waited_ns < 1e3
        else:
            assert waited_ns > link_ns  # nothing to hide it behind


def test_recording_on_fake_tensors_is_that_of_real_ones() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def events() -> list[Any]:
        optimizer_step = torch.optim.AdamW
        model = torch.nn.Linear(256, 256)
        optimizer = optimizer_step(model.parameters(), fused=True)
        data = torch.ones(64, 256)
        with recorded() as program:
            model(data).square().mean().backward()
            optimizer.step()
        return program.events

    with FakeTensorMode():
        fake = events()
    assert fake == events()


def test_trace_of_a_step_can_be_planned_with(tmp_path: Path) -> None:
    step = step_of(network(512))
    with simulated("64MiB", trace=tmp_path / "step.trace") as shadow:
        step()
    took = shadow.statistics()
    workload = load_workload(tmp_path / "step.trace")
    assert workload.peak_live_bytes == took.peak_bytes
    assert not workload.touches_assumed
    assert workload.cut_off == ""
    roomy, small = (
        replay(workload, load_machine("h200-pcie5"), device_bytes=size)
        for size in ("64MiB", "16MiB")
    )
    assert roomy.to_host_bytes == 0
    assert small.to_host_bytes > 0


def test_existing_trace_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "there.trace"
    path.write_text("mine")
    with pytest.raises(Exception, match=r"there\.trace"), simulated("64MiB", trace=path):
        pass
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device_bytes": "1 apple"}, "device_bytes"),
        ({"device_bytes": 1}, "at least"),
        ({"policy": "repeat"}, "policy='repeat' without a budget"),
        ({"policy": "fast"}, "policy='fast': use one of"),
        ({"driver": "simulated:4MiB"}, "driver='simulated:4MiB': expected DriverSettings"),
        ({"roofline": 3}, "roofline=3: expected a Roofline"),
        ({"device_budget": "32GiB"}, "the device has"),
        ({"prefetch": "sometimes"}, "prefetch"),
        ({"machine": "abacus"}, "abacus"),
    ],
)
def test_unusable_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message), simulated(**arguments):
        pass


def test_recording_with_what_is_no_roofline_is_refused_and_one_is_short_in_print() -> None:
    with pytest.raises(ConfigurationError, match="roofline='fast'"), recorded(roofline="fast"):  # type: ignore[arg-type]
        pass
    with recorded() as program:
        torch.ones(3)
    assert len(repr(program)) < 200
