# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes: what is accepted, what is refused and in which words, and how they are printed."""

import math
import re
from typing import Any

import numpy as np
import pytest
import rmm
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.units import format_bytes, parse_bytes, parse_size

GIB = 2**30


@pytest.mark.parametrize(
    ("value", "expected_bytes"),
    [
        (1, 1),
        (2**63 - 1, 2**63 - 1),
        (np.int64(4096), 4096),
        ("4096", 4096),
        ("512B", 512),
        ("2GiB", 2 * GIB),
        ("2GB", 2 * 10**9),
        ("2gib", 2 * GIB),
        ("512 MiB", 512 * 2**20),
        ("1.5\tkB", 1500),
        (" 1 TiB ", 2**40),
        ("1e9", 10**9),
        ("1.5e+3KiB", 1500 * 1024),
        ("2PB", 2 * 10**15),
        ("1.0009 kB", 1000),
    ],
)
def test_parse_bytes_accepted_value_gives_bytes(value: Any, expected_bytes: int) -> None:
    result = parse_bytes(value)
    assert result == expected_bytes
    assert type(result) is int


@pytest.mark.parametrize(
    "value",
    [
        "", "GiB", "2 XB", "2GiB free", "-2GiB", "1e-3GiB", "nan", "inf", "0x10", "1_000",
        "2Q", "1,5 GiB", "\N{ARABIC-INDIC DIGIT ONE}GiB", "2\N{KELVIN SIGN}B", True, False,
        np.True_, None, b"2GiB", [1], 2.0, math.nan,
    ],
)  # fmt: skip
def test_parse_bytes_nonsense_names_argument_and_what_is_accepted(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r'^pool_size=.*: expected .*"2GiB"'):
        parse_bytes(value, "pool_size")


@pytest.mark.parametrize(
    ("value", "binary", "decimal"),
    [
        ("2G", "2GiB", "2GB"),
        ("512m", "512MiB", "512MB"),
        ("1.5 k", "1.5 KiB", "1.5 kB"),
        (" 2Gi ", "2GiB", "2GB"),
    ],
)
def test_parse_bytes_half_a_unit_is_told_both_whole_ones(
    value: str, binary: str, decimal: str
) -> None:
    told = f": write {binary} (powers of 1024) or {decimal} (of 1000); expected an"
    with pytest.raises(ConfigurationError, match=f"^pool_size=.*{re.escape(told)}"):
        parse_bytes(value, "pool_size")
    with pytest.raises(ConfigurationError, match=f"{re.escape(told)}.*or a fraction"):
        parse_size(value, 16 * GIB)
    assert parse_bytes(binary) > parse_bytes(decimal)


@pytest.mark.parametrize("value", ["G", "-2G", "2X", "2Gb free", "2GG", "2\N{KELVIN SIGN}"])
def test_parse_bytes_of_no_unit_at_all_guesses_none(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^size=.*: expected "):
        parse_bytes(value)


@pytest.mark.parametrize("value", ["2.5b", "0.5 B"])
def test_parse_bytes_fraction_of_a_byte_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^pool_size=.*: no whole .*: give a unit; exp"):
        parse_bytes(value, "pool_size")


@pytest.mark.parametrize("value", ["1.5", "0.4", "1.", "1.0001", "0.0", "90%", "90 %", "1e-3"])
def test_parse_bytes_fraction_of_no_device_is_refused_and_told_how(value: str) -> None:
    told = r"^pool_size=.*: a fraction of a device, and none is meant here: give a unit; expected"
    with pytest.raises(ConfigurationError, match=told):
        parse_bytes(value, "pool_size")


@pytest.mark.parametrize("value", ["1.5", "120%", "1.0001", "1.5e9"])
def test_parse_size_more_than_all_is_refused_and_told_how(value: str) -> None:
    told = "a fraction is at most 1, and bytes have a unit; expected"
    with pytest.raises(ConfigurationError, match=told):
        parse_size(value, 16 * GIB)


@pytest.mark.parametrize("value", [0, -1, -(2**70), "0", "0 GiB"])
def test_parse_bytes_not_positive_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^pool_size=.* must be greater than 0"):
        parse_bytes(value, "pool_size")


@pytest.mark.parametrize("value", [2**63, "8192PiB", "9" * 400, "1e400"])
def test_parse_bytes_beyond_64_bits_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"below 2\*\*63"):
        parse_bytes(value)


