# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of CuPy are announced when they are handed out, and when CuPy's kernels use them.

Arrays and kernels are played by classes that are as those of CuPy 14, without a device.
"""

from __future__ import annotations

import functools
import importlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import MonitorWarning
from rmm_uvm.integrations.seen.cupy import CupyArrays, CupyKernels, wire_cupy

MIB = 1 << 20


class Memory:
    def __init__(self, buffer: rmm.DeviceBuffer) -> None:
        self._held = buffer
        self.ptr, self.size = buffer.ptr, buffer.size


class Pointer:
    """As ``cupy.cuda.MemoryPointer``."""

    ptr = mem = 0  # its class has them

    def __init__(self, memory: Memory, offset: int = 0) -> None:
        self.mem: Any = memory
        self.ptr = memory.ptr + offset


class _ndarray_base:  # noqa: N801 - CuPy's name, by which it is known
    __slots__ = ("_pointer", "flags", "itemsize", "shape", "strides")

    def __init__(
        self, pointer: Pointer, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
    ) -> None:
        self._pointer, self.shape, self.itemsize = pointer, shape, 8
        self.flags = types.SimpleNamespace(forc=strides is None)
        self.strides = strides

    @property
    def nbytes(self) -> int:
        count = self.itemsize
        for each in self.shape:
            count *= each
        return count

    @property
    def data(self) -> Pointer:
        return self._pointer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self._pointer.ptr, False), "shape": self.shape, "typestr": "<f8"}


def _method(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return self, args, kwargs


METHODS = (
    *("sum", "prod", "mean", "max", "min", "ptp", "argmax", "argmin", "cumsum", "cumprod"),
    *("sort", "argsort", "partition", "argpartition"),
    *("dot", "__matmul__", "copy", "flatten", "astype"),
)
for _name in METHODS:
    setattr(_ndarray_base, _name, _method)
_ndarray_base.__module__ = "cupy._core.core"


class ndarray(_ndarray_base):  # noqa: N801 - CuPy's name
    """Of Python: its attributes can be replaced."""

    __slots__ = ()


class Kernel:
    """As one of CuPy's types that have a call of their own."""

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        if "error" in kwargs:
            raise KeyError("of the program")
        return args, kwargs


class Stream:
    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


KINDS = {
    name: type(name, (), {"__call__": Kernel.__call__})
    for name in (
        "ufunc",
        "ElementwiseKernel",
        "ReductionKernel",
        "_SimpleReductionKernel",
        "Function",
        "_GUFunc",
        "Fusion",
        "NewFusion",
    )
}


def play_cupy(play: Any) -> Any:
    """Put it in the place of CuPy."""
    array_kind = type("ndarray", (ndarray,), {"__slots__": ()})
    cupy = play("cupy", ndarray=array_kind)
    play("cupy.cuda", get_current_stream=lambda: Stream(7))
    play("cupy.cuda.function", Function=KINDS["Function"])
    play("cupy._core", tensordot_core=Kernel())
    play("cupy._core._gufuncs", _GUFunc=KINDS["_GUFunc"])
    play("cupy._core.fusion", Fusion=KINDS["Fusion"])
    play("cupy._core.new_fusion", Fusion=KINDS["NewFusion"])
    play("cupy._core._kernel", ufunc=KINDS["ufunc"], ElementwiseKernel=KINDS["ElementwiseKernel"])
    play(
        "cupy._core._reduction",
        ReductionKernel=KINDS["ReductionKernel"],
        _SimpleReductionKernel=KINDS["_SimpleReductionKernel"],
    )
    return cupy


KERNELS = [
    ("cupy._core._kernel", "ufunc"),
    ("cupy._core._kernel", "ElementwiseKernel"),
    ("cupy._core._reduction", "ReductionKernel"),
    ("cupy._core._reduction", "_SimpleReductionKernel"),
    ("cupy.cuda.function", "Function"),
]


@pytest.fixture
def cupy(play: Any) -> Any:
    return play_cupy(play)


