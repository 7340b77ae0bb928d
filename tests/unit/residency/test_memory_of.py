# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an object has: cuDF's, arrays', buffers' and containers'."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import rmm
from hypothesis import given
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.errors import DataError
from rmm_uvm.residency import Region, memory_of
from rmm_uvm.residency.memory_of import joined
from rmm_uvm.residency.streams import stream_handle

from .cudf_stand_ins import (
    Buffer,
    CategoricalDtype,
    Column,
    DataFrame,
    Index,
    PlcColumn,
    PlcTable,
    RangeIndex,
    SpillableBuffer,
)


class Array:
    """Anything with the interface, such as an array of CuPy or Numba."""

    def __init__(self, address: int | None, shape: tuple[int, ...], **more: Any) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": "<f4",
            "strides": None,
            "version": 3,
            **more,
        }


class Tensor:
    """A tensor of PyTorch: a parameter refuses its interface, since it needs a gradient."""

    is_cuda = True
    device = "cuda:0"

    def __init__(self, address: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
        self._address, self.shape, self._steps = address, shape, steps

    @property
    def __cuda_array_interface__(self) -> None:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")

    def data_ptr(self) -> int:
        return self._address

    def stride(self) -> tuple[int, ...]:
        return self._steps

    def element_size(self) -> int:
        return 2  # bfloat16, which the interface has no name for

    def numel(self) -> int:
        return int(np.prod(self.shape))


Tensor.__module__ = "torch"


class HostTensor(Tensor):
    is_cuda = False
    device = "cpu"


HostTensor.__module__ = "torch"


class SparseTensor(Tensor):
    def stride(self) -> tuple[int, ...]:
        raise RuntimeError("sparse tensors do not have strides")


SparseTensor.__module__ = "torch.sparse"


def found(thing: object) -> list[tuple[int, int]]:
    return [tuple(region) for region in memory_of(thing)]  # type: ignore[misc]


# -- cuDF ----------------------------------------------------------------------------------------


def column(address: int, nbytes: int = 64, **more: Any) -> Column:
    return Column(PlcColumn(Buffer(address, nbytes), **more))


def test_column_has_its_data_its_mask_and_its_children() -> None:
    offsets = PlcColumn(Buffer(3000, 30))
    text = Column(PlcColumn(Buffer(1000, 10), Buffer(2000, 20), (offsets,)))
    assert found(text) == [(1000, 10), (2000, 20), (3000, 30)]


def test_column_of_structs_has_only_what_its_children_have() -> None:
    inner = PlcColumn(children=(PlcColumn(Buffer(1000, 10)), PlcColumn(Buffer(2000, 20))))
    assert found(Column(PlcColumn(mask=Buffer(500, 8), children=(inner,)))) == [
        (500, 8),
        (1000, 10),
        (2000, 20),
    ]


def test_column_of_categories_has_them_too() -> None:
    categories = column(9000, 90)
    coded = Column(PlcColumn(Buffer(1000, 10)), CategoricalDtype(categories))
    assert found(coded) == [(1000, 10), (9000, 90)]
    unknown = Column(PlcColumn(Buffer(1000, 10)), CategoricalDtype(None))
    assert found(unknown) == [(1000, 10)]


def test_frame_has_its_columns_and_its_index() -> None:
    frame = DataFrame(column(1000), column(2000), index=Index(column(3000)))
    assert found(frame) == [(1000, 64), (2000, 64), (3000, 64)]


def test_index_of_a_range_has_no_memory_and_none_is_made() -> None:
    assert found(DataFrame(column(1000))) == [(1000, 64)]
    assert found(RangeIndex(10**9)) == []


def test_buffer_that_is_shared_is_not_copied() -> None:
    shared = Buffer(1000, 10)  # its __cuda_array_interface__ would copy it, and raises here
    assert found([shared, Column(PlcColumn(shared))]) == [(1000, 10)]


def test_buffer_that_cudf_spilled_is_left_where_it_is() -> None:
    here, gone = SpillableBuffer(1000, 10, "gpu"), SpillableBuffer(77, 20, "cpu")
    assert found(DataFrame(Column(PlcColumn(here, gone)))) == [(1000, 10)]
    assert found(gone) == []


def test_table_of_libcudf_has_its_columns() -> None:
    assert found(PlcTable(PlcColumn(Buffer(1000, 10)), PlcColumn(Buffer(2000, 20)))) == [
        (1000, 10),
        (2000, 20),
    ]


def test_proxy_of_cudf_pandas_is_what_it_stands_for_now() -> None:
    class Proxy:
        @property
        def _fsproxy_fast(self) -> None:
            raise AssertionError("a hint moved data to the device")

        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"a hint ran {name} through a proxy")

    proxy = Proxy()
    proxy.__dict__["_fsproxy_wrapped"] = DataFrame(column(1000))
    assert found(proxy) == [(1000, 64)]
    proxy.__dict__["_fsproxy_wrapped"] = pd.DataFrame({"a": [1]})
    with pytest.raises(DataError, match="DataFrame is in host memory"):
        memory_of(proxy)


