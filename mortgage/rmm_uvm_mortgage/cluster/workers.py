# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Asks workers what they are, and whether they can do the pipeline's work, before any is done."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import AvailabilityError, ConfigurationError, UvmError
from rmm_uvm_mortgage.cluster.worker_engine import no_pool

if TYPE_CHECKING:
    from distributed import Client

_PACKAGE = "rmm-uvm"


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """One worker, as it says itself.

    Parameters
    ----------
    address, name : str
        As Dask has them.
    host : str
        Name of its machine.
    pid : int
        Its process.
    device_name : str
        Of its device; empty without a pool.
    device_uuid : str
        Of its GPU; empty on a simulated device.
    capacity_bytes : int
        Memory of its device.
    simulated : bool
        Whether the device is simulated.
    problems : tuple of str
        What keeps it from working; each continues a sentence that begins with the worker.
    """

    address: str
    name: str
    host: str
    pid: int
    device_name: str
    device_uuid: str
    capacity_bytes: int
    simulated: bool
    problems: tuple[str, ...] = ()


def describe_worker(data: Path, *, own_pool: bool, dask_worker: Any) -> WorkerInfo:
    """Say what this worker is; `distributed.Client.run` calls it there.

    Parameters
    ----------
    data : Path
        Data set that it must be able to read.
    own_pool : bool
        Whether it must have a pool that `rmm_uvm.reinitialize` installed.
    dask_worker : distributed.Worker
        The worker.
    """
    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm.pool.install import current_installation

    problems = []
    info = None
    installation = current_installation()
    if installation is not None and installation.devices:
        info = installation.devices[0].info
        if not installation.devices[0].current:
            problems.append("has a pool of rmm_uvm that something else has replaced")
    elif own_pool:
        problems.append(no_pool())
    else:
        try:
            info = cuda_driver().info
        except UvmError as error:
            problems.append(f"has no GPU: {error}")
    if info is not None:
        problems += _missing_libraries(simulated=info.simulated)
    if not (data / "names.csv").is_file():
        problems.append(f"cannot read {data}, or finds no names.csv there")
    return WorkerInfo(
        address=str(dask_worker.address),
        name=str(dask_worker.name),
        host=socket.gethostname(),
        pid=os.getpid(),
        device_name="" if info is None else info.name,
        device_uuid="" if info is None or info.simulated else info.uuid,
        capacity_bytes=0 if info is None else info.total_bytes,
        simulated=info is not None and info.simulated,
        problems=tuple(problems),
    )


def _missing_libraries(*, simulated: bool) -> list[str]:
    needed = ("pandas", "pyarrow", "xgboost") if simulated else ("cudf", "pyarrow", "xgboost")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    extra = "cpu" if simulated else "gpu"
    return (
        [f"lacks {', '.join(missing)}: pip install 'rmm-uvm-mortgage[{extra}]'"] if missing else []
    )


def nccl_problem() -> str:
    """Return why XGBoost cannot train on several GPUs here; empty if it can.

    XGBoost opens NCCL when it needs it, from the wheel or from where the linker looks.
    """
    import ctypes

    import xgboost

    build = xgboost.build_info()
    if not build.get("USE_CUDA"):
        return "has an XGBoost without CUDA: pip install xgboost, not xgboost-cpu"
    if not build.get("USE_NCCL"):
        return "has an XGBoost without NCCL, which training on several GPUs needs"
    if not build.get("USE_DLOPEN_NCCL"):
        return ""
    try:
        if importlib.util.find_spec("nvidia.nccl") is not None:
            return ""
    except ModuleNotFoundError:  # of nvidia itself
        pass
    try:
        ctypes.CDLL("libnccl.so.2")
    except OSError:
        return "lacks NCCL, which training on several GPUs needs: pip install nvidia-nccl-cu13"
    return ""


