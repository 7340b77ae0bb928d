# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What lies behind a host's memory, by hand; in machine files, plans and paced replays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.planner import plan, replay_paced
from rmm_uvm.simulator import Machine, Simulator, ThirdTier, load_machine, save_machine
from rmm_uvm.support.machine_files import format_machine, parse_machine
from rmm_uvm.trace import KernelTraceWriter

MIB = 1 << 20
BLOCK = 2 * MIB
TIER = ThirdTier(64 * MIB, read_bytes_per_ns=0.5, write_bytes_per_ns=0.25, operation_ns=1000.0)


def plain_machine(third_tier: ThirdTier | None = TIER) -> Machine:
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
        batch_faults=1024,
        outstanding_faults=512,
        third_tier=third_tier,
    )


class Program:
    """Blocks of 2 MiB on a card of two, by a host of two."""

    def __init__(self, machine: Machine, host_memory: str | None = "4MiB") -> None:
        self.device = rmm_uvm.simulated_device("4MiB", host_memory=host_memory, machine=machine)
        self.mr = rmm_uvm.mr.ManagedMemoryResource(self.device, prefetch="never")
        self.address = self.mr.allocate(10 * MIB)

    def free(self) -> None:
        if self.address:
            self.mr.deallocate(self.address, 10 * MIB)
            self.address = 0

    def touch(self, block: int) -> None:
        self.device.touch(self.address + block * BLOCK, BLOCK, write=True)

    def cpu_touch(self, block: int) -> None:
        self.device.cpu_touch(self.address + block * BLOCK, BLOCK)

    def counts(self) -> tuple[int, int, int, int]:
        """Return blocks of host memory and on the tier, and written to the tier and read."""
        found = self.device.statistics()
        names = ("host_page_bytes", "third_tier_bytes")
        moved = ("to_third_tier_bytes", "from_third_tier_bytes")
        host, there, to, back = (found[name] / BLOCK for name in (*names, *moved))
        return host, there, to, back  # type: ignore[return-value]

    def nanoseconds(self) -> int:
        return int(self.device.statistics()["modelled_ns"])


Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that makes programs, whose memory is freed at the end."""
    programs: list[Program] = []

    def made(machine: Machine, host_memory: str = "4MiB") -> Program:
        programs.append(Program(machine, host_memory))
        return programs[-1]

    yield made
    for one in programs:
        one.free()


def test_oldest_of_a_full_host_goes_on_and_comes_back_as_by_hand(start: Start) -> None:
    program = start(plain_machine())
    for block in range(4):
        program.touch(block)
    # Blocks 0 and 1 are on the host, which is full: nothing went on yet.
    assert program.counts() == (2, 0, 0, 0)
    begin_ns = program.nanoseconds()
    program.touch(4)
    # 2 leaves the card, and 0 the host for it: 4 bytes take 16 ns at 0.25 bytes/ns.
    assert program.counts() == (2, 1, 1, 0)
    assert program.nanoseconds() - begin_ns == BLOCK + 4 * BLOCK + 1000
    begin_ns = program.nanoseconds()
    program.touch(0)
    # 3 leaves the card, and 1 the host for it; then 2 makes room for 0, which is read at
    # 0.5 bytes/ns. The copy of 3 goes on meanwhile; that of 0 comes last.
    assert program.counts() == (2, 2, 3, 1)
    assert program.nanoseconds() - begin_ns == 2 * (4 * BLOCK + 1000) + 2 * BLOCK + 1000 + BLOCK


def test_memory_whose_pages_are_on_the_card_is_given_up_first_and_costs_nothing(
    start: Start,
) -> None:
    program = start(plain_machine())
    for block in (0, 1, 2, 3, 4, 0):
        program.touch(block)
    assert program.counts() == (2, 2, 3, 1)
    # On the host are 3, and what 0 had there: on the card are 4 and 0.
    program.touch(3)  # 4 leaves, into the memory that 0 had
    assert program.counts() == (2, 2, 3, 1)


def test_what_the_cpu_touches_comes_back_too(start: Start) -> None:
    program = start(plain_machine())
    for block in range(5):
        program.touch(block)
    begin_ns = program.nanoseconds()
    program.cpu_touch(0)
    # 1 makes room for it; its pages fault, and come back, one group after the other.
    assert program.counts() == (2, 1, 2, 1)
    assert program.nanoseconds() - begin_ns > 4 * BLOCK + 2 * BLOCK
    before = program.counts()
    program.cpu_touch(0)
    assert program.counts() == before


def test_host_with_room_needs_none(start: Start) -> None:
    with_tier, without = (start(plain_machine(tier), "10MiB") for tier in (TIER, None))
    for program in (with_tier, without):
        for block in (*range(5), *range(5)):
            program.touch(block)
    assert with_tier.device.statistics() == without.device.statistics()


def test_host_without_one_runs_out_of_memory(start: Start) -> None:
    program = start(plain_machine(None))
    for block in range(4):
        program.touch(block)
    with pytest.raises(MemoryError):
        program.touch(4)


def test_tier_that_is_full_is_the_end(start: Start) -> None:
    program = start(plain_machine(ThirdTier(2 * MIB, 1.0, 1.0)))
    for block in range(5):
        program.touch(block)
    with pytest.raises(MemoryError):
        program.touch(0)


def test_what_is_discarded_or_freed_leaves_it_without_being_written_or_read(start: Start) -> None:
    program = start(plain_machine())
    for block in range(5):
        program.touch(block)
    assert program.counts() == (2, 1, 1, 0)
    program.device.discard(program.address, BLOCK)
    assert program.counts() == (2, 0, 1, 0)
    program.touch(1)
    assert program.counts()[1] == 1
    program.free()
    assert program.counts()[:2] == (0, 0)


def test_what_was_discarded_is_not_read_back() -> None:
    machine = load_machine("h200-pcie5").replace(third_tier=TIER)
    device = rmm_uvm.simulated_device("4MiB", host_memory="4MiB", machine=machine)
    mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    address = mr.allocate(10 * MIB)
    device.touch(address, 2 * MIB, write=True)
    device.discard(address + 64 * 1024, 2 * MIB - 64 * 1024)
    for block in range(1, 5):  # which push block 0 on
        device.touch(address + block * BLOCK, BLOCK, write=True)
    assert device.statistics()["to_third_tier_bytes"] == 64 * 1024
    device.prefetch(address, BLOCK, "host")
    assert device.statistics()["from_third_tier_bytes"] == 64 * 1024
    mr.deallocate(address, 10 * MIB)


@pytest.mark.parametrize("seed", range(8))
def test_any_program_keeps_to_the_host_and_gives_everything_back(seed: int) -> None:
    chance = random.Random(seed)
    machine = load_machine("h200-pcie5").replace(third_tier=TIER)
    device = rmm_uvm.simulated_device("8MiB", host_memory="6MiB", machine=machine)
    mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    live: dict[int, int] = {}

    def act() -> None:
        address, nbytes = chance.choice(list(live.items()))
        first = chance.randrange(nbytes)
        size = chance.randint(1, nbytes - first)
        what: Any = chance.choice(("touch", "cpu_touch", "prefetch", "evict", "discard", "free"))
        match what:
            case "touch" | "cpu_touch":
                getattr(device, what)(address + first, size, write=chance.random() < 0.5)
            case "prefetch":
                device.prefetch(address + first, size)
            case "evict":
                device.prefetch(address + first, size, "host")
            case "discard":
                device.discard(address, nbytes)
            case "free":
                mr.deallocate(address, live.pop(address))

    for _ in range(300):
        if (sum(live.values()) < 48 * MIB and chance.random() < 0.3) or not live:
            nbytes = chance.randrange(1, 8 * MIB)
            live[mr.allocate(nbytes)] = nbytes
        act()
        found = device.statistics()
        assert 0 <= found["host_page_bytes"] <= 6 * MIB
        assert 0 <= found["third_tier_bytes"] <= 64 * MIB
        assert found["resident_bytes"] <= 8 * MIB
    for address, nbytes in live.items():
        mr.deallocate(address, nbytes)
    found = device.statistics()
    assert (found["host_page_bytes"], found["third_tier_bytes"]) == (0, 0)
    assert found["to_third_tier_bytes"] > 0 < found["from_third_tier_bytes"]


def test_simulator_has_that_of_its_machine() -> None:
    sim = Simulator(plain_machine(), device_bytes="4MiB", host_bytes="4MiB")
    data = sim.allocate_managed("10MiB")
    for block in range(5):
        sim.cpu_touch(data + block * BLOCK, BLOCK, write=True)
    counted = sim.counters()
    assert (counted.host_page_bytes, counted.third_tier_bytes) == (2 * BLOCK, 3 * BLOCK)


# Machine files


def test_file_of_a_machine_keeps_it(tmp_path: Path) -> None:
    tier = ThirdTier(2 * 10**12, 6.8, 4.0, 80_000.0, source="a data sheet")
    machine = load_machine("a100-pcie4").replace(third_tier=tier)
    save_machine(machine, tmp_path / "mine.toml")
    assert load_machine(tmp_path / "mine.toml") == machine
    assert load_machine(tmp_path / "mine.toml").third_tier == tier
    assert "third_tier" not in format_machine(load_machine("a100-pcie4"))
    unnamed = machine.replace(third_tier=ThirdTier(1, 1.0, 1.0, source=""))
    assert parse_machine(format_machine(unnamed), "it").third_tier is not None


def test_machine_takes_nothing_else_for_one() -> None:
    with pytest.raises(ConfigurationError, match="third_tier='2TB@1/1': a ThirdTier, or None"):
        load_machine("a100-pcie4").replace(third_tier="2TB@1/1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("capacity_bytes = 0", r"third tier: capacity_bytes=0: expected a whole number >= 1"),
        ("read_bytes_per_ns = 0.0", "third tier: read_bytes_per_ns=0.0: expected a number"),
        ('write_bytes_per_ns = "fast"', "third tier: write_bytes_per_ns='fast' is not a number"),
        ("operation_ns = -1", "third tier: operation_ns=-1: expected"),
        ('source = ""', "third_tier.source is '': say where the values are from"),
        ("size = 1", "unknown key of .third_tier. 'size'"),
    ],
)
def test_file_with_one_that_is_none_is_refused(line: str, message: str) -> None:
    tier = ThirdTier(2 * 10**12, 6.8, 4.0, 80_000.0, source="a data sheet")
    text = format_machine(load_machine("a100-pcie4").replace(third_tier=tier))
    name = line.partition(" =")[0]
    begin, _, table = text.partition("[third_tier]")
    kept = [one for one in table.splitlines() if not one.startswith(f"{name} =")]
    wrong = "\n".join([begin, "[third_tier]", *kept, line])
    with pytest.raises(DataError, match=message):
        parse_machine(wrong, "mine.toml")


def test_file_with_half_of_one_says_what_is_missing() -> None:
    text = format_machine(load_machine("a100-pcie4")) + "[third_tier]\ncapacity_bytes = 5\n"
    with pytest.raises(DataError, match=r"third_tier\.read_bytes_per_ns is missing"):
        parse_machine(text, "mine.toml")


# Plans and paced replays


def two_rounds(path: Path) -> Path:
    """Write a trace of 24 MiB, of which a card of 16 and a host of 6 MiB have room for 22."""
    with KernelTraceWriter(path) as trace:
        parts = [trace.allocate("2MiB") for _ in range(12)]
        for number in range(2):
            with trace.stage(f"round {number}"):
                for part in parts:
                    trace.kernel("add", reads=[part], writes=[part], seconds=0.01)
    return path


def test_plan_says_what_one_would_bring(tmp_path: Path) -> None:
    trace = two_rounds(tmp_path / "a")
    asked: dict[str, Any] = {"prefetch": "never", "host_memory": "6MiB"}
    without = plan(trace, "16MiB", **asked)
    assert without.cards[0].defaults.result.out_of_memory is not None
    brought = plan(trace, "16MiB", third_tier="64MiB@0.5/0.25/1us", **asked)
    result = brought.cards[0].defaults.result
    assert result.out_of_memory is None
    assert result.to_third_tier_bytes > 0 < result.from_third_tier_bytes
    assert f"Third tier on 16.00 MiB: {result.to_third_tier_bytes / MIB:.2f} MiB" in str(brought)
    assert "Third tier" not in str(without)
    [assumed] = [line for line in str(brought).splitlines() if line.startswith("third tier:")]
    assert assumed == (
        "third tier: 64.00 MiB, read at 0.5 and written at 0.25 GB/s; an operation takes"
    )
    assert "third tier:" not in str(without)
    assert brought.to_dict()["machine"]["third_tier"]["capacity_bytes"] == 64 * MIB
    # The faster it is, the shorter it takes; with a host that has room it brings nothing.
    fast = plan(trace, "16MiB", third_tier="64MiB@50/50", **asked).cards[0].defaults
    roomy = plan(trace, "16MiB", prefetch="never", host_memory="1GiB").cards[0].defaults
    slow = brought.cards[0].defaults
    assert slow.predicted_seconds is not None
    assert fast.predicted_seconds is not None
    assert roomy.predicted_seconds is not None
    assert slow.predicted_seconds > fast.predicted_seconds > roomy.predicted_seconds
    kept = plan(trace, "16MiB", third_tier="64MiB@0.5/0.25", prefetch="never", host_memory="1GiB")
    assert kept.cards[0].defaults == roomy
    dictionary = kept.to_dict()["cards"][0]["variants"][0]["result"]
    assert not any("third_tier" in name for name in dictionary)


def test_pool_that_a_plan_tries_may_take_what_it_holds(tmp_path: Path) -> None:
    # The pool's maximum is what can be backed: with the host alone the peak does not fit.
    asked: dict[str, Any] = {"host_memory": "6MiB", "third_tier": "64MiB@0.5/0.25"}
    [card] = plan(two_rounds(tmp_path / "a"), "16MiB", **asked).cards
    assert not card.pool_out_of_memory
    small = {**asked, "third_tier": "2MiB@0.5/0.25"}
    [card] = plan(tmp_path / "a", "16MiB", **small).cards
    assert card.defaults.result.out_of_memory is not None


def test_workers_share_its_size(tmp_path: Path) -> None:
    trace = two_rounds(tmp_path / "a")
    asked: dict[str, Any] = {"prefetch": "never", "host_memory": "12MiB", "workers": 2}
    enough = plan(trace, "16MiB", third_tier="64MiB@1/1", **asked).cards[0].defaults.result
    half = plan(trace, "16MiB", third_tier="2MiB@1/1", **asked).cards[0].defaults.result
    assert enough.out_of_memory is None is not half.out_of_memory


TEXTS = ["2TB", "2TB@٣/1", "2TB@6.8", "2TB@6.8/4.0/80ms", "@1/1", "2TB@-1/1", "2TB@0/1"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_means_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"third.tier"):
        plan(two_rounds(tmp_path / "a"), "16MiB", host_memory="6MiB", third_tier=text)


def test_one_behind_a_host_without_a_limit_is_refused(tmp_path: Path) -> None:
    trace = two_rounds(tmp_path / "a")
    with pytest.raises(ConfigurationError, match="is never full; give host_memory too"):
        plan(trace, "16MiB", third_tier="2TB@6.8/4.0")
    wrong: Any = 3
    with pytest.raises(ConfigurationError, match="third_tier=3: text such as"):
        plan(trace, "16MiB", host_memory="6MiB", third_tier=wrong)


def test_paced_replay_waits_for_it(tmp_path: Path) -> None:
    trace = two_rounds(tmp_path / "a")
    asked: dict[str, Any] = {"prefetch": "never", "host_memory": "6MiB"}
    with pytest.raises(
        MemoryError, match=r"kernel 12, 'add', needs more than the card and 6.00 MiB of host mem"
    ):
        replay_paced(trace, "16MiB", machine=plain_machine(None), **asked)
    took = replay_paced(trace, "16MiB", machine=plain_machine(), **asked)
    roomy = replay_paced(trace, "16MiB", machine=plain_machine(), prefetch="never")
    assert took.waited_seconds > roomy.waited_seconds
    assert took.to_third_tier_bytes == sum(one.to_third_tier_bytes for one in took.stages.values())
    assert took.from_third_tier_bytes > 0 == roomy.from_third_tier_bytes
    assert took.to_host_bytes == roomy.to_host_bytes


def test_device_says_where_everything_is(start: Start) -> None:
    program = start(plain_machine())
    for block in range(5):
        program.touch(block)
    device: SimulatedDevice = program.device
    assert device.resident_bytes(program.address, 10 * MIB, "host") == 3 * BLOCK
    assert device.resident_bytes(program.address, 10 * MIB) == 2 * BLOCK