def test_object_of_cudf_without_columns_is_refused() -> None:
    other = type("GroupBy", (), {"__module__": "cudf.core.groupby"})()
    with pytest.raises(DataError, match="GroupBy of cuDF has neither columns nor a buffer"):
        memory_of(other)


def test_columns_nested_without_end_are_refused() -> None:
    endless = PlcColumn(Buffer(1000, 10))
    endless._children = (endless,)
    with pytest.raises(DataError, match="nested more than"):
        memory_of(endless)


# -- arrays and buffers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "region"),
    [
        (Array(4096, (10,)), (4096, 40)),
        (Array(4096, ()), (4096, 4)),
        (Array(4096, (3, 5)), (4096, 60)),
        (Array(4096, (3, 5), strides=(40, 4)), (4096, 100)),
        (Array(4096, (10,), strides=(-4,)), (4060, 40)),  # reversed: from its first byte
        (Array(4096, (5,), strides=(0,)), (4096, 4)),  # broadcast
        (Array(4096, (2,), typestr="<M8[ns]"), (4096, 16)),
        (Array(4096, (2,), typestr="|V12"), (4096, 24)),
    ],
)
def test_array_counts_from_its_first_byte_to_its_last(
    array: Array, region: tuple[int, int]
) -> None:
    assert found(array) == [region]


@pytest.mark.parametrize("address", [0, None])
def test_array_without_elements_has_no_memory(address: int | None) -> None:
    assert found(Array(address, (3, 0))) == []


def test_mask_of_an_array_counts_too() -> None:
    assert found(Array(4096, (10,), mask=Array(8192, (2,)))) == [(4096, 40), (8192, 8)]


@pytest.mark.parametrize(
    "interface",
    [
        {},
        {"data": (4096, False), "shape": (3,)},
        {"data": (4096, False), "shape": (3,), "typestr": "float"},
        {"data": (None, False), "shape": (3,), "typestr": "<f4"},
        {"data": (-8, False), "shape": (3,), "typestr": "<f4"},
        {"data": (4096, False), "shape": (3,), "typestr": "<f4", "strides": (4, 4)},
        {"data": (2**64 - 4, False), "shape": (3,), "typestr": "<f4"},
        7,
    ],
)
def test_interface_that_cannot_be_is_refused(interface: object) -> None:
    with pytest.raises(DataError):
        memory_of(SimpleNamespace(__cuda_array_interface__=interface))


def test_parameter_of_torch_has_its_memory_though_it_needs_a_gradient() -> None:
    assert found(Tensor(4096, (3, 4), (4, 1))) == [(4096, 24)]
    assert found(Tensor(4096, (3, 4), (8, 1))) == [(4096, 40)]
    assert found(Tensor(0, (0, 4), (4, 1))) == []


def test_tensor_on_the_host_is_refused() -> None:
    with pytest.raises(DataError, match=r"host memory \(cpu\)"):
        memory_of(HostTensor(4096, (3,), (1,)))
    with pytest.raises(DataError, match="sparse"):
        memory_of(SparseTensor(4096, (3,), (1,)))


def test_device_buffer_has_its_memory() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="32MiB")
    buffer = rmm.DeviceBuffer(size=1000, mr=mr)
    assert found(buffer) == [(buffer.ptr, 1000)]
    assert found(rmm.DeviceBuffer(size=0, mr=mr)) == []


