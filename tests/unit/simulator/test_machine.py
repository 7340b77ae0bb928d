# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Machine profiles: what they hold, where they are found, and how they are kept."""

from __future__ import annotations

import dataclasses
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.simulator import Access, Simulator
from rmm_uvm.support.machine_files import (
    Machine,
    load_machine,
    machine_names,
    save_machine,
    shipped_names,
    user_machines,
)
from rmm_uvm.support.machine_profile import CONSTANTS

H200 = "h200-pcie5"


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of the user's own machines."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "rmm-uvm" / "machines"
    folder.mkdir(parents=True)
    return folder


# --- values ------------------------------------------------------------------------------------


def test_machine_fields_are_the_constants_and_what_describes_it() -> None:
    fields = {one.name for one in dataclasses.fields(Machine)}
    described = {"name", "gpu", "link", "measured", "description", "date", "driver", "sources"}
    assert fields == described | {"third_tier"} | set(CONSTANTS)


def test_machine_measured_prints_its_name_only() -> None:
    machine = load_machine(H200)
    assert (str(machine), machine.label, machine.changed) == (H200, "measured", ())


def test_machine_not_measured_says_so_wherever_it_is_printed() -> None:
    machine = load_machine("v100-pcie3")
    assert str(machine) == f"{machine}" == "v100-pcie3 (published only)"


def test_replace_constant_shows_in_label_and_source() -> None:
    machine = load_machine(H200).replace(copy_ns=0, call_ns=2500)
    assert machine.copy_ns == 0.0
    assert machine.label == "measured, changed: copy_ns, call_ns"
    assert machine.sources["copy_ns"] == "set by the program"
    assert machine.sources["launch_ns"] == load_machine(H200).sources["launch_ns"]


def test_replace_many_constants_are_counted() -> None:
    changes = {name: 1.0 for name in list(CONSTANTS) if name.endswith("block_ns")}
    assert (
        load_machine(H200).replace(**changes).label
        == f"measured, changed: {len(changes)} constants"
    )


def test_replace_by_the_same_value_changes_nothing() -> None:
    machine = load_machine(H200)
    assert machine.replace(copy_ns=machine.copy_ns) == machine


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"copy_ns": -1}, "copy_ns"),
        ({"copy_ns": math.nan}, "copy_ns"),
        ({"copy_ns": math.inf}, "copy_ns"),
        ({"copy_ns": "1400"}, "copy_ns"),
        ({"copy_ns": True}, "copy_ns"),
        ({"to_device_bytes_per_ns": 0}, "to_device_bytes_per_ns"),
        ({"duplex_fraction": 1.01}, "duplex_fraction"),
        ({"prefetch_ramp_blocks": 0}, "prefetch_ramp_blocks"),
        ({"outstanding_faults": 0}, "outstanding_faults"),
        ({"outstanding_faults": 1.5}, "outstanding_faults"),
        ({"batch_faults": 2**32}, "batch_faults"),
        ({"device_bytes": 2**63}, "device_bytes"),
        ({"memory_bytes_per_ns": 10**400}, "memory_bytes_per_ns"),
        ({"memory_bytes_per_ns": 1e10}, "memory_bytes_per_ns=1.*: expected a number >= 0.001 and"),
        ({"to_host_bytes_per_ns": 1e-300}, "to_host_bytes_per_ns=1e-300"),
        (
            {"peer_bytes_per_ns": 1e-4},
            "peer_bytes_per_ns=0.0001: expected 0 or a number >= 0.001",
        ),
        ({"copy_ns": 1.1e9}, r"copy_ns=1.*: expected a number >= 0 and <= 1e\+09, in ns"),
        ({"fault_ns": 1e308}, "fault_ns"),
        ({"duplex_fraction": 1e-9}, "duplex_fraction=1e-09: expected a number >= 0.01 and <= 1,"),
        ({"duplicate_fraction": 101}, "duplicate_fraction=101: expected a number >= 0 and <= 100,"),
        ({"prefetch_ramp_blocks": 1e7}, "prefetch_ramp_blocks"),
        ({"outstanding_faults": 2**20 + 1}, "outstanding_faults"),
        ({"batch_faults": 2**20 + 1}, "batch_faults=1048577: expected a whole number >= 1 and <="),
        ({"name": "../h200"}, "name"),
        ({"name": ""}, "name"),
        ({"speed": 1}, "speed"),
    ],
)
def test_replace_impossible_value_names_it(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        load_machine(H200).replace(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        *({"copy_ns": 0}, {"peer_bytes_per_ns": 0}, {"duplex_fraction": 1}, {"batch_faults": 1}),
        *({"copy_ns": 1e9}, {"peer_bytes_per_ns": 0.001}, {"duplex_fraction": 0.01}),
        *({"batch_faults": 2**20}, {"memory_bytes_per_ns": 1e9}, {"duplicate_fraction": 100}),
    ],
)
def test_replace_bound_itself_is_accepted(changes: dict[str, Any]) -> None:
    machine = load_machine(H200).replace(**changes)
    for name, value in changes.items():
        assert getattr(machine, name) == value


