# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Pool sizes tried with RMM's pool: what it costs, and that the fastest way is what is advised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import rmm

from rmm_uvm import simulated_device
from rmm_uvm.planner.advice.advising import AdviceFacts, default_sizes, pool_sizes
from rmm_uvm.planner.advice.settling import tried
from rmm_uvm.planner.request import DEFAULTS, Options
from rmm_uvm.planner.trials.pool_trial import MOST_EVENTS, PoolSettings, PoolTrial, pool_seconds
from rmm_uvm.planner.trials.replaying import NoRoomError
from rmm_uvm.planner.trials.runs import PlanProgress
from rmm_uvm.planner.workload.events import BY_THE_CPU, WRITES
from rmm_uvm.simulator import DriverSettings, load_machine

from ...anomalies.faults import addresses
from ...anomalies.world import World
from .test_advice import variant
from .workloads import MIB, Machine, etl, event, workload

FACTS = AdviceFacts(
    peak_bytes=96 * MIB,
    slab_bytes=96 * MIB,
    capacity_bytes=64 * MIB,
    ipc_bytes=0,
    workers=1,
    enough_bytes=96 * MIB,
    splits=False,
)


def seconds(peak_bytes: int, device: str, settings: PoolSettings) -> float | None:
    return pool_seconds(etl(peak_bytes), simulated_device(device), settings)


SMALL = PoolSettings(32 * MIB, 512 * MIB, "auto")


def test_workload_that_fits_takes_only_the_filling_of_its_slabs() -> None:
    fits = seconds(96 * MIB, "256MiB", SMALL)
    over = seconds(96 * MIB, "64MiB", SMALL)
    assert fits is not None
    assert over is not None
    assert 0 < fits * 15 < over


def test_pool_at_its_maximum_is_an_answer_and_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    level = rmm.get_logging_level()
    assert seconds(96 * MIB, "64MiB", PoolSettings(32 * MIB, 64 * MIB, "auto")) is None
    assert rmm.get_logging_level() == level
    assert "FAILURE" not in capfd.readouterr().err


def test_touches_inside_an_allocation_and_of_the_cpu_are_made_there() -> None:
    def rows(kind: str) -> list[tuple[int, ...]]:
        by_cpu = list(event(kind, 40 * MIB, 8 * MIB, 0.2))
        by_cpu[1] = BY_THE_CPU | WRITES
        return [
            event("allocate", 0, 32 * MIB, 0.0),
            event("allocate", 32 * MIB, 16 * MIB, 0.0),
            event("touch", 34 * MIB, 4 * MIB, 0.1),
            tuple(by_cpu),
            event("free", 32 * MIB, 16 * MIB, 0.3),
        ]

    device = simulated_device("128MiB")
    recorded = workload(rows("touch"), peak_bytes=48 * MIB)
    settings = PoolSettings(64 * MIB, 64 * MIB, "auto")
    assert pool_seconds(recorded, device, settings) is not None
    assert device.statistics()["device_to_host_bytes"] == 8 * MIB


def test_touches_of_several_allocations_or_of_none_are_made_where_those_are_now() -> None:
    rows = [
        event("allocate", 0, 8 * MIB, 0.0),
        event("allocate", 64 * MIB, 8 * MIB, 0.0),
        event("touch", 4 * MIB, 64 * MIB, 0.1),
        event("touch", 32 * MIB, 4 * MIB, 0.1),
    ]
    device = simulated_device("128MiB")
    recorded = workload(rows, peak_bytes=16 * MIB)
    settings = PoolSettings(16 * MIB, 16 * MIB, "never")
    assert pool_seconds(recorded, device, settings) is not None
    assert device.statistics()["peak_resident_bytes"] == 8 * MIB


def test_cap_of_the_process_does_not_bind_what_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "16MiB")
    assert seconds(96 * MIB, "256MiB", SMALL) is not None


def test_recording_that_is_too_long_is_not_tried() -> None:
    recorded = workload([event("touch", 0, 1, 0.0)] * (MOST_EVENTS + 1), peak_bytes=1)
    assert not PoolTrial(recorded, Machine(), lambda threshold: None).able
    assert PoolTrial(etl(), Machine(), lambda threshold: None).able


class RuledTrial:
    """Tells the seconds of a mode with, and without, sizes."""

    able = True

    def __init__(
        self, told: Mapping[tuple[str, bool], float | None], facts: AdviceFacts = FACTS
    ) -> None:
        self.told, self.facts = told, facts

    def __call__(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        sizes: tuple[int, int],
        options: Options,
    ) -> float | None:
        assert sizes in (pool_sizes(self.facts), default_sizes(self.facts))
        return self.told[options.prefetch, sizes == pool_sizes(self.facts)]


