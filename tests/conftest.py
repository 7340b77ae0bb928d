# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: fixed seeds, no leaks, and RMM's resources as they were before."""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import rmm
import rmm.rmm

import rmm_uvm
import rmm_uvm.pool.install
from rmm_uvm._lib.limits import managed_limit_bytes

from .leftovers import Before, let_go_of_failure

# Threads of OpenMP wait for each other by spinning, at the end of each small operation: tests of
# torch took 40 times as long where something else ran. Read at torch's import, also by programs.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example database and no random choice of examples: a test fails on every run or on none.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
# What CI runs for a change; the night has all examples.
hypothesis.settings.register_profile(
    "few", derandomize=True, deadline=None, database=None, max_examples=20
)
# Looks for more, for minutes: `--hypothesis-profile=long --timeout=0`.
hypothesis.settings.register_profile("long", deadline=None, database=None, max_examples=5000)
hypothesis.settings.load_profile("fixed")

_REPOSITORY = Path(__file__).resolve().parent.parent
_DEVICES = (0, 1)  # the ordinals that tests install on
_LIBRARY_MODULES = 20
MOST_MANAGED_BYTES = 24 << 30  # more could fill a card and hang it, for everybody


def pytest_configure() -> None:
    if Path(rmm_uvm.__file__).is_relative_to(_REPOSITORY / "rmm_uvm"):
        pytest.exit("tests run against the installed package: use `python -P -m pytest`", 2)
    # A script's shell ignores Ctrl-C in what it starts in the background, and what that starts
    # inherits it. Tests send it to programs of theirs.
    for number, default in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_collection_finish() -> None:
    _set_aside_what_stays()


def _set_aside_what_stays() -> None:
    # What was imported stays. Looked through at every collection, it would cost 0.2 s each time:
    # more than most tests, and installing, restoring and many tests collect.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _imports_set_aside() -> Iterator[None]:
    """Do the same for what a test was the first to import, if that is a library."""
    before = len(sys.modules)
    yield
    if len(sys.modules) - before >= _LIBRARY_MODULES:
        _set_aside_what_stays()


@functools.cache
def _why_no_gpu() -> str:
    try:
        rmm_uvm.cuda_driver(0)
    except rmm_uvm.errors.UvmError as error:
        return str(error)
    return ""


@functools.cache
def _check_cap() -> None:
    limit_bytes = managed_limit_bytes()
    if limit_bytes is None or limit_bytes > MOST_MANAGED_BYTES:
        pytest.exit("GPU tests need RMM_UVM_MANAGED_LIMIT, at most 24GiB", returncode=2)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is None:
        return
    if _why_no_gpu():  # the only reason for which a test is skipped
        pytest.skip(f"no GPU: {_why_no_gpu()}")
    _check_cap()


@pytest.fixture(autouse=True)
def _fixed_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test the same seed and no settings from the environment."""
    random.seed(20260)
    # IPython's shell puts its own module there and leaves it; multiprocessing reads it.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for name in [name for name in os.environ if name.startswith("RMM_UVM_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _resources_restored() -> Iterator[None]:
    """Put RMM's per-device resources and hooks back, whatever the test installed."""
    resources = {number: rmm.mr.get_per_device_resource(number) for number in _DEVICES}
    hooks = list(rmm.rmm._reinitialize_hooks)
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wirings = rmm_uvm.pool.install._wirings
        rmm_uvm.pool.install._wirings = tuple(each for each in wirings if not each.permanent)
        rmm_uvm.restore()
    for number, resource in resources.items():
        rmm.mr.set_per_device_resource(number, resource)
    rmm.rmm._reinitialize_hooks = hooks


@pytest.fixture(autouse=True)
def _nothing_leaked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a thread running, a file open or managed memory."""
    before = Before()
    yield
    request.node.funcargs.clear()  # pools that fixtures returned: pytest would let them go later
    let_go_of_failure()
    leaked = before.left_behind()
    assert not leaked, f"left behind: {leaked}"