def test_parse_bytes_minimum_is_a_bound_included() -> None:
    assert parse_bytes(0, minimum_bytes=0) == 0
    assert parse_bytes(256, minimum_bytes=256) == 256
    with pytest.raises(ConfigurationError, match="256 bytes or more"):
        parse_bytes(255, minimum_bytes=256)


class _Initial:
    """Stands for an upstream; a pool asks it for the initial size while it is built."""

    def __init__(self) -> None:
        self.requested_bytes: list[int] = []

    def allocate(self, size_bytes: int, stream: object = None) -> int:
        self.requested_bytes.append(size_bytes)
        # The pool only does arithmetic with the address; nothing is read or written.
        return 1 << 32

    def deallocate(self, address: int, size_bytes: int, stream: object = None) -> None:
        pass


def rmm_bytes(value: str) -> int:
    """Return what RMM's own parser, which Python cannot call, makes of a size."""
    upstream = _Initial()
    callback = rmm.mr.CallbackMemoryResource(upstream.allocate, upstream.deallocate)
    pool = rmm.mr.PoolMemoryResource(callback, initial_pool_size=value)
    size_bytes: int = pool.pool_size()
    assert upstream.requested_bytes == [size_bytes]
    return size_bytes


# Multiples of 256 bytes: RMM's pool takes no other initial sizes.
@pytest.mark.parametrize(
    "value", ["256", "512b", "1KiB", "256kB", "1.5MiB", "0.25 GiB", "32 MB", "2gIb", "1tib"]
)
def test_parse_bytes_where_rmm_accepts_agrees(value: str) -> None:
    assert parse_bytes(value) == rmm_bytes(value)


@given(
    amount=st.decimals(min_value=1, max_value=4096, places=3),
    unit=st.sampled_from(["kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "PB", "PiB"]),
)
def test_parse_bytes_any_decimal_rounds_as_rmm_does(amount: Any, unit: str) -> None:
    # RMM's rule (pylibrmm/helper.pyx): the double nearest the number, times the unit, cut off.
    base = 1024 if "i" in unit else 1000
    multiplier = base ** ("kmgtp".index(unit[0].lower()) + 1)
    if (expected_bytes := int(float(str(amount)) * multiplier)) < 2**63:
        assert parse_bytes(f"{amount}{unit}") == expected_bytes


@pytest.mark.parametrize(
    ("value", "expected_bytes"),
    [
        (0.5, 8 * GIB),
        (1.0, 16 * GIB),
        (1, 1),
        ("1", 1),
        (np.float64(0.25), 4 * GIB),
        (20 * GIB, 20 * GIB),
        ("20GiB", 20 * GIB),
        ("0.5", 8 * GIB),
        (".5", 8 * GIB),
        ("1.0", 16 * GIB),
        ("1.", 16 * GIB),
        ("50%", 8 * GIB),
        (" 12.5 % ", 2 * GIB),
        ("100%", 16 * GIB),
        ("5e-1", 8 * GIB),
    ],
)
def test_parse_size_bytes_or_fraction_gives_bytes(value: Any, expected_bytes: int) -> None:
    assert parse_size(value, 16 * GIB) == expected_bytes


@pytest.mark.parametrize(
    "value",
    [
        *(0.0, -0.5, 1.0001, 1e30, math.nan, math.inf, -math.inf, True),
        *("half", "", "-1", "2 XB", "nan", "0%", "-5%", "%", "0.0", "1e30", "50%GiB"),
    ],
)
def test_parse_size_nonsense_names_fraction(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^maximum=.*fraction of device memory"):
        parse_size(value, 16 * GIB, "maximum")


def test_parse_size_fraction_below_one_byte_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="greater than 0"):
        parse_size(1e-12, 16 * GIB)


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (2 * GIB, "2.00 GiB"),
        (2**20 - 1, "1.00 MiB"),
        (int(1023.99 * 2**20), "1023.99 MiB"),
        (139 * GIB + GIB // 2, "139.50 GiB"),
        (3 * 2**60, "3072.00 PiB"),
        (-5 * 2**20, "-5.00 MiB"),
    ],
)
def test_format_bytes_gives_binary_unit(size_bytes: int, expected: str) -> None:
    assert format_bytes(size_bytes) == expected


@given(st.integers(min_value=1, max_value=2**62))
def test_format_bytes_read_back_is_close(size_bytes: int) -> None:
    assert parse_bytes(format_bytes(size_bytes)) == pytest.approx(size_bytes, rel=0.01)
