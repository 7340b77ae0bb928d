# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every setting once: each place that takes one has it from the table, and reads it alike."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import dask.config
import pytest
import yaml
from click.testing import CliRunner

import rmm_uvm
from rmm_uvm.cli import run as run_command
from rmm_uvm.dask.preload import dask_setup
from rmm_uvm.dask.settings import settings_of
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mr import ManagedPool
from rmm_uvm.residency import Budget
from rmm_uvm.support.settings import OF_TORCH, SETTINGS
from rmm_uvm.support.units import parse_bytes, parse_size
from rmm_uvm_mortgage.cli import command as mortgage_command

REPOSITORY = Path(__file__).resolve().parents[3]
MIB = 1 << 20
DEVICE_BYTES = 64 * MIB
ACCEPTED = (
    'expected an integer or a string such as "512 MiB", "2GiB" or "2GB", or a fraction of device '
    'memory such as 0.9 or "90%"'
)

# -- sizes, through every door ---------------------------------------------------------------------

Door = Callable[[Any], Any]
"""Takes a size as somebody writes it there; returns bytes, or raises."""


def in_python(value: Any) -> int:
    mr = rmm_uvm.managed_pool(driver=f"simulated:{DEVICE_BYTES}", device_budget=value)
    return kept(mr)


def by_name(value: Any) -> int:
    return kept(ManagedPool(driver=f"simulated:{DEVICE_BYTES}", device_budget=value))


def installed(value: Any) -> int:
    with rmm_uvm.reinitialize(
        driver=f"simulated:{DEVICE_BYTES}", device_budget=value, libraries=(), monitor=False
    ) as handle:
        budget = handle.devices[0].budget
        assert budget is not None
        return budget.budget_bytes


