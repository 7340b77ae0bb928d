# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The bytes of a handle: round trips, and everything that is none refused in words."""

from __future__ import annotations

import math
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import DataError
from rmm_uvm.ipc.handle import MAGIC, VERSION, Handle

TYPES = {"|u1": 1, "<f4": 4, "<M8[ns]": 8, "|V24": 24, ">c16": 16, "|b1": 1}


@st.composite
def handles(draw: st.DrawFn) -> Handle:
    typestr = draw(st.sampled_from(sorted(TYPES)))
    shape = tuple(draw(st.lists(st.integers(1, 50), max_size=5)))
    nbytes = TYPES[typestr] * math.prod(shape)
    offset = draw(st.integers(0, 2**40))
    return Handle(
        simulated=draw(st.booleans()),
        machine=draw(st.binary(min_size=16, max_size=16)),
        device=draw(st.binary(min_size=16, max_size=16)),
        table=draw(st.binary(min_size=16, max_size=16)),
        slot=draw(st.integers(0, 2**32 - 1)),
        generation=draw(st.integers(0, 2**64 - 1)),
        expires_ns=draw(st.integers(0, 2**64 - 1)),
        slab_bytes=offset + nbytes + draw(st.integers(0, 2**40)),
        offset=offset,
        nbytes=nbytes,
        slab_handle=draw(st.binary(min_size=64, max_size=64)),
        event_handle=draw(st.binary(min_size=64, max_size=64)),
        typestr=typestr,
        shape=shape,
    )


def example(**changes: Any) -> Handle:
    handle = Handle(
        simulated=True,
        machine=b"m" * 16,
        device=b"d" * 16,
        table=b"t" * 16,
        slot=7,
        generation=8,
        expires_ns=9,
        slab_bytes=4096,
        offset=256,
        nbytes=24,
        slab_handle=b"s" * 64,
        event_handle=b"e" * 64,
        typestr="<f4",
        shape=(2, 3),
    )
    return handle._replace(**changes)


def checked(body: bytes) -> bytes:
    """Give altered bytes a right checksum, as somebody would who invents handles."""
    return body + zlib.crc32(body).to_bytes(4, "little")


@given(handles())
def test_handle_survives_its_bytes(handle: Handle) -> None:
    packed = handle.pack()
    assert Handle.unpack(packed) == handle
    assert Handle.unpack(bytearray(packed)) == Handle.unpack(memoryview(packed)) == handle


def test_layout_is_the_documented_one() -> None:
    packed = example().pack()
    assert packed[:8] == b"rmmuvmIP"
    assert packed[8:16] == bytes([1, 0, 1, 0]) + len(packed).to_bytes(4, "little")
    assert packed[16:64] == b"m" * 16 + b"d" * 16 + b"t" * 16
    assert packed[64:72] == bytes([7, 0, 0, 0, 2, 0, 0, 0])
    numbers = [int.from_bytes(packed[at : at + 8], "little") for at in range(72, 120, 8)]
    assert numbers == [8, 9, 4096, 256, 24, 0]
    assert packed[120:248] == b"s" * 64 + b"e" * 64
    assert packed[248:264] == bytes([2, *[0] * 7, 3, *[0] * 7])
    assert packed[264:267] == b"<f4"
    assert packed[267:] == zlib.crc32(packed[:267]).to_bytes(4, "little")


@given(handles(), st.data())
def test_handle_with_a_changed_bit_is_refused(handle: Handle, data: st.DataObject) -> None:
    packed = bytearray(handle.pack())
    bit = data.draw(st.integers(0, 8 * len(packed) - 1))
    packed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DataError):
        Handle.unpack(bytes(packed))


@given(handles(), st.data())
def test_handle_that_was_cut_is_refused(handle: Handle, data: st.DataObject) -> None:
    packed = handle.pack()
    with pytest.raises(DataError):
        Handle.unpack(packed[: data.draw(st.integers(0, len(packed) - 1))])


@given(st.binary(max_size=400), st.booleans())
def test_garbage_is_no_handle(garbage: bytes, begins_well: bool) -> None:
    beginning = MAGIC + VERSION.to_bytes(2, "little") if begins_well else b""
    for packed in (beginning + garbage, checked(beginning + garbage)):
        with pytest.raises(DataError):
            Handle.unpack(packed)


@pytest.mark.parametrize("value", [None, "rmmuvmIP", 7, [1, 2]])
def test_what_is_not_bytes_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="a handle is bytes, not"):
        Handle.unpack(value)


@pytest.mark.parametrize("version", [0, 2, 65535])
def test_other_version_is_named(version: int) -> None:
    packed = example().pack()
    other = checked(packed[:8] + version.to_bytes(2, "little") + packed[10:-4])
    with pytest.raises(DataError, match=f"has version {version}, this rmm_uvm reads version 1"):
        Handle.unpack(other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": 4096 - 23}, "24 B at byte 4073 pass the end of its slab of 4.00 KiB"),
        ({"offset": 2**64 - 1}, "of its slab of 4.00 KiB"),
        ({"slab_bytes": 279}, "of its slab of 279 B"),
        ({"nbytes": 28}, "contradicts itself: 28 bytes of type '<f4'"),
        ({"nbytes": 0, "shape": (0,)}, "contradicts itself"),
        ({"shape": (2**63, 2**63)}, "contradicts itself"),
        ({"typestr": "float"}, "contradicts itself"),
        ({"shape": (1,) * 33}, "contradicts itself"),
    ],
)
def test_invented_handle_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Handle.unpack(example(**changes).pack())


def test_number_of_dimensions_that_goes_past_the_end_is_refused() -> None:
    body = bytearray(example().pack()[:-4])
    body[68] = 20
    with pytest.raises(DataError, match="contradicts itself"):
        Handle.unpack(checked(bytes(body)))


def test_length_that_is_another_is_refused() -> None:
    with pytest.raises(DataError, match="contradicts itself"):
        Handle.unpack(checked(example().pack()[:-4] + b"4"))
