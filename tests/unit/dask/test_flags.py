# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Settings on a worker's command line: each has a flag, and both ways say the same."""

from __future__ import annotations

from typing import Any

import click
import pytest
from distributed.cli.dask_worker import main as dask_worker
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.dask.flags import FLAGS, arguments_of, without_settings
from rmm_uvm.dask.preload import dask_setup
from rmm_uvm.dask.settings import NAMES, checked
from rmm_uvm.errors import ConfigurationError

SIZES = st.one_of(
    st.none(),
    st.integers(min_value=1, max_value=2**62),
    st.floats(min_value=2**-30, max_value=1),
)
PLAIN = st.one_of(st.booleans(), st.integers(), st.text(max_size=5))
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "initial_pool_size": SIZES,
        "maximum_pool_size": SIZES,
        "prefetch": st.sampled_from(["auto", "always", "never"]),
        "ipc_pool_size": st.sampled_from([None, 0.125, 1 << 20, 2**62, "auto"]),
        "libraries": st.lists(st.sampled_from(["cupy", "numba", "torch"])),
        "cudf_prefetch": st.sampled_from(["auto", True, False]),
        "monitor": st.one_of(
            st.booleans(), st.dictionaries(st.sampled_from(["trace", "history"]), PLAIN)
        ),
        "driver": st.sampled_from([None, "cuda", "simulated", "simulated:64MiB"]),
        "thresholds": st.sampled_from([None, {"footprint_factor": 2.5}]),
        "workers_per_host": st.one_of(st.none(), st.integers(min_value=1, max_value=99)),
        "comm": st.sampled_from([{}, {"wait_seconds": 0.5}, {"chunk_size": None}]),
    },
)


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Return what Dask would call the preload's function with."""
    found = dask_setup.make_context("dask_setup", arguments, allow_extra_args=False).params
    assert "usage_error" not in found, found["usage_error"]
    return {name: value[0] for name, value in found.items() if name in NAMES and value is not None}


def test_every_setting_but_the_protocol_has_a_flag() -> None:
    assert set(FLAGS) == set(NAMES) - {"protocol"}


def test_no_flag_is_one_of_a_workers_own() -> None:
    # It would be taken by the worker, silently.
    from dask_cuda.cli import worker as dask_cuda_worker

    for command in (dask_worker, dask_cuda_worker):
        own = {name for option in command.params for name in option.opts}
        assert not own & set(FLAGS.values())


@given(SETTINGS)
def test_command_line_says_the_same_as_the_settings(settings: dict[str, Any]) -> None:
    assert parsed(arguments_of(settings)) == checked(settings)


@given(SETTINGS)
def test_command_line_without_settings_is_what_others_had_on_it(settings: dict[str, Any]) -> None:
    theirs = ["--create-cuda-context", "positional"]
    mixed = [theirs[0], *arguments_of(settings), theirs[1]]
    assert without_settings(mixed) == theirs


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--maximum-pool-size", "64GiB"], {"maximum_pool_size": 64 << 30}),
        (["--maximum-pool-size=0.5"], {"maximum_pool_size": 0.5}),
        (["--ipc-pool-size", "null"], {"ipc_pool_size": None}),
        (["--prefetch", "always"], {"prefetch": "always"}),
        (["--neighbors", "1"], {"neighbors": (1,)}),
        (["--neighbors", "1,2"], {"neighbors": (1, 2)}),
        (["--libraries", "cupy,torch"], {"libraries": ("cupy", "torch")}),
        (["--monitor", "{interval-seconds: 1}"], {"monitor": {"interval_seconds": 1}}),
        (["--monitor", "false"], {"monitor": False}),
        (["--create-cuda-context"], {}),
        ([], {}),
    ],
)
def test_flags_may_be_written_as_in_a_file(arguments: list[str], expected: dict[str, Any]) -> None:
    assert parsed(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--maximum-pool-size", "12 apples"], "maximum_pool_size='12 apples'"),
        (["--pool-size", "1GiB"], "No such option"),
        (["--prefetch", "yes"], "prefetch='yes'"),
        (["--driver", "simulated:63MB"], "driver='simulated:63MB': a simulated device has a mult"),
        (["--prefetch"], "requires an argument"),
        (["--monitor", "{a: "], "is not valid YAML"),
        (["surplus"], "unexpected extra argument"),
    ],
)
def test_flag_that_cannot_be_read_is_said_in_one_line(arguments: list[str], reason: str) -> None:
    # As the command line of `dask worker` reads it ...
    with pytest.raises(click.UsageError) as caught:
        dask_setup.parse_args(click.Context(dask_setup, allow_extra_args=False), list(arguments))
    assert reason in caught.value.format_message()
    # ... and as the preload does, where Dask would only log the error and go on.
    context = dask_setup.make_context("dask_setup", arguments, allow_extra_args=False)
    assert reason in context.params["usage_error"]
    assert "\n" not in context.params["usage_error"]


def test_unknown_setting_has_no_command_line() -> None:
    with pytest.raises(ConfigurationError, match="'colour'"):
        arguments_of({"colour": "red"})