DEFAULT, OTHER = variant(15.0), variant(12.0, Options("always"))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((1.0, 2.0, 3.0, 4.0), (OTHER, True)),
        ((2.0, 1.0, 3.0, 4.0), (OTHER, False)),
        ((3.0, 2.0, 1.0, 4.0), (DEFAULT, True)),
        ((3.0, 2.0, 2.0, 1.0), (DEFAULT, False)),
        ((0.995, 2.0, 2.0, 1.0), (DEFAULT, False)),
        ((None, None, None, 1.0), (DEFAULT, False)),
        ((None, 9.0, None, None), (OTHER, False)),
    ],
)
def test_fastest_way_with_the_pool_is_what_stays_advised(
    told: tuple[float | None, ...], expected: tuple[object, bool]
) -> None:
    ways = [("always", True), ("always", False), ("auto", True), ("auto", False)]
    trial = RuledTrial(dict(zip(ways, told, strict=True)))
    assert tried(trial, FACTS, DEFAULT, OTHER)[:2] == expected


def test_defaults_that_are_advised_stay_without_sizes_where_those_are_slower() -> None:
    slower = RuledTrial({("auto", True): 2.0, ("auto", False): 1.0})
    assert tried(slower, FACTS, DEFAULT, DEFAULT)[:2] == (DEFAULT, False)
    faster = RuledTrial({("auto", True): 1.0, ("auto", False): 1.2})
    assert tried(faster, FACTS, DEFAULT, DEFAULT)[:2] == (DEFAULT, True)


def test_one_slab_that_holds_everything_is_advised_where_it_takes_as_long() -> None:
    fits = FACTS._replace(capacity_bytes=256 * MIB)
    alike = RuledTrial({("auto", True): 1.0, ("auto", False): 1.0}, fits)
    assert tried(alike, fits, DEFAULT, DEFAULT)[:2] == (DEFAULT, True)
    fails = RuledTrial({("auto", True): None, ("auto", False): None}, fits)
    assert tried(fails, fits, DEFAULT, DEFAULT)[:2] == (DEFAULT, False)
    assert tried(fails, fits, DEFAULT, DEFAULT).out_of_memory
    assert not tried(alike, fits, DEFAULT, DEFAULT).out_of_memory
    assert not tried(None, fits, DEFAULT, DEFAULT).out_of_memory
    slower = RuledTrial({("auto", True): 1.1, ("auto", False): 1.0}, fits)
    assert tried(slower, fits, DEFAULT, DEFAULT)[:2] == (DEFAULT, False)
    short = RuledTrial({("auto", True): 1.0, ("auto", False): 1.0})
    assert tried(short, FACTS, DEFAULT, DEFAULT)[:2] == (DEFAULT, False)


def test_what_was_tried_is_told_with_the_defaults_first() -> None:
    ways = [("always", True), ("always", False), ("auto", True), ("auto", False)]
    trial = RuledTrial(dict(zip(ways, (3.0, None, 2.0, 1.0), strict=True)))
    told = tried(trial, FACTS, DEFAULT, OTHER).told
    assert told == (
        (DEFAULT, False, 1.0), (OTHER, True, 3.0), (OTHER, False, None), (DEFAULT, True, 2.0)
    )  # fmt: skip
    assert tried(None, FACTS, DEFAULT, OTHER).told == ()


def test_without_a_trial_replays_alone_decide() -> None:
    assert tried(None, FACTS, DEFAULT, OTHER)[:2] == (OTHER, True)
    spread = FACTS._replace(working_set_bytes=2 * FACTS.peak_bytes)
    assert tried(None, spread, DEFAULT, OTHER)[:2] == (OTHER, False)
    assert DEFAULT.options == DEFAULTS


def test_progress_of_a_trial_counts_its_events_and_trials() -> None:
    shown: list[PlanProgress] = []
    recorded = workload(
        [event("allocate", 0, 2 * MIB, 0.0), *[event("touch", 0, MIB, 0.1)] * 9000],
        peak_bytes=2 * MIB,
    )
    machine = load_machine("h200-pcie5")
    trial = PoolTrial(recorded, machine, lambda threshold: DriverSettings(), shown.append)
    for _ in range(2):
        assert trial(64 * MIB, None, (16 * MIB, 64 * MIB), DEFAULTS) is not None
    assert [(one.trials, one.done, one.total, one.replays) for one in shown] == [
        (1, 0, 9001, 0), (1, 8192, 9001, 0), (2, 0, 9001, 0), (2, 8192, 9001, 0)
    ]  # fmt: skip
    assert shown[0].what == "64.00 MiB, prefetch auto"
    silent = PoolTrial(recorded, machine, lambda threshold: DriverSettings())
    assert silent(64 * MIB, None, (16 * MIB, 64 * MIB), DEFAULTS) is not None
    assert len(shown) == 4


@pytest.mark.parametrize("spare_mib", [1, 40])  # none for the first slab; none for growth
def test_process_without_addresses_is_an_error_and_no_answer(
    spare_mib: int, tmp_path: Path
) -> None:
    recorded, device = etl(96 * MIB), simulated_device("256MiB")
    with (
        addresses(spare_mib * MIB)(World(tmp_path)),
        pytest.raises(NoRoomError, match=r"cannot be replayed here: .*96.00 MiB; .*ulimit -v"),
    ):
        pool_seconds(recorded, device, SMALL)
