# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""WorkerSettings of Dask workers: precedence, names, values, and the same in every form."""

from __future__ import annotations

import inspect
from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.dask.settings import NAMES, ON_WORKERS, WorkerSettings, settings_of
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.watch.judging.thresholds import Thresholds

GIB = 1 << 30


def packaged(name: str) -> Any:
    return yaml.safe_load((resources.files("rmm_uvm.dask") / name).read_text())


def dashed(names: Any) -> set[str]:
    return {name.replace("_", "-") for name in names}


# --- where values come from --------------------------------------------------------------------


def test_nothing_given_is_the_default() -> None:
    assert settings_of(None) == settings_of({}) == WorkerSettings()


def test_keyword_comes_before_the_configuration_and_that_before_the_default() -> None:
    settings = settings_of(
        {"prefetch": "never", "maximum-pool-size": "1GiB"}, {"prefetch": "always"}
    )
    assert settings.prefetch == "always"
    assert settings.maximum_pool_size == GIB
    assert settings.initial_pool_size is None


def test_keys_may_have_dashes_or_underscores_at_every_depth() -> None:
    settings = settings_of(
        {"initial_pool_size": 1, "monitor": {"interval-seconds": 1}, "comm": {"chunk-size": "1MiB"}}
    )
    assert settings.initial_pool_size == 1
    assert settings.monitor == {"interval_seconds": 1}
    assert settings.comm == {"chunk_size": 1 << 20, "wait_seconds": 10}


def test_defaults_of_the_packaged_file_are_those_of_the_class() -> None:
    section = packaged("rmm-uvm.yaml")["rmm-uvm"]
    assert set(section) == dashed(NAMES)
    assert settings_of(section) == WorkerSettings()


def test_schema_names_every_setting_and_its_default_fits_it() -> None:
    schema = packaged("rmm-uvm-schema.yaml")["properties"]["rmm-uvm"]
    assert set(schema["properties"]) == dashed(NAMES)
    assert set(schema["properties"]["comm"]["properties"]) == dashed(WorkerSettings().comm)
    assert all(
        entry["description"] for name, entry in schema["properties"].items() if name != "comm"
    )


def test_every_setting_has_a_value_and_no_other() -> None:
    assert set(ON_WORKERS) == set(WorkerSettings().values) == set(NAMES)
    with pytest.raises(AttributeError):
        _ = WorkerSettings().colour


def test_settings_are_arguments_of_reinitialize() -> None:
    arguments = WorkerSettings().arguments(host_sharers=3)
    inspect.signature(rmm_uvm.reinitialize).bind(**arguments)
    assert arguments["host_sharers"] == 3


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("initial_pool_size", "12 apples"),
        ("maximum_pool_size", 0),
        ("maximum_pool_size", 1.5),
        ("maximum_pool_size", "auto"),
        ("device_budget", -1),
        ("device_budget", "half"),
        ("device_budget", (8 << 20) - 1),
        ("eviction", "belady"),
        ("eviction", True),
        ("neighbors", True),
        ("neighbors", -1),
        ("ipc_pool_size", -1),
        ("ipc_pool_size", True),
        ("ipc_pool_size", 256),
        ("ipc_pool_size", "2KiB"),
        ("ipc_pool_size", (1 << 20) - 1),
        ("prefetch", "sometimes"),
        ("prefetch", None),
        ("libraries", "cudf"),
        ("libraries", ["jax"]),
        ("libraries", 7),
        ("libraries", [["cupy"]]),
        ("cudf_prefetch", "always"),
        ("cudf_prefetch", 1),
        ("monitor", "yes"),
        ("monitor", None),
        ("monitor", {"driver": "cuda"}),
        ("monitor", {"on_finding": print}),
        ("driver", "gpu"),
        ("driver", "cuda:0"),
        ("driver", "simulated:many"),
        ("driver", "simulated:63MB"),
        ("thresholds", {"footprint": 1}),
        ("thresholds", {"footprint_factor": -1}),
        ("thresholds", 2),
        ("workers_per_host", 0),
        ("workers_per_host", True),
        ("protocol", ""),
        ("comm", {"chunk": 1}),
        ("comm", {"wait_seconds": -1}),
        ("comm", {"wait_seconds": float("nan")}),
        ("comm", {"chunk_size": "big"}),
        ("comm", "1MiB"),
    ],
)
def test_value_that_cannot_be_used_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings_of(None, {name: value})
    message = str(caught.value)
    assert name in message or next(iter(value)) in message
    assert "\n" not in message


def test_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"no setting 'pool_size' \(did you mean '\w+'\?\): there are initial_pool",
    ):
        settings_of({"pool-size": "1GiB"})


def test_section_that_is_no_section_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="rmm-uvm: '64GiB'"):
        settings_of("64GiB")  # type: ignore[arg-type]


# --- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [("cupy", ("cupy",)), ("cupy, numba", ("cupy", "numba")), ([], ()), ("", ()), (None, ())],
)
def test_libraries_may_be_a_list_or_text(value: Any, expected: tuple[str, ...]) -> None:
    assert settings_of(None, {"libraries": value}).libraries == expected


def test_ipc_pool_without_a_unit_is_refused_with_the_least_and_that_is_taken() -> None:
    with pytest.raises(ConfigurationError, match=r"^ipc_pool_size='256': at least 1\.00 MiB, such"):
        settings_of({"ipc-pool-size": "256"})
    assert settings_of({"ipc-pool-size": "1MiB"}).ipc_pool_size == 1 << 20
    assert settings_of({"ipc-pool-size": None}).ipc_pool_size is None
    assert settings_of({"ipc-pool-size": 0.001}).ipc_pool_size == 0.001


@pytest.mark.parametrize("value", [1, "1", [1], (1,)])
def test_one_neighbour_may_be_a_number_text_or_a_list(value: Any) -> None:
    assert settings_of({"neighbors": value}).neighbors == (1,)


def test_thresholds_change_what_the_environment_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_WARN_EVICTION", "off")
    settings = settings_of({"thresholds": {"footprint-factor": 2}})
    thresholds = settings.arguments(1)["monitor"]["thresholds"]
    assert thresholds == Thresholds(
        footprint_factor=2, footprint_rearm_factor=1.8, eviction_fraction_per_second=None
    )


def test_thresholds_join_the_keywords_of_the_monitor() -> None:
    settings = settings_of({"monitor": {"history": 10}, "thresholds": {"monitor": False}})
    assert settings.arguments(1)["monitor"]["history"] == 10
    assert not settings.arguments(1)["monitor"]["thresholds"].monitor


def test_thresholds_without_a_monitor_leave_it_off() -> None:
    settings = settings_of({"monitor": False, "thresholds": {"footprint_factor": 2}})
    assert settings.arguments(1)["monitor"] is False


@given(
    st.dictionaries(
        st.sampled_from(
            ["initial_pool_size", "maximum_pool_size", "ipc_pool_size", "device_budget"]
        ),
        st.one_of(
            st.none(),
            st.integers(min_value=8 << 20, max_value=2**62),
            st.floats(min_value=2**-30, max_value=1),
        ),
    )
)
def test_size_that_is_checked_passes_the_check_again_unchanged(sizes: dict[str, Any]) -> None:
    once = settings_of(None, sizes)
    again = settings_of({name: getattr(once, name) for name in NAMES})
    assert once == again