def find_workers(
    client: Client, data: Path, *, trains: bool, own_pool: bool = True
) -> tuple[WorkerInfo, ...]:
    """Return the workers of a cluster, all able to do the work.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    data : Path
        The data set, absolute.
    trains : bool
        Whether a model is to be trained.
    own_pool : bool
        See `describe_worker`.

    Returns
    -------
    tuple of WorkerInfo
        In order of their names.

    Raises
    ------
    AvailabilityError
        There are no workers, or one of them lacks something.
    ConfigurationError
        Some devices are simulated and others not, or two workers share a process or a GPU.
    """
    address = client.scheduler.address
    if not client.scheduler_info(n_workers=-1)["workers"]:
        raise AvailabilityError(f"the scheduler at {address} has no workers: start some first")
    _check_versions(client, trains=trains)
    found = _ask(client, describe_worker, data, own_pool=own_pool)
    workers = tuple(sorted(found.values(), key=_order))
    if not workers:
        raise AvailabilityError(f"the workers of the scheduler at {address} have gone")
    _check_problems(workers, {worker.address: worker.problems for worker in workers})
    if trains and len(workers) > 1 and not workers[0].simulated:
        answers = _ask(client, nccl_problem)
        _check_problems(workers, {a: (said,) if said else () for a, said in answers.items()})
    _check_alike(workers, trains=trains)
    return workers


def _ask(client: Client, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function on all workers; return the results by address."""
    try:
        return client.run(function, *args, **options)
    except Exception as error:  # what cannot be unpickled comes as text
        if not any(kind in f"{error!r}" for kind in ("ImportError", "NotFoundError", "AttributeE")):
            raise
        raise AvailabilityError(
            f"a worker has another build of {_PACKAGE} of the same version: {error}"
        ) from error


def _check_problems(workers: Sequence[WorkerInfo], problems: Mapping[str, Sequence[str]]) -> None:
    """Raise the problems of the first worker that has some."""
    troubled = [worker for worker in workers if problems.get(worker.address)]
    if troubled:
        first, others = troubled[0], len(troubled) - 1
        more = f" ({others} more worker{'s' if others > 1 else ''} cannot work either)"
        raise AvailabilityError(
            f"worker {first.name} {'; it '.join(problems[first.address])}{more if others else ''}"
        )


def _check_versions(client: Client, *, trains: bool) -> None:
    """Refuse a scheduler or workers without this package, or with another version of it.

    Schedulers unpack the tasks that they pass on, and XGBoost's workers meet there.
    """
    found = client.get_versions(packages=[_PACKAGE, "xgboost", "xgboost-cpu"])
    ours = found["client"]["packages"][_PACKAGE]
    places = {f"the worker at {address}": each for address, each in found["workers"].items()}
    places = {"the scheduler": found["scheduler"], **places}
    for place, each in places.items():
        packages = each["packages"]
        theirs = packages[_PACKAGE]
        if theirs is None:
            raise AvailabilityError(
                f"{place} does not have {_PACKAGE}: install it where scheduler and workers run"
            )
        if theirs != ours:
            raise AvailabilityError(
                f"{place} has {_PACKAGE} {theirs}, here is {ours}: install the same version"
            )
        if trains and packages["xgboost"] is None and packages["xgboost-cpu"] is None:
            raise AvailabilityError(
                f"{place} does not have xgboost: install it where scheduler and workers run"
            )


def _check_alike(workers: Sequence[WorkerInfo], *, trains: bool) -> None:
    if len({worker.simulated for worker in workers}) > 1:
        raise ConfigurationError(
            "some workers have GPUs and others simulated devices: use one kind"
        )
    processes = Counter((worker.host, worker.pid) for worker in workers)
    if max(processes.values()) > 1:
        raise ConfigurationError(
            "several workers share a process, and so a pool: start workers as processes"
        )
    gpus = Counter(worker.device_uuid for worker in workers if worker.device_uuid)
    if trains and gpus and max(gpus.values()) > 1:
        raise ConfigurationError(
            f"{max(gpus.values())} workers share the GPU {gpus.most_common(1)[0][0]}, and XGBoost "
            "needs one for each: start fewer, or use --train-parts 0"
        )


def _order(worker: WorkerInfo) -> tuple[int, int, str]:
    """Order names that are numbers as numbers."""
    return (0, int(worker.name), "") if worker.name.isdigit() else (1, 0, worker.name)
