# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""All lines of a block at once, against one line after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.trace.log_lines import parse_lines

from ...fuzz import slow_log

_NUMBERS = st.sampled_from(
    (
        *(b"0", b"7", b"0x0", b"0x7fce86600000", b"0xFFFFFFFFFFFFFFFF", b"9" * 19, b"4294967295"),
        *(b"(nil)", b"", b"0x", b"-1", b"9" * 20, b"0x10000000000000000", b"12a", b"x", b"(nil"),
        *(b"4294967296", b"1_0", b" 1", b"0X1", b"+1"),
    )
)
_TIMES = st.sampled_from(
    (
        *(b"10:00:00.000001", b"23:59:60:999999", b"24:00:00.000000", b"10:60:00.000000"),
        *(b"10:00:00.00000", b"10:00:00,000000", b"1a:00:00.000000", b"10.00:00.000000", b""),
    )
)
_ACTIONS = st.sampled_from([b"allocate", b"free", b"allocate failure", b"steal", b"", b"fre"])
_LINES = st.one_of(
    st.tuples(_NUMBERS, _TIMES, _ACTIONS, _NUMBERS, _NUMBERS, _NUMBERS).map(b",".join),
    st.tuples(
        st.sampled_from([b"1", b"22"]),
        st.sampled_from([b"10:00:00.000001"]),
        st.sampled_from([b"allocate", b"free"]),
        *[st.sampled_from([b"0", b"0x7fce86600000", b"123"])] * 3,
    ).map(b",".join),
    st.binary(max_size=20).map(lambda text: text.replace(b"\n", b"")),
    st.sampled_from([b"", b",,,,,", b",,,,,,", b"\r", b"1,2,3,4,5,6"]),
)


@given(st.lists(st.tuples(_LINES, st.sampled_from([b"\n", b"\r\n"])), max_size=30))
def test_lines_are_understood_as_by_a_slow_reader(lines: list[tuple[bytes, bytes]]) -> None:
    text = b"".join(line + end for line, end in lines)

    found = parse_lines(text)

    understood = found.events[["kind", "address", "bytes", "thread"]].tolist()
    assert understood == slow_log.rows(text)
    assert found.total == len(lines)
    alone = [slow_log.rows(line) for line, _ in lines]
    assert found.numbers.tolist() == [number for number, rows in enumerate(alone) if rows]
    assert found.bad.tolist() == [
        number
        for number, (line, end) in enumerate(lines)
        if not alone[number] and (line + end).rstrip(b"\n") not in (b"", b"\r")
    ]


def test_time_of_the_day_is_in_nanoseconds() -> None:
    found = parse_lines(b"1,23:59:58.123456,free,0x1,1,0\n")
    assert found.events["time_ns"].tolist() == [((23 * 60 + 59) * 60 + 58) * 10**9 + 123_456_000]
