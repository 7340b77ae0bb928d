# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A cluster on this machine in one line: `local_cluster`.

With GPUs it is dask-cuda's LocalCUDACluster, set up right; without, Dask's LocalCluster whose
workers run the same preload on simulated devices. Choosing is a pure function, `plan_cluster`.

What a worker raises at its start reaches the cluster's process without its cause: an exception that
is pickled loses it. The worker therefore also tells the scheduler, which is in that process.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
from importlib.metadata import entry_points
from typing import Any

from distributed import SchedulerPlugin

from rmm_uvm.dask import defaults
from rmm_uvm.dask.cluster.planning import Surroundings, plan_cluster
from rmm_uvm.dask.cluster.scheduler_plugin import UvmSchedulerPlugin
from rmm_uvm.dask.preload import EVENT_TOPIC, REFUSED
from rmm_uvm.dask.worker.nanny import LocalNanny
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.support.off_switch import is_off
from rmm_uvm.support.requirements import install_extra
from rmm_uvm.support.variables import setting

__all__ = ["RefusedStarts", "local_cluster"]


class RefusedStarts(SchedulerPlugin):  # type: ignore[misc]
    """Collects the reasons of workers that refuse to start.

    Attributes
    ----------
    reasons : list of str
        One line for each worker, in order of time.
    """

    name = "rmm-uvm-refused-starts"

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def log_event(self, topic: str, msg: Any) -> None:
        """Notice an event; Dask calls it for every one."""
        if topic == EVENT_TOPIC and isinstance(msg, dict) and msg.get("action") == REFUSED:
            self.reasons.append(str(msg.get("reason")))


PROTOCOL = "ucxuvm"

_logger = logging.getLogger("rmm_uvm.dask")


def local_cluster(
    n_workers: int | None = None,
    *,
    simulated: bool | str | int | None = None,
    protocol: str | None = None,
    **keywords: Any,
) -> Any:
    """Start a cluster on this machine whose workers have the managed pool.

    Parameters
    ----------
    n_workers : int or None
        Workers, >= 1. None: one for each GPU, or two on simulated devices.
    simulated : bool, str, int or None
        Size of simulated devices, such as "64MiB", or True for 16 GiB: no GPU is used. None:
        simulated only where there is no GPU, or where settings say so; the first line that is
        logged tells. False: never.
    protocol : str or None
        None: ``ucxuvm`` where UCX is installed, else ``tcp``; on simulated devices ``tcp``.
    **keywords
        Settings (see `rmm_uvm.dask.UvmPlugin`), and anything that LocalCUDACluster or LocalCluster
        takes. ``device_memory_limit`` is 0 unless it is given: the pool moves data by itself.
        ``dashboard_address`` is ``127.0.0.1:8787`` unless it, a ``host`` or an ``interface`` is
        given: Dask's own would let other machines read the page.

    Returns
    -------
    dask_cuda.LocalCUDACluster or distributed.LocalCluster
        Running; a context manager, and what a Client is made of.

    Raises
    ------
    ConfigurationError
        A setting cannot be used, an option would replace the pool, or a worker refuses to start;
        the line is the worker's own.
    AvailabilityError
        There is no GPU and `simulated` is False, or Dask or dask-cuda is missing.

    Notes
    -----
    Workers are new processes, so a script calls this under ``if __name__ == "__main__":``. With
    ``asynchronous=True``, await what is returned; why a worker did not start is then in the log
    only. To look at a whole program on a laptop::

        with rmm_uvm.dask.local_cluster(4, simulated="64MiB") as cluster, Client(cluster) as client:
            ...
    """
    _refuse_without_guard()
    plan = plan_cluster(
        n_workers, simulated=simulated, protocol=protocol, keywords=keywords, around=_look_around()
    )
    for level, line in plan.lines:
        _logger.log(level, "rmm_uvm: %s", line)
    refused = RefusedStarts()
    kind = _simulated_kind() if plan.simulated else _cuda_kind()
    options = dict(plan.keywords)
    scheduler = dict(options.pop("scheduler_kwargs", None) or {})
    scheduler["plugins"] = [*scheduler.get("plugins", ()), refused, UvmSchedulerPlugin()]
    # Threads of this process have no nanny, and for log_spilling dask-cuda has one of its own.
    if options.get("processes") in (None, True) and not options.get("log_spilling"):
        options.setdefault("worker_class", LocalNanny)
    try:
        return _closing(kind)(scheduler_kwargs=scheduler, **options)
    except Exception:
        if not refused.reasons:
            raise
        more = len(refused.reasons) - 1
        workers = "one more worker" if more == 1 else f"{more} more workers"
        others = f" ({workers} did not start either)" if more else ""
        raise ConfigurationError(refused.reasons[0] + others) from None


def _refuse_without_guard() -> None:
    """Raise in a worker's process that imports the script for a second time.

    Dask would let each of them start a cluster too, which fails, and the first one waits for ever.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ConfigurationError(
            "workers are new processes, which import the script again: put local_cluster, and what "
            'follows it, under if __name__ == "__main__":'
        )


def _closing(kind: Any) -> Any:
    """Return a kind of cluster that is closed when it cannot be started."""

    class Cluster(kind):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**options)
            except Exception:
                # dask-cuda's leaves its scheduler and the workers that did start running. Without a
                # status there is nothing yet to close.
                if getattr(self, "status", None) is not None:
                    self.close()
                raise

    Cluster.__name__ = Cluster.__qualname__ = kind.__name__
    return Cluster


def _simulated_kind() -> Any:
    from distributed import LocalCluster

    return LocalCluster


def _cuda_kind() -> Any:
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise AvailabilityError(
            f"a cluster on GPUs needs dask-cuda: {install_extra('dask')} ({error})"
        ) from None
    return LocalCUDACluster


def _look_around() -> Surroundings:
    import dask.config

    gpus = _memory_of_gpus()
    return Surroundings(
        section=defaults.section(),
        driver=setting("RMM_UVM_DRIVER") or None,
        gpus=len(gpus),
        largest_gpu_bytes=max((known for known in gpus if known is not None), default=None),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        ucx_problem=_ucx_problem(),
        worker_preload=dask.config.get("distributed.worker.preload", None) or (),
        worker_preload_argv=dask.config.get("distributed.worker.preload-argv", None) or (),
        ucx_pool_size=dask.config.get("distributed-ucxx.rmm.pool-size", None),
        ucx_multi_buffer=bool(dask.config.get("distributed-ucxx.multi-buffer", None)),
        switched_off=is_off(),
    )


def _memory_of_gpus() -> list[int | None]:
    """Ask NVML, which makes no CUDA context: one in this process would be in the workers' way."""
    try:
        import pynvml

        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except Exception:  # no NVML, no driver, no permission: there is no GPU to use
        return []
    return [_memory_of_gpu(pynvml, index) for index in range(count)]


def _memory_of_gpu(pynvml: Any, index: int) -> int | None:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except Exception:  # one that shares the host's memory has none to tell
        return None


def _ucx_problem() -> str:
    """Return why the protocol ``ucxuvm`` cannot be used; empty if it can."""
    if not entry_points(group="distributed.comm.backends", name=PROTOCOL):
        return f"the protocol {PROTOCOL} is not registered; install rmm-uvm again"
    try:
        importlib.import_module("distributed_ucxx")
    except ImportError as error:
        return f"distributed-ucxx cannot be imported ({error}); {install_extra('dask')}"
    return ""
