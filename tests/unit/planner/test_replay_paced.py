# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of a trace on a simulated card: by hand, and beside the same program replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.planner import PacedReplay, replay_paced
from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.uses import Use
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import Machine, load_machine, save_machine
from rmm_uvm.torch import Program
from rmm_uvm.trace import KernelTraceWriter, TraceWriter

MIB = 1 << 20
TENSOR_BYTES = 4 * MIB
BLOCK_SECONDS = 2 * MIB / 1e9  # of the machine below


def plain_machine() -> Machine:
    """Return a machine where nothing but copies takes time: 1 byte/ns each way."""
    machine = load_machine("h200-pcie5")
    constants = machine.constants()
    free = {name: 0.0 for name in constants if name.endswith("_ns") and "per_ns" not in name}
    return machine.replace(
        **free,
        duplicate_fraction=0.0,
        duplex_fraction=1.0,
        to_device_bytes_per_ns=1.0,
        to_host_bytes_per_ns=1.0,
    )


def three_blocks(path: Path) -> Path:
    """Write a trace that goes over three blocks twice, which takes 10 ms a block."""
    with KernelTraceWriter(path) as trace:
        blocks = [trace.allocate("2MiB") for _ in range(3)]
        for number in range(2):
            with trace.stage(f"round {number}"):
                for name, block in zip("abc", blocks, strict=True):
                    trace.kernel(name, writes=[block], seconds=0.01)
    return path


def write_rounds(path: Path, kernel_seconds: float) -> None:
    """Write a trace of twelve rounds over 24 tensors, made as they are first used."""
    there: dict[int, int] = {}
    with KernelTraceWriter(path) as trace:
        for round_number in range(12):
            with trace.stage(f"round {round_number}"):
                for number in range(24):
                    if number not in there:
                        there[number] = trace.allocate(TENSOR_BYTES)
                    trace.kernel("write", writes=[there[number]], seconds=kernel_seconds)


def test_three_blocks_on_a_card_of_two_move_and_wait_as_by_hand(tmp_path: Path) -> None:
    # First round: c pushes out a. Second: a, b and c come back, and push out b, c and a. What
    # leaves goes first, so that each of these kernels waits for two blocks, and c once for one.
    took = replay_paced(
        three_blocks(tmp_path / "a"), "4MiB", machine=plain_machine(), prefetch="never"
    )
    first, second = took.stages["round 0"], took.stages["round 1"]
    assert (first.to_host_bytes, first.to_device_bytes) == (2 * MIB, 0)
    assert (second.to_host_bytes, second.to_device_bytes) == (6 * MIB, 6 * MIB)
    assert first.waited_seconds == pytest.approx(BLOCK_SECONDS)
    assert second.waited_seconds == pytest.approx(6 * BLOCK_SECONDS)
    assert took.waited_by_kernel == pytest.approx(
        {"c": 3 * BLOCK_SECONDS, "a": 2 * BLOCK_SECONDS, "b": 2 * BLOCK_SECONDS}
    )
    assert list(took.waited_by_kernel) == ["c", "a", "b"]
    assert (took.to_host_bytes, took.to_device_bytes) == (8 * MIB, 6 * MIB)
    assert took.seconds == pytest.approx(0.06 + 7 * BLOCK_SECONDS)
    assert took.compute_seconds == pytest.approx(0.06)
    assert second.slowdown == pytest.approx((0.03 + 6 * BLOCK_SECONDS) / 0.03)
    assert (first.kernels, second.kernels, took.kernels) == (3, 3, 6)
    assert first.gpu_faults == second.gpu_faults > 0
    assert took.peak_bytes == 6 * MIB


def test_three_blocks_on_a_card_of_four_wait_for_nothing(tmp_path: Path) -> None:
    took = replay_paced(
        three_blocks(tmp_path / "a"), "8MiB", machine=plain_machine(), prefetch="never"
    )
    assert took.waited_seconds == pytest.approx(0.0, abs=1e-12)
    assert (took.to_host_bytes, took.to_device_bytes, took.slowdown) == (0, 0, pytest.approx(1.0))
    assert took.waited_by_kernel == {"a": 0.0, "b": 0.0, "c": 0.0}


