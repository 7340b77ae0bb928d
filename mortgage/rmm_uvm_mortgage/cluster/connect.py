# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reaching workers: those of a cluster made for the run, or of one that exists."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.support.variables import setting

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10.0


def check_dask() -> None:
    """Raise AvailabilityError where Dask, or its data frames, which XGBoost needs, are missing."""
    try:
        import dask.dataframe  # noqa: F401
        import distributed  # noqa: F401
    except ImportError as error:
        raise AvailabilityError(
            "a cluster needs Dask and its data frames: "
            "pip install 'rmm-uvm[dask]' 'rmm-uvm-mortgage[cpu]'"
        ) from error


def no_gpu_reason() -> str:
    """Return why workers that are started here would have no GPU; empty if they would.

    Opens no device: a CUDA context in this process would be in the workers' way.
    """
    from rmm_uvm._lib.cuda import Nvml, libcuda_available

    name = setting("RMM_UVM_DRIVER")
    if name.startswith("simulated"):
        return f"RMM_UVM_DRIVER is {name}"
    if not (loaded := libcuda_available()):
        return loaded.reason
    nvml = Nvml()
    if not nvml.available:
        return nvml.available.reason
    if not nvml.devices():
        return "NVML finds no GPU"
    if importlib.util.find_spec("cudf") is None:
        return "there is a GPU, but not cudf: pip install 'rmm-uvm-mortgage[gpu]'"
    return ""


@contextlib.contextmanager
def local_workers(
    workers: int,
    device_bytes: int | None,
    pool_bytes: int | float | None,
    budget_bytes: int | float | str | None = None,
    eviction: str | None = None,
) -> Iterator[Any]:
    """Start workers on this machine, and end them with the context.

    Parameters
    ----------
    workers : int
        How many; >= 1. With GPUs each has its own.
    device_bytes : int or None
        Memory of each worker's simulated device, in bytes; None for GPUs.
    pool_bytes : int, float or None
        First slab of each worker's pool, in bytes; None as `rmm_uvm.reinitialize` decides.
    budget_bytes, eviction : int or float, and str, or None
        ``device_budget`` and ``eviction`` of `rmm_uvm.reinitialize`.

    Yields
    ------
    distributed.Client
        Connected.

    Raises
    ------
    ConfigurationError, AvailabilityError
        As `rmm_uvm.dask.local_cluster`.
    """
    from distributed import Client

    from rmm_uvm.dask import local_cluster

    settings: dict[str, Any] = {
        "simulated": False if device_bytes is None else device_bytes,
        "monitor": False,  # the report says what moved; warnings would say it again
    }
    if pool_bytes is not None:
        settings["initial_pool_size"] = pool_bytes
    if budget_bytes is not None:
        settings["device_budget"] = budget_bytes
    if eviction is not None:
        settings["eviction"] = eviction
    # A terminal's Ctrl-C goes to workers as well, and each would print a traceback. Processes and
    # threads keep what is blocked where they start; here it only waits until the cluster is there.
    resource_tracker.ensure_running()  # it would unblock the signal when the first process starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        cluster = local_cluster(workers, **settings)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    with cluster:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        with Client(cluster) as client:
            yield client


@contextlib.contextmanager
def existing_workers(address: str, *, connect_seconds: float = CONNECT_SECONDS) -> Iterator[Client]:
    """Connect to a cluster, and leave it running.

    Parameters
    ----------
    address : str
        Of the scheduler, such as "tcp://10.0.0.1:8786".
    connect_seconds : float
        How long to try.

    Yields
    ------
    distributed.Client
        Connected.

    Raises
    ------
    ConfigurationError
        The address cannot be understood.
    AvailabilityError
        Nobody answers there.
    """
    from distributed import Client

    try:
        client = Client(address, timeout=connect_seconds)
    except (ValueError, ImportError) as error:
        raise ConfigurationError(f"--scheduler {address}: {_first_line(error)}") from error
    except (OSError, RuntimeError) as error:
        raise AvailabilityError(
            f"no scheduler answers at {address}: {_first_line(error)}"
        ) from error
    with client:
        yield client


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
