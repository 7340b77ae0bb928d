# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""CuPy: arrays that are handed to others, and its own kernels, just before they are launched.

``cupy.ndarray`` is a class of Python's around one of C, and takes attributes. The types of its
ufuncs, kernels and reductions take none: of these the slot that a call goes through is replaced
(`rmm_uvm._lib.cupy_calls`). Sorts, scans, products of matrices and what CUB reduces never pass it,
so the methods that lead there are seen themselves.
"""

from __future__ import annotations

import atexit
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rmm_uvm._lib.cupy_calls import unwatch, watch
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.integrations.seen.announcer import Announcer, Use
from rmm_uvm.integrations.seen.arrays import ArrayUses, cupy_base
from rmm_uvm.integrations.seen.seam import Seam
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.residency.streams import stream_handle

__all__ = ["CupyArrays", "CupyKernels", "wire_cupy"]

# Types whose objects launch kernels when they are called. A RawKernel calls a Function.
_KERNELS = (
    ("cupy._core._kernel", "ufunc"),
    ("cupy._core._kernel", "ElementwiseKernel"),
    ("cupy._core._reduction", "ReductionKernel"),
    ("cupy._core._reduction", "_SimpleReductionKernel"),
    ("cupy.cuda.function", "Function"),
)
# Methods of arrays that lead to CUB, Thrust, cuBLAS or a copy, past all of these.
_METHODS = (
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "ptp",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
    "sort",
    "argsort",
    "partition",
    "argpartition",
    "dot",
    "__matmul__",
    "copy",
    "flatten",
    "astype",
)
# Calls of Python's that do.
_CALLS = (
    ("cupy._core._gufuncs", "_GUFunc", "__call__"),  # matmul
    ("cupy._core.fusion", "Fusion", "__call__"),
    ("cupy._core.new_fusion", "Fusion", "__call__"),
    ("cupy._core", None, "tensordot_core"),
)


def wire_cupy(residencies: Sequence[ManagedResidency]) -> list[Wiring]:
    """Announce arrays of CuPy that are handed out, and what its kernels are given.

    From now on, or from the import of CuPy on.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        Of the managed pools that keep a budget.
    """
    return [
        CupyArrays(residencies).wiring("cupy_arrays", package="cupy"),
        CupyKernels(residencies).wiring("cupy_kernels", package="cupy"),
    ]


class CupyArrays(Seam):
    """Arrays whose address somebody asks for, or that methods use without calling a kernel."""

    def __init__(self, residencies: Sequence[ManagedResidency]) -> None:
        super().__init__(Announcer("CuPy", residencies), {"cupy": self._attach})
        self._uses = _CallUses()

    def _attach(self) -> None:
        array = sys.modules["cupy"].ndarray
        base: Any = cupy_base(array)
        if base is None or base is array:
            raise TypeError(f"{array!r} is not a Python class")
        for name in ("data", "__cuda_array_interface__"):
            theirs = vars(base)[name]
            label = f"ndarray.{name}"
            get = self.announcer.before(label, theirs.__get__, self._uses.of_call)
            handed_out = property(get, theirs.__set__, doc=theirs.__doc__)
            self.announcer.replace(array, name, handed_out, label)
        for name in _METHODS:
            if name in vars(base) and name not in vars(array):
                self._replace(array, name, f"ndarray.{name}")
        for module, kind, name in _CALLS:
            try:
                found = importlib.import_module(module)
            except ImportError:  # another version's
                continue
            thing = found if kind is None else getattr(found, kind, None)
            if hasattr(thing, name):
                self._replace(thing, name, f"{module}.{kind or name}")

    def _replace(self, thing: Any, name: str, label: str) -> None:
        ours = self.announcer.before(label, getattr(thing, name), self._uses.of_call)
        self.announcer.replace(thing, name, ours, label)


class CupyKernels(Seam):
    """Sees the arrays that CuPy's own kernels are given.

    Attributes
    ----------
    refused : dict of str to str
        Types of kernels that are not seen, and why.
    """

    def __init__(self, residencies: Sequence[ManagedResidency]) -> None:
        super().__init__(Announcer("CuPy", residencies), {"cupy": self._attach})
        self._residencies = tuple(residencies)
        self._uses = _CallUses()
        self._before: Callable[..., None] | None = None
        self.refused: dict[str, str] = {}

    def detach(self) -> None:
        """Announce nothing any more."""
        super().detach()
        if self._before is not None:
            unwatch(self._before)
            self._before = None
            atexit.unregister(self.detach)

    def _attach(self) -> None:
        kinds = []
        for module, name in _KERNELS:
            kind = getattr(importlib.import_module(module), name, None)
            if kind is None:
                self.refused[name] = "there is none"
            else:
                kinds.append(kind)
        self._before = self.announcer.before("a kernel", _nothing, self._uses.of_call)
        atexit.register(self.detach)  # calls may follow while what is watched goes
        self.refused |= watch(kinds, self._residencies, self._before)
        for name, why in self.refused.items():
            self.announcer.fail(f"calls of {name}", TypeError(why))


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Nothing follows: the call itself is made elsewhere."""


class _CallUses:
    """The memory that a call of CuPy uses, on its current stream where it names none."""

    def __init__(self) -> None:
        self._arrays = ArrayUses()

    def of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Use], int]:
        stream = kwargs.get("stream")
        if kwargs:
            args += tuple(each for each in kwargs.values() if each is not stream)
        uses = self._arrays.of_things(args)
        if not uses:
            return uses, 0
        if stream is None:
            stream = sys.modules["cupy"].cuda.get_current_stream()
        return uses, stream_handle(stream)
