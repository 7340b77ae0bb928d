# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: whatever a test allocates through RMM comes from our pool.

    RMM_UVM_MANAGED_LIMIT=1GiB python -m pytest -p under_pool TESTS

A test that replaces the pool is on its own from there on: the next one finds ours again. So is a
`LocalCUDACluster` that is told which pool to make.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rmm_uvm


def pytest_configure() -> None:
    """Have the workers of a `LocalCUDACluster` install our pool, too."""
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError:
        return
    make = LocalCUDACluster.__init__

    def with_our_pool(self: Any, *args: Any, **kwargs: Any) -> None:
        if not any(name.startswith("rmm_") and value for name, value in kwargs.items()):
            preload = kwargs.pop("preload", None) or []
            words = [preload] if isinstance(preload, str) else list(preload)
            kwargs["preload"] = ["rmm_uvm.dask", *words]
        make(self, *args, **kwargs)

    LocalCUDACluster.__init__ = with_our_pool


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Install our pool, unless it is there."""
    handle = rmm_uvm.current_installation()
    if handle is None or not handle.devices[0].current:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the test before has left
            rmm_uvm.reinitialize(monitor=False)