def test_plain_buffer_counts_bytes_and_not_elements() -> None:
    assert found(SimpleNamespace(ptr=4096, size=10, nbytes=80)) == [(4096, 80)]
    assert found(SimpleNamespace(ptr=4096, size=10)) == [(4096, 10)]


@pytest.mark.parametrize(
    "thing", [np.zeros(3), pd.Series([1]), pd.DataFrame({"a": [1]}), np.float64(1)]
)
def test_host_memory_is_refused(thing: object) -> None:
    with pytest.raises(DataError, match="is in host memory"):
        memory_of(thing)


# -- pairs and containers ------------------------------------------------------------------------


def test_pair_is_an_address_and_a_size() -> None:
    assert found((4096, 100)) == [(4096, 100)]
    assert found((np.uint64(4096), np.int64(100))) == [(4096, 100)]
    assert found((4096, 0)) == []


@pytest.mark.parametrize("pair", [(4096, -1), (-4096, 10), (2**64, 1), (2**64 - 1, 2)])
def test_pair_that_no_address_space_has_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(DataError, match="no address space"):
        memory_of(pair)


def test_containers_have_what_is_in_them_once() -> None:
    array = Array(4096, (10,))
    assert found({"a": [array, (array,)], "b": {(8192, 8)}}) == [(4096, 40), (8192, 8)]
    assert found([]) == []


def test_iterators_and_views_have_what_they_give_once() -> None:
    array = Array(4096, (10,))
    assert found(one for one in [array, array, (8192, 8)]) == [(4096, 40), (8192, 8)]
    assert found({"a": array}.values()) == found(deque([array])) == [(4096, 40)]
    assert found({"a": map(lambda one: one, [array])}) == [(4096, 40)]  # also within others
    assert found(iter([])) == []


def test_what_can_be_iterated_over_but_holds_no_things_is_refused_by_its_own_name() -> None:
    class FrameOfDask:
        def __iter__(self) -> Iterator[str]:
            return iter(["a", "b"])

        def __repr__(self) -> str:
            return "<frame of Dask>"

    with pytest.raises(DataError, match=r"^<frame of Dask> has no device memory"):
        memory_of(FrameOfDask())


def test_iterator_that_gives_itself_for_ever_is_refused() -> None:
    def endless() -> Iterator[Any]:
        while True:
            yield endless()

    with pytest.raises(DataError, match="nested more than"):
        memory_of(endless())


def test_container_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(DataError, match="nested more than"):
        memory_of(endless)


@pytest.mark.parametrize(
    "thing", [None, 7, "frame", b"bytes", [1, 2], (True, 8), (1.0, 8), object(), [None]]
)
def test_what_has_no_device_memory_is_refused(thing: object) -> None:
    with pytest.raises(DataError, match="no device memory that could be found"):
        memory_of(thing)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20))))
def test_joined_regions_have_the_same_bytes_once(pairs: list[tuple[int, int]]) -> None:
    def bytes_of(regions: Iterable[Region]) -> list[int]:
        return [byte for region in regions for byte in range(region.address, region.end)]

    regions = [Region(*pair) for pair in pairs]
    result = joined(regions)
    assert bytes_of(result) == sorted(set(bytes_of(regions)))
    assert all(a.end < b.address for a, b in pairwise(result))


# -- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (2, 2),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 7)), 7),
        (SimpleNamespace(__cuda_stream__=(0, 7)), 7),
        (SimpleNamespace(cuda_stream=8), 8),  # PyTorch
        (SimpleNamespace(ptr=9), 9),  # CuPy
        (SimpleNamespace(handle=ctypes.c_void_p(10)), 10),  # Numba
        (SimpleNamespace(handle=ctypes.c_void_p(0)), 0),
    ],
)
def test_streams_of_libraries_have_their_handles(stream: object, handle: int) -> None:
    assert stream_handle(stream) == handle


def test_stream_of_rmm_has_its_handle() -> None:
    from rmm.pylibrmm.stream import DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM

    assert stream_handle(DEFAULT_STREAM) == 0
    assert stream_handle(PER_THREAD_DEFAULT_STREAM) == 2


@pytest.mark.parametrize(
    "stream", ["default", True, -1, 2**64, object(), SimpleNamespace(ptr="9"), 1.0]
)
def test_stream_that_is_none_is_refused(stream: object) -> None:
    with pytest.raises(DataError):
        stream_handle(stream)