@pytest.mark.parametrize("kernel_seconds", [0.02, 1e-4])
@pytest.mark.parametrize("budget", [None, Budget(64 * MIB, ahead=True)])
def test_trace_takes_what_the_same_program_does(
    tmp_path: Path, kernel_seconds: float, budget: Budget | None
) -> None:
    program = Program()
    there: dict[int, int] = {}
    for _ in range(12):
        for number in range(24):
            if fresh := number not in there:
                there[number] = program.allocate(TENSOR_BYTES)
            use = Use(there[number], 0, TENSOR_BYTES, writes=True, fresh=fresh)
            program.kernel([use], kernel_seconds)
        program.mark()
    pool_bytes = program.peak_bytes * 5 // 4
    machine = load_machine("h200-pcie5")
    card = ShadowDevice(72 * MIB, machine, budget, pool_bytes=pool_bytes, paced=True)
    replay = program.replayer(card)
    replay(0, program.marks[-2])
    before = card.statistics()
    replay(program.marks[-2], None)
    write_rounds(tmp_path / "a", kernel_seconds)
    took = replay_paced(tmp_path / "a", 72 * MIB, device_budget=budget)
    theirs, ours = card.statistics().since(before), took.stages["round 11"]
    assert (ours.to_device_bytes, ours.to_host_bytes) == (
        theirs.to_device_bytes,
        theirs.to_host_bytes,
    )
    assert ours.seconds == pytest.approx(theirs.seconds)
    assert ours.compute_seconds == pytest.approx(24 * kernel_seconds)


def test_budget_fetches_ahead_while_kernels_compute(tmp_path: Path) -> None:
    write_rounds(tmp_path / "a", 0.02)
    alone = replay_paced(tmp_path / "a", "72MiB").stages["round 11"]
    ahead = replay_paced(tmp_path / "a", "72MiB", device_budget="64MiB").stages["round 11"]
    assert ahead.waited_seconds < 0.01 * alone.waited_seconds
    assert ahead.to_device_bytes > 0


def test_kernel_that_touches_nothing_takes_its_time_in_its_stage(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a") as trace:
        part = trace.allocate("2MiB")
        with trace.stage("idle"):
            trace.kernel("idle", seconds=0.25)
        with trace.stage("busy"):
            trace.kernel("busy", reads=[part], seconds=0.5)
    took = replay_paced(tmp_path / "a", "4MiB")
    assert took.stages["idle"].compute_seconds == 0.25
    assert took.stages["busy"].compute_seconds == 0.5
    assert (took.stages["idle"].kernels, took.kernels) == (1, 2)


def test_data_of_the_cpu_are_fetched_by_the_kernel_that_reads_them(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a") as trace:
        part = trace.allocate("4MiB")
        trace.cpu(writes=[part])
        trace.kernel("read", reads=[(part, 0, 2 * MIB)], seconds=0.01)
        trace.free(part)
    took = replay_paced(tmp_path / "a", "8MiB", machine=plain_machine(), prefetch="never")
    assert took.to_device_bytes == 2 * MIB
    assert took.waited_by_kernel == pytest.approx({"read": BLOCK_SECONDS})


def test_machine_is_a_name_a_file_or_a_profile(tmp_path: Path) -> None:
    trace = three_blocks(tmp_path / "a")
    save_machine(load_machine("a100-pcie4"), tmp_path / "mine.toml")
    ways: list[PacedReplay] = [
        replay_paced(trace, "4MiB", machine=each)
        for each in ("a100-pcie4", tmp_path / "mine.toml", load_machine("a100-pcie4"))
    ]
    assert ways[0] == ways[1] == ways[2] != replay_paced(trace, "4MiB")
    with pytest.raises(ConfigurationError, match="did you mean 'a100-pcie4'"):
        replay_paced(trace, "4MiB", machine="a100-pcie-4")
    with pytest.raises(ConfigurationError, match="machine=3: a name such as"):
        replay_paced(trace, "4MiB", machine=3)  # type: ignore[arg-type]


def test_trace_without_kernels_is_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "a") as writer:
        writer.allocated(0, 16 * MIB, 64)
        writer.touched(0, 16 * MIB, 64, write=True)
    with pytest.raises(DataError, match="does not tell kernels apart"):
        replay_paced(tmp_path / "a", "4MiB")
