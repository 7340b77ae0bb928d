# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A process in which packages are missing, or of a version that is too old."""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

OLD = "0.1"
# By distribution, the modules that it brings. One that is not installed here can be missing, too.
MODULES = {
    "cudf-cu13": ("cudf", "pylibcudf"),
    "cupy-cuda13x": ("cupy",),
    "torch": ("torch",),
    "dask-cuda": ("dask_cuda",),
    "dask": ("dask", "distributed", "dask_cuda", "distributed_ucxx"),
    "distributed-ucxx-cu13": ("distributed_ucxx",),
    "bokeh": ("bokeh",),
    "prometheus-client": ("prometheus_client",),
    "ipython": ("IPython",),
    "pandas": ("pandas",),
    "pyarrow": ("pyarrow",),
    "xgboost-cpu": ("xgboost",),
    "matplotlib": ("matplotlib",),
    "nvidia-cuda-cupti": ("nvidia",),
    "xgboost": ("xgboost",),
}


class Finder(importlib.abc.MetaPathFinder):
    """Finds what another finder does, but for some modules: none, or empty ones in their place."""

    def __init__(self, finder: Any, modules: Sequence[str], *, empty: bool) -> None:
        self._finder = finder
        self._modules = frozenset(modules)
        self._empty = empty

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        root = name.partition(".")[0]
        if root not in self._modules:
            return self._finder.find_spec(name, path, target)
        if self._empty and name == root:
            return importlib.machinery.ModuleSpec(name, Empty(), is_package=True)
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)  # distributions are found by finders as well


class Empty(importlib.abc.Loader):
    """Makes a package that has a version and nothing else."""

    def create_module(self, spec: Any) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__version__ = OLD  # type: ignore[attr-defined]


def take(package: str, *, version: str | None) -> None:
    """Let a package be missing in this process, or be of an old `version`, from now on."""
    modules = MODULES[package]
    for name in [name for name in sys.modules if name.partition(".")[0] in modules]:
        del sys.modules[name]
    sys.meta_path[:] = [
        Finder(finder, modules, empty=version is not None) for finder in sys.meta_path
    ]
    real = importlib.metadata.version

    def told(name: str) -> str:
        if name != package:
            return real(name)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    importlib.metadata.version = told
    if package in BESIDE:
        BESIDE[package](version)


def without_cupti(version: str | None = None) -> None:
    """Let NVIDIA's finder find no CUPTI, or the one of an older CUDA; no toolkit has one.

    A simulated device tells causes by itself: let it be asked for as on a GPU.
    """
    import cuda.pathfinder

    from rmm_uvm.machine import cupti_library
    from rmm_uvm.watch.sampling import causes

    def find(name: str) -> SimpleNamespace:
        if version is None:
            raise RuntimeError(name)
        return SimpleNamespace(abs_path="/old/libcupti.so.12")

    cuda.pathfinder.load_nvidia_dynamic_lib = find
    cupti_library.find_cupti.__defaults__ = (Path("/nowhere"),)
    causes.SimulatedDevice = type(None)


def _gpu_for_dask(_version: str | None) -> None:
    """Let `local_cluster` see a GPU: only where there is one it asks for dask-cuda."""
    from rmm_uvm.dask.cluster import local as cluster

    found = cluster._look_around()
    seen = dataclasses.replace(found, gpus=1, visible_devices=None)
    cluster._look_around = lambda: seen


def _gpu_for_mortgage(_version: str | None) -> None:
    """Let the mortgage pipeline see a GPU: only where there is one it asks for cuDF."""
    from rmm_uvm import drivers
    from rmm_uvm_mortgage import gpu_run

    drivers.cuda_driver = lambda: None
    gpu_run.setting = lambda _name: ""


# What else is to be so where a package is missing or too old.
BESIDE: Mapping[str, Callable[[str | None], None]] = {
    "nvidia-cuda-cupti": without_cupti,
    "cudf-cu13": _gpu_for_mortgage,
    "dask-cuda": _gpu_for_dask,
}
