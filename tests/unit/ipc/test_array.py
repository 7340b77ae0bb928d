# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What can be exported: contiguous arrays, told from others by their interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.ipc.array import ArrayView, item_bytes, view_of


class Array:
    """What CuPy has, over made-up memory."""

    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            "strides": None,
            "stream": 1,
            **changes,
        }


def test_view_has_place_length_type_and_stream() -> None:
    assert view_of(Array()) == ArrayView(4096, 24, "<f4", (2, 3), 1)
    assert view_of(Array(stream=None)).stream == 0
    assert view_of(Array(strides=(12, 4))).nbytes == 24


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strides": (24, 4)}, "C-contiguous"),
        ({"strides": (4, 8)}, "C-contiguous"),
        ({"strides": (-12, 4)}, "C-contiguous"),
        ({"shape": (0, 3)}, "no bytes to export"),
        ({"data": (0, False)}, "no bytes to export"),
        ({"mask": Array}, "masked"),
        ({"typestr": "|O8"}, "'|O8' cannot be exported"),
        ({"typestr": "<U4"}, "cannot be exported"),
    ],
)
def test_array_that_cannot_be_exported_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("|", r"\|")):
        view_of(Array(**changes))


@pytest.mark.parametrize("value", [None, b"bytes", np.zeros(3), 4096])
def test_what_is_not_on_a_device_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="has no __cuda_array_interface__"):
        view_of(value)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u8", "f2", "f8", "c8", "m8[s]", "M8[25us]", "S7", "V12"]
)
def test_item_bytes_are_those_of_numpy(dtype: str) -> None:
    known = np.dtype(dtype)
    assert item_bytes(known.str) == known.itemsize


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_contiguous_is_what_numpy_calls_so(shape: list[int], data: st.DataObject) -> None:
    array = np.zeros(shape, "<i4")
    steps = [data.draw(st.sampled_from([1, 2])) for _ in shape]
    axes = data.draw(st.permutations(range(len(shape))))
    view = array[tuple(slice(None, None, step) for step in steps)].transpose(axes)
    exported = Array(shape=view.shape, strides=view.strides, typestr="<i4")
    if view.flags.c_contiguous:
        assert view_of(exported).nbytes == view.nbytes
    else:
        with pytest.raises(ConfigurationError, match="C-contiguous"):
            view_of(exported)