def test_machine_is_a_value(machines: Path) -> None:
    machine = load_machine(H200)
    assert machine == load_machine(H200)
    assert hash(machine) == hash(load_machine(H200))
    assert pickle.loads(pickle.dumps(machine)) == machine
    assert Machine(**dataclasses.asdict(machine)) == machine
    with pytest.raises(dataclasses.FrozenInstanceError):
        machine.copy_ns = 0.0  # type: ignore[misc]


# --- finding -----------------------------------------------------------------------------------


def test_names_are_the_package_and_then_the_users(machines: Path) -> None:
    for name in ("mine", "another", H200, "no name"):
        (machines / f"{name}.toml").touch()
    (machines / "notes.txt").touch()
    assert machine_names() == (*shipped_names(), "another", "mine")


def test_names_without_a_folder_are_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    assert machine_names() == shipped_names()


def test_load_unknown_name_lists_the_known_and_the_closest(machines: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        load_machine("H200-PCI5")
    assert "did you mean 'h200-pcie5'?" in str(error.value)
    assert all(name in str(error.value) for name in shipped_names())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("A100", r"'A100' (did you mean 'a100-pcie4'?): use a10-pcie4"),
        ("rtx3080", "(did you mean 'rtx3080ti-pcie3' or 'rtx3080ti-pcie4'?)"),
        ("", "'': use a10-pcie4"),
        ("x" * 1000, "xxx...: use a10-pcie4"),
    ],
)
def test_beginning_of_a_name_is_recognised_and_a_long_one_cut(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        load_machine(name)
    assert hint in str(error.value)
    assert len(str(error.value)) < 600


def test_load_unknown_name_like_none_has_no_guess(machines: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="there is no machine 'zzz': use a10-pcie4"
    ) as error:
        load_machine("zzz")
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize("name", ["", ".", "..", "a\0b", "~", "h200-pcie5 "])
def test_load_what_is_no_name_is_refused(machines: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="there is no machine"):
        load_machine(name)


def test_load_users_machine_by_name_and_by_path(machines: Path) -> None:
    mine = load_machine(H200).replace(name="mine", copy_ns=7)
    save_machine(mine, machines / "mine.toml")
    assert load_machine("mine") == mine
    assert load_machine(machines / "mine.toml") == mine
    assert load_machine(str(machines / "mine.toml")) == mine


def test_load_name_of_the_package_is_not_the_users_file(machines: Path) -> None:
    save_machine(load_machine(H200).replace(copy_ns=7), machines / f"{H200}.toml")
    assert load_machine(H200).copy_ns != 7
    assert load_machine(machines / f"{H200}.toml").copy_ns == 7


def test_load_path_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml cannot be read: No such file"):
        load_machine(tmp_path / "none.toml")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (2 << 20), b"not TOML", b"[[" * 5000])
def test_load_file_that_is_something_else_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"file\.toml is not "):
        load_machine(path)


def test_load_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_machine(tmp_path)


@pytest.mark.parametrize("settings", ["", "relative/folder"])
def test_user_machines_without_settings_folder_are_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", settings)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_machines() == tmp_path / ".config/rmm-uvm/machines"


# --- keeping -----------------------------------------------------------------------------------


def test_save_replaces_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    machine = load_machine(H200).replace(name="mine")
    save_machine(machine.replace(copy_ns=1), path)
    save_machine(machine, path)
    assert load_machine(path) == machine
    assert list(tmp_path.iterdir()) == [path]


def test_save_into_no_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the machine file cannot be written to .*: No such file"):
        save_machine(load_machine(H200), tmp_path / "none" / "mine.toml")


def test_save_onto_a_folder_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        save_machine(load_machine(H200), tmp_path / "mine.toml")
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.toml"]


# --- the model with values at their bounds -----------------------------------------------------


@pytest.mark.parametrize("largest", [False, True])
def test_model_with_every_constant_at_a_bound_comes_to_an_end_in_finite_time(
    largest: bool,
) -> None:
    bounds = {
        name: one.maximum if largest else one.minimum
        for name, one in CONSTANTS.items()
        if name != "device_bytes"
    }
    machine = load_machine(H200).replace(**bounds)
    simulator = Simulator(machine, device_bytes="4MiB", gpus=2)
    data = simulator.allocate_managed("8MiB")
    simulator.cpu_touch(data, "8MiB", write=True)
    for gpu in (0, 1):
        simulator.kernel([Access(data, "8MiB", write=True)], gpu=gpu)
    simulator.prefetch(data, "8MiB", stream=1)
    simulator.prefetch(data, "8MiB", gpu=None, stream=2)
    simulator.synchronize()
    assert 0 < simulator.seconds < 1e9
    assert simulator.counters().gpu_faults >= 2 * 4  # GPUs, blocks
