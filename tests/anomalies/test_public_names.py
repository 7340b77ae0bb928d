# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the package offers is used by an operation that is made to fail, or it is told why not.

It is seen which functions run in an operation: a new public name that none uses fails here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pytest

from .harness import Operation, used_by
from .installing import INSTALLING, WITHOUT_DRIVER
from .openings import exporter, opening
from .operations import OPERATIONS
from .tools import ASKING, OF_FILES
from .use import Used
from .world import World

__all__ = ["exporter", "opening"]  # fixtures

API = Path(__file__).resolve().parents[2] / "docs" / "api"

VALUE = "a plain value"  # has its fields, and does nothing when it is made: held below
TYPE = "a type, for annotations"
GPU = "needs a GPU: tests/gpu"
TORCH = "needs a GPU that torch sees: tests/gpu; with one that stands in, tests/unit/torch"
CLUSTER = "needs a cluster, with its processes and its network: tests/integration/test_dask_*.py"
PATTERN = "gives a value that says how a kernel goes over memory; asks the machine for nothing"
EXCEPTIONS = {
    "rmm_uvm.cuda_driver": GPU,
    "rmm_uvm.drivers.cuda_driver": GPU,
    "rmm_uvm.drivers.CudaDriver": GPU,
    "rmm_uvm.torch.TorchMemory": TORCH,
    "rmm_uvm.torch.install": TORCH,
    "rmm_uvm.torch.installed_memory": TORCH,
    "rmm_uvm.torch.managed": TORCH,
    "rmm_uvm.dask.UvmPlugin": CLUSTER,
    "rmm_uvm.dask.UvmSchedulerPlugin": CLUSTER,
    "rmm_uvm.dask.dask_setup": CLUSTER,
    "rmm_uvm.dask.dask_teardown": CLUSTER,
    "rmm_uvm.dask.local_cluster": CLUSTER,
    "rmm_uvm.dask.report": CLUSTER,
    "rmm_uvm.dask.warn_here": CLUSTER,
    "rmm_uvm.doctor.DeviceFacts": VALUE,
    "rmm_uvm.doctor.HarvestFacts": VALUE,
    "rmm_uvm.doctor.PairFacts": VALUE,
    "rmm_uvm.doctor.Planner": TYPE,
    "rmm_uvm.doctor.PoolPlan": VALUE,
    "rmm_uvm.doctor.Probe": TYPE,
    "rmm_uvm.harvest.Claim": VALUE,
    "rmm_uvm.pool.installation.RemoteInstallation": VALUE,
    "rmm_uvm.planner.Helps": VALUE,
    "rmm_uvm.simulator.hash_join_probe": PATTERN,
    "rmm_uvm.simulator.pointer_chase": PATTERN,
    "rmm_uvm.simulator.random_pages": PATTERN,
    "rmm_uvm.simulator.recorded": PATTERN,
    "rmm_uvm.simulator.strided": PATTERN,
    "rmm_uvm.simulator.zipf": PATTERN,
    "rmm_uvm.recording.finding.Finding": VALUE,
}


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield what the modules of the API reference offer and can be called, errors aside."""
    for page in sorted(API.glob("*.rst")):
        for module in re.findall(r"automodule:: (\S+)", page.read_text()):
            offered = importlib.import_module(module)
            for name in offered.__all__:
                value = getattr(offered, name)
                is_error = inspect.isclass(value) and issubclass(value, BaseException)
                if callable(value) and not is_error:
                    yield f"{module}.{name}", value


def test_public_name_is_used_by_an_operation_or_it_is_told_why_not(
    opening: Operation, tmp_path: Path
) -> None:
    operations = [*WITHOUT_DRIVER, *OF_FILES, *INSTALLING, *ASKING, *OPERATIONS, opening]
    used = [used_by(each, tmp_path) for each in operations]
    unused = {name for name, value in public_names() if not any(value in one for one in used)}
    assert unused == set(EXCEPTIONS)


@pytest.mark.parametrize("name", [name for name, why in EXCEPTIONS.items() if why == VALUE])
def test_plain_value_does_nothing_when_it_is_made(name: str) -> None:
    value = dict(public_names())[name]
    assert dataclasses.is_dataclass(value)
    assert not hasattr(value, "__post_init__")


def in_parts() -> int:
    return sum(whole() for _ in range(2))


def whole() -> int:
    return 1


class Made:
    def method(self) -> int:
        return whole()


class Idle(Made):
    def method(self) -> int:
        return 0


@runtime_checkable
class Asked(Protocol):
    def method(self) -> int: ...


def test_use_is_seen_and_only_where_there_is_any() -> None:
    used = Used()
    with used:
        in_parts()
        assert isinstance(Made(), Asked)
        Made().method()
    assert in_parts in used
    assert whole in used
    assert Made in used
    assert Idle not in used
    assert Asked not in used
    assert World.fill not in used
    used.add((1, Idle()))
    assert Idle in used
