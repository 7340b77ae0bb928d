# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask workers on simulated devices: `client.run(rmm_uvm.reinitialize)` and the preload."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker

import cloudpickle
import dask
import pytest
import rmm
from distributed import Client, LocalCluster

import rmm_uvm

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True, scope="module")
def _resource_tracker() -> None:
    """Start what Python starts with the first child process and keeps until the end."""
    resource_tracker.ensure_running()


@pytest.fixture(autouse=True)
def _simulated_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes inherit the environment."""
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")


@pytest.fixture
def client() -> Iterator[Client]:
    with _cluster() as cluster, Client(cluster) as client:
        yield client


def _cluster() -> LocalCluster:
    return LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")


def _installed_mr() -> str:
    return type(rmm.mr.get_per_device_resource(0)).__name__


def _pool_bytes() -> int:
    return rmm_uvm.current_installation().devices[0].sizes.initial_bytes


def test_client_run_reinitialize_returns_the_table_and_restore_undoes_it(client: Client) -> None:
    (handle,) = client.run(rmm_uvm.reinitialize, "32MiB").values()

    assert "initial size   32.00 MiB" in repr(handle)
    assert list(client.run(_installed_mr).values()) == ["UvmResourceAdaptor"]
    client.run(rmm_uvm.restore)
    assert list(client.run(_installed_mr).values()) == ["CudaMemoryResource"]


def test_client_run_reinitialize_with_bad_size_raises_and_installs_nothing(client: Client) -> None:
    with pytest.raises(rmm_uvm.errors.ConfigurationError, match="initial_pool_size"):
        client.run(rmm_uvm.reinitialize, "2 apples")

    assert list(client.run(_installed_mr).values()) == ["CudaMemoryResource"]


def test_preload_with_settings_installs_them_in_the_worker() -> None:
    settings = {
        "distributed.worker.preload": ["rmm_uvm.dask"],
        "rmm-uvm": {"initial-pool-size": "16MiB"},
    }
    with dask.config.set(settings), _cluster() as cluster, Client(cluster) as client:
        assert list(client.run(_pool_bytes).values()) == [16 << 20]


def test_preload_module_without_dask_can_be_imported() -> None:
    program = "import sys; sys.modules['dask'] = None; import rmm_uvm.dask"
    subprocess.run([sys.executable, "-P", "-c", program], check=True)


def test_sent_handle_of_a_released_pool_says_that_it_is_gone() -> None:
    with rmm_uvm.reinitialize("32MiB") as handle:
        sent_alive = pickle.loads(pickle.dumps(handle))
    sent_released = pickle.loads(pickle.dumps(handle))

    assert "32.00 MiB" in repr(sent_alive)
    assert "not installed any more" in repr(sent_released)