def in_environment(text: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMM_UVM_DEVICE_BUDGET", text)
        return kept(rmm_uvm.managed_pool(driver=f"simulated:{DEVICE_BYTES}"))


def kept(mr: Any) -> int:
    found = mr.managed_mr.residency.residency()
    return int(found["budget_bytes"])


def option_of(command: click.Command) -> Door:
    def read(text: str) -> int:
        (option,) = (each for each in command.params if each.name == "device_budget")
        return plain(option.type.convert(text, option, click.Context(command)))

    return read


def dask_keyword(value: Any) -> int:
    return plain(settings_of(None, {"device_budget": value}).device_budget)


def dask_file(text: str) -> int:
    quoted = text or "''"
    section = yaml.safe_load(f"device-budget: {quoted}")
    return plain(settings_of(section).device_budget)


def dask_environment(text: str) -> int:
    found = dask.config.collect_env({"DASK_RMM_UVM__DEVICE_BUDGET": text})["rmm_uvm"]
    return plain(settings_of(found).device_budget)


def dask_flag(text: str) -> int:
    context = dask_setup.make_context("dask_setup", ["--device-budget", text])
    if "usage_error" in context.params:
        raise ConfigurationError(context.params["usage_error"])
    return plain(context.params["device_budget"][0])


def plain(value: Any) -> int:
    """Return the bytes of a value as a worker, or a program that is run, makes its pool of it."""
    assert isinstance(value, int | float)
    return parse_size(value, DEVICE_BYTES, "device_budget")


PYTHON: dict[str, Door] = {
    "managed_pool": in_python,
    "ManagedPool": by_name,
    "reinitialize": installed,
    "UvmPlugin": dask_keyword,
}
DOORS: dict[str, Door] = {
    **PYTHON,
    "environment": in_environment,
    "rmm-uvm run": option_of(run_command.command),
    "rmm-uvm mortgage": option_of(mortgage_command.command),
    "Dask's files": dask_file,
    "Dask's environment": dask_environment,
    "Dask's flags": dask_flag,
}
SIZES: list[tuple[Any, int]] = [
    ("16777216", 16 * MIB),
    ("16MiB", 16 * MIB),
    ("16 mib", 16 * MIB),
    ("16MB", 16_000_000),
    ("1.6e1 MB", 16_000_000),
    ("0.25", 16 * MIB),
    (".25", 16 * MIB),
    ("1.0", DEVICE_BYTES),
    ("25%", 16 * MIB),
    ("12.5 %", 8 * MIB),
    ("100%", DEVICE_BYTES),
]
VALUES: list[tuple[Any, int]] = [(16 * MIB, 16 * MIB), (0.25, 16 * MIB), (1.0, DEVICE_BYTES)]
NO_SIZES = ["", "-1", "-8MiB", "2 XB", "2G", "nan", "120%", "0%", "1e30", "True", "1.5", "0", "inf"]
NO_VALUES: list[Any] = [-1, 0, True, float("nan"), 1e30, 1.5, 0.0, b"16MiB", [16]]


def check_size(door: Door, written: Any, size_bytes: int) -> None:
    assert door(written) == size_bytes


def check_refusal(door: Door, written: Any) -> None:
    with pytest.raises((ConfigurationError, click.ClickException)) as refused:
        door(written)
    message = str(refused.value)
    name, _, rest = message.partition("=")
    assert name in ("device_budget", "RMM_UVM_DEVICE_BUDGET", "--device-budget")
    assert rest.endswith((ACCEPTED, f"{ACCEPTED}, or auto or none"))
    # As it was written, or as YAML has it: 1e30 is 1e+30.
    assert rest.partition(": ")[0] in (repr(written), str(written), "1e+30")
    assert "\n" not in message


@pytest.mark.parametrize(("written", "size_bytes"), SIZES)
@pytest.mark.parametrize("door", DOORS)
def test_size_means_the_same_at_every_door(door: str, written: str, size_bytes: int) -> None:
    check_size(DOORS[door], written, size_bytes)


@pytest.mark.parametrize(("written", "size_bytes"), VALUES)
@pytest.mark.parametrize("door", PYTHON)
def test_number_means_the_same_in_every_call(door: str, written: Any, size_bytes: int) -> None:
    check_size(DOORS[door], written, size_bytes)


@pytest.mark.parametrize(
    ("door", "written"),
    # An empty variable says nothing: see below.
    [(door, each) for door in DOORS for each in NO_SIZES if each or door != "environment"],
)
def test_what_is_no_size_is_refused_alike_at_every_door(door: str, written: str) -> None:
    check_refusal(DOORS[door], written)


def test_empty_variable_says_nothing_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", "")
    pool: Any = rmm_uvm.managed_pool(driver=f"simulated:{DEVICE_BYTES}")
    assert pool.budget.follows


@pytest.mark.parametrize("written", NO_VALUES, ids=repr)
@pytest.mark.parametrize("door", PYTHON)
def test_number_that_is_no_size_is_refused_alike_in_every_call(door: str, written: Any) -> None:
    check_refusal(DOORS[door], written)


@pytest.mark.parametrize(
    ("door", "written", "size_bytes"),
    [
        (parse_bytes, "0.25", 16 * MIB),  # no fractions
        (float, "25%", 16 * MIB),
        (lambda text: plain(parse_size(text, 1, "x")), "1.0", DEVICE_BYTES),  # of another device
    ],
)
def test_door_of_its_own_would_be_found_by_sizes(door: Door, written: str, size_bytes: int) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_size(door, written, size_bytes)


@pytest.mark.parametrize(
    ("door", "written"),
    [
        (lambda text: 16 * MIB, "120%"),  # takes anything
        (lambda text: parse_size(text, 1, "device_memory"), "2 XB"),  # named otherwise
        (lambda text: parse_bytes(text, "device_budget"), "2 XB"),  # accepts less
        (lambda text: parse_size("3 XB", 1, "device_budget"), "2 XB"),  # tells of another value
    ],
)
def test_door_of_its_own_would_be_found_by_refusals(door: Door, written: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception, ValueError)):
        check_refusal(door, written)


# -- every place that names settings ---------------------------------------------------------------


def callables() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "reinitialize": rmm_uvm.reinitialize,
        "managed_pool": rmm_uvm.managed_pool,
        "ManagedPool": ManagedPool.__new__,
    }
    if importlib.util.find_spec("torch") is not None:
        found |= {
            "torch.install": rmm_uvm.torch.install,
            "torch.managed": rmm_uvm.torch.managed,
        }
    return found


def lacking(function: Callable[..., Any], documented: str) -> Iterator[str]:
    """Yield what a function has otherwise than the table."""
    table = {**SETTINGS, **OF_TORCH}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in table:
            continue
        if parameter.default != table[name].default:
            yield f"{name}={parameter.default!r}, and the table has {table[name].default!r}"
        if name not in documented.partition("Parameters\n")[2].partition("Returns\n")[0]:
            yield f"{name} has no words"


@pytest.mark.parametrize("name", callables())
def test_keywords_have_the_default_of_the_table_and_words(name: str) -> None:
    function = callables()[name]
    documented = ManagedPool.__doc__ if name == "ManagedPool" else function.__doc__
    if name == "torch.managed":  # "see `install`"
        documented = callables()["torch.install"].__doc__
    assert list(lacking(function, documented or "")) == []