@pytest.fixture
def make(cupy: Any, pool: Any) -> Callable[..., Any]:
    """Makes an array of so many MiB, or a view of one."""

    def made(mib: int, **view: Any) -> Any:
        pointer = Pointer(Memory(rmm.DeviceBuffer(size=mib * MIB, mr=pool)), view.pop("offset", 0))
        return cupy.ndarray(pointer, view.pop("shape", (mib * MIB // 8,)), **view)

    return made


@pytest.fixture
def arrays(residency: Any, cupy: Any) -> Iterator[CupyArrays]:
    arrays = CupyArrays([residency])
    arrays.attach_when_imported()
    yield arrays
    arrays.detach()


@pytest.fixture
def kernels(residency: Any, cupy: Any) -> Iterator[CupyKernels]:
    kernels = CupyKernels([residency])
    kernels.attach_when_imported()
    yield kernels
    kernels.detach()


def kernel(cupy: Any, name: str = "ufunc") -> Any:
    return getattr(cupy._core._kernel, name)()


@pytest.mark.parametrize("name", ["data", "__cuda_array_interface__"])
def test_an_array_that_is_handed_out_is_announced(
    arrays: Any, make: Any, full: Any, announced: Any, name: str
) -> None:
    array = make(4)
    got = getattr(array, name)
    assert (got["data"][0] if isinstance(got, dict) else got.ptr) == array._pointer.ptr
    assert announced() == 4


def test_while_all_is_present_nothing_is_announced(
    arrays: Any, kernels: Any, cupy: Any, make: Any, announced: Any
) -> None:
    array = make(4)
    assert array.data.ptr
    kernel(cupy)(array)
    assert announced() == 0


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_call_no_kernel_of_cupys_are_announced(
    arrays: Any, make: Any, full: Any, announced: Any, name: str
) -> None:
    first, second = make(4), make(2)
    assert getattr(first, name)(second) == (first, (second,), {})
    assert announced() == 6
    assert getattr(first, name)(out=second) == (first, (), {"out": second})
    assert announced() == 6


def test_operators_are_methods(arrays: Any, make: Any, full: Any, announced: Any) -> None:
    first, second = make(4), make(2)
    assert first @ second == (first, (second,), {})
    assert announced() == 6


def test_calls_of_python_that_lead_to_libraries_are_announced(
    arrays: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    first, second = make(4), make(2)
    for module, name in (("_gufuncs", "_GUFunc"), ("fusion", "Fusion"), ("new_fusion", "Fusion")):
        getattr(getattr(cupy._core, module), name)()(first, second)
        assert announced() == 6
    cupy._core.tensordot_core(first, second)
    assert announced() == 6


@pytest.mark.parametrize(("module", "name"), KERNELS)
def test_what_a_kernel_is_given_is_announced_in_one(
    kernels: Any, make: Any, full: Any, announced: Any, residency: Any, module: str, name: str
) -> None:
    given = getattr(importlib.import_module(module), name)()
    first, second = make(4), make(2)
    assert given(first, 3, out=second) == ((first, 3), {"out": second})
    assert announced() == 6
    assert given((1, 1), (32,), (5, first, second)) == (((1, 1), (32,), (5, first, second)), {})
    assert announced() == 6
    assert kernels.refused == {}
    assert full


def test_an_array_that_is_given_twice_counts_once(
    kernels: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    array = make(4)
    kernel(cupy)(array, array, out=array)
    assert announced() == 4


def test_pointers_and_lists_are_looked_at(
    kernels: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    kernel(cupy)([make(4)._pointer], list(range(1000)), "text")
    assert announced() == 4


def test_an_array_that_was_handed_out_does_not_count_twice(
    arrays: Any, kernels: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    kernel(cupy)(make(4))
    assert announced() == 4


def test_of_a_view_its_own_bytes_are_announced(
    kernels: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    rows = 2 * MIB // 8
    kernel(cupy)(make(8, offset=4 * MIB, shape=(rows,)))
    assert announced() == 2
    kernel(cupy)(make(8, shape=(rows // 2,), strides=(16,)))
    assert announced() == 2
    kernel(cupy)(make(8, offset=2 * MIB - 8, shape=(rows,), strides=(-8,)))
    assert announced() == 2
    kernel(cupy)(make(8, shape=(0,)))
    assert announced() == 0


@pytest.mark.parametrize("named", [True, False])
def test_a_kernel_waits_on_its_stream_or_on_the_current_one(
    kernels: Any, cupy: Any, make: Any, full: Any, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(kernels.announcer, "tell", lambda _uses, stream, **_: asked.append(stream))
    kernel(cupy)(make(4), **({"stream": Stream(9)} if named else {}))
    assert asked == [9 if named else 7]


def test_errors_of_the_call_come_through(
    kernels: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    with pytest.raises(KeyError, match="of the program"):
        kernel(cupy)(make(4), error=True)
    assert announced() == 4


def test_a_call_that_cannot_be_looked_at_goes_on_and_only_that_one(
    kernels: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    odd = make(4)
    odd._pointer.mem = None
    with pytest.warns(MonitorWarning, match=r"CuPy uses in a kernel cannot be seen"):
        assert kernel(cupy)(odd) == ((odd,), {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        kernel(cupy)(odd)
        kernel(cupy)(make(4))
    assert announced() == 4


def test_looking_at_memory_is_no_use(arrays: Any, make: Any, full: Any, announced: Any) -> None:
    array = make(4)
    assert rmm_uvm.residency.memory_of(array) == ((array._pointer.ptr, 4 * MIB),)
    assert announced() == 0


def test_it_ends(residency: Any, cupy: Any, make: Any, full: Any, announced: Any) -> None:
    seams = [kind([residency]) for kind in (CupyArrays, CupyKernels) for _ in range(2)]
    for each in seams:
        each.attach_when_imported()
    array = make(2)
    kernel(cupy)(array)
    assert announced() == 4  # each of two tells
    for each in reversed(seams):
        each.detach()
    kernel(cupy)(array)
    array.sum()
    assert array.data.ptr
    assert announced() == 0
    assert "data" not in vars(cupy.ndarray)
    assert "sum" not in vars(cupy.ndarray)


def test_one_of_two_that_ends_leaves_the_other(
    residency: Any, cupy: Any, make: Any, full: Any, announced: Any
) -> None:
    first, second = (CupyKernels([residency]) for _ in range(2))
    for each in (first, second):
        each.attach_when_imported()
    first.detach()
    kernel(cupy)(make(2))
    assert announced() == 2
    second.detach()


def test_classes_made_of_a_kernels_meanwhile_go_on(
    residency: Any, cupy: Any, make: Any, full: Any
) -> None:
    kernels = CupyKernels([residency])
    kernels.attach_when_imported()

    class Own(cupy._core._kernel.ufunc):  # type: ignore[misc]
        """Its calls are those of its base."""

    array = make(2)
    assert Own()(array) == ((array,), {})
    kernels.detach()
    assert Own()(array) == ((array,), {})


def test_kernels_of_another_make_are_left_alone_and_said(
    residency: Any, cupy: Any, play: Any, make: Any, full: Any, announced: Any
) -> None:
    play("cupy.cuda.function", Function=functools.partial)  # its calls go another way
    play("cupy._core._kernel", ufunc=int.__add__, ElementwiseKernel=object)
    kernels = CupyKernels([residency])
    with pytest.warns(MonitorWarning, match=r"cannot be seen \(TypeError: it is no type\)"):
        kernels.attach_when_imported()
    assert kernels.refused == {
        "partial": "its calls go another way",
        repr(int.__add__): "it is no type",
        "object": "its objects cannot be called",
    }
    array = make(2)
    functools.partial(Kernel(), array)()
    assert announced() == 0
    cupy._core._reduction.ReductionKernel()(array)
    assert announced() == 2
    kernels.detach()


def test_arrays_of_another_make_are_left_alone_and_said(residency: Any, play: Any) -> None:
    play("cupy", ndarray=list)
    arrays = CupyArrays([residency])
    with pytest.warns(MonitorWarning, match=r"rmm_uvm\.touch"):
        arrays.attach_when_imported()


def test_without_cupy_the_table_says_so(residency: Any) -> None:
    assert [(each.library, each.reason) for each in wire_cupy([residency])] == [
        ("cupy_arrays", "CuPy is not installed"),
        ("cupy_kernels", "CuPy is not installed"),
    ]