def test_keyword_with_another_default_or_without_words_is_found() -> None:
    def function(prefetch: str = "never", eviction: str | None = None) -> None:
        """Parameters
        prefetch : str
        """

    assert list(lacking(function, function.__doc__ or "")) == [
        "prefetch='never', and the table has 'auto'",
        "eviction has no words",
    ]


def test_installation_has_every_setting_and_keeps_what_it_was_given() -> None:
    assert set(inspect.signature(rmm_uvm.reinitialize).parameters) == set(SETTINGS)
    given = {"device_budget": "25%", "libraries": iter(())}
    with rmm_uvm.reinitialize(driver="simulated:64MiB", **given) as handle:
        assert set(handle.arguments) == set(SETTINGS)
        assert handle.arguments["device_budget"] == "25%"
        assert handle.arguments["libraries"] == ()


def test_object_that_a_setting_takes_besides_goes_through() -> None:
    asked = Budget(16 * MIB, "lru")
    with rmm_uvm.reinitialize(
        driver=rmm_uvm.simulated_device("64MiB"), device_budget=asked, libraries=()
    ) as handle:
        assert handle.devices[0].budget is asked


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "write_settings", REPOSITORY / "ci/write_settings.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_documents_and_files_of_dask_are_as_the_table_has_them() -> None:
    written = script().written(REPOSITORY)
    assert len(written) == 3
    stale = [name for name, text in written.items() if (REPOSITORY / name).read_text() != text]
    assert stale == [], "run python ci/write_settings.py"


def test_row_that_was_changed_by_hand_is_written_anew() -> None:
    text = (REPOSITORY / "docs/use/configuration.md").read_text()
    by_hand = text.replace("\n| `prefetch` |", "\n| `prefetsch` |")
    assert by_hand != text
    assert script().configuration(by_hand) == text


@pytest.mark.parametrize("command", [run_command.command, mortgage_command.command])
def test_help_has_sentence_and_default_of_the_table(command: click.Command) -> None:
    told = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    setting = SETTINGS["device_budget"]
    assert f"--device-budget SIZE {setting.sentence} Default: {setting.default_words}." in told


def test_options_of_run_are_those_of_the_table() -> None:
    options = {each.name: each.opts[0] for each in run_command.command.params}
    table = {**SETTINGS, **OF_TORCH}
    wanted = {name: each.option for name, each in table.items() if each.option}
    assert {name: options[name] for name in table if name in options} == wanted


ENTRY = """
from rmm_uvm.support import settings
from rmm_uvm.support.kinds import Size

settings.SETTINGS["imaginary"] = settings.Setting(
    "imaginary", Size(), "What is imagined.", otherwise="none", variable="RMM_UVM_IMAGINARY"
)
"""
EVERYWHERE = """
import importlib.util, inspect, os, sys
from pathlib import Path

from rmm_uvm.cli import run
from rmm_uvm.dask.flags import FLAGS
from rmm_uvm.dask.preload import dask_setup
from rmm_uvm.dask.settings import settings_of
from rmm_uvm.support.variables import KNOWN

(option,) = (each for each in run.command.params if each.name == "imaginary")
assert option.opts == ["--imaginary"] and "What is imagined." in option.help
assert option.type.convert("25%", option, None) == 0.25
assert "RMM_UVM_IMAGINARY" in KNOWN
os.environ["RMM_UVM_IMAGINARY"] = "25%"
assert settings.SETTINGS["imaginary"].of_environment() == 0.25
flags = dask_setup.make_context("x", ["--imaginary", "25%"]).params
assert flags["imaginary"] == (0.25,)
assert settings_of({"imaginary": "25%"}).arguments(1)["imaginary"] == 0.25

root = Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("write_settings", root / "ci/write_settings.py")
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)
assert all("imaginary" in text for text in script.written(root).values())


@settings.reads_settings()
def uses(imaginary=None):
    return imaginary


assert uses("25%") == 0.25
print("everywhere")
"""


@pytest.mark.parametrize(("entry", "is_everywhere"), [(ENTRY, True), ("", False)])
def test_one_entry_makes_a_setting_known_everywhere(entry: str, is_everywhere: bool) -> None:
    text = entry + EVERYWHERE
    done = subprocess.run(
        [sys.executable, "-P", "-c", text, str(REPOSITORY)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.stdout == "everywhere\n") is is_everywhere, done.stderr
