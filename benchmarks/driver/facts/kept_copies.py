# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs that the host keeps its copy of what is on the device, and what a write does."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .answer import Answer, Question
from .host_mappings import READ_MOSTLY, UNSET_READ_MOSTLY, PageTables, look_after, page_tables
from .kernels import Kernels
from .libcuda import Location
from .session import BLOCK_BYTES, MIB, Session

SIZE_BYTES = 512 * MIB
WRITTEN_BYTES = 64 * MIB  # less: two copies are slow to write
CALL_BYTES = {"a block": BLOCK_BYTES, "8 MiB": 8 * MIB, "32 MiB": 32 * MIB, "all": SIZE_BYTES}
LOOSE = ", without a preferred location"
REPEATS = 3
PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION = 3, 4  # CUmem_advise
OLD, NEW = 1, 2  # what is written into every byte


class TwoCopies:
    """Memory of which the host keeps its copy while it is on the device.

    Parameters
    ----------
    session : Session
    pointer, size_bytes : int
        Of whole blocks.
    belongs : bool
        Whether it belongs to the host meanwhile: its preferred location. In the sources the driver
        keeps the host's copy without that as well.
    """

    def __init__(
        self, session: Session, pointer: int, size_bytes: int, *, belongs: bool = True
    ) -> None:
        self._session = session
        self._pointer = pointer
        self._size_bytes = size_bytes
        self._belongs = belongs

    def come(self, call_bytes: int) -> None:
        """Bring it from the host, in calls of a length; the host keeps its pages."""
        for pointer, size_bytes in self._pieces(call_bytes):
            if self._belongs:
                self._advise(pointer, size_bytes, PREFERRED_LOCATION, self._session.on_host)
            self._advise(pointer, size_bytes, READ_MOSTLY, self._session.on_host)
            self._session.prefetch(pointer, size_bytes, self._session.on_device)
        self._session.synchronize()

    def leave(self, call_bytes: int) -> None:
        """Have the host's copy stay, and what was written meanwhile go there."""
        for pointer, size_bytes in self._pieces(call_bytes):
            if self._belongs:
                self._end(pointer, size_bytes, self._session.on_host)
            else:
                self._advise(pointer, size_bytes, UNSET_READ_MOSTLY, self._session.on_host)
            self._session.prefetch(pointer, size_bytes, self._session.on_host)
        self._session.synchronize()

    def end_here(self, call_bytes: int) -> None:
        """Have the device's copy stay."""
        for pointer, size_bytes in self._pieces(call_bytes):
            self._end(pointer, size_bytes, self._session.on_device)

    def _end(self, pointer: int, size_bytes: int, where: Location) -> None:
        for what in (PREFERRED_LOCATION, UNSET_READ_MOSTLY, UNSET_PREFERRED_LOCATION):
            self._advise(pointer, size_bytes, what, where)

    def _advise(self, pointer: int, size_bytes: int, what: int, where: Location) -> None:
        self._session.cuda("cuMemAdvise", pointer, size_bytes, what, where)

    def _pieces(self, call_bytes: int) -> Iterator[tuple[int, int]]:
        for offset in range(0, self._size_bytes, call_bytes):
            yield self._pointer + offset, min(call_bytes, self._size_bytes - offset)


def conclude(times: list[dict[str, Any]], pages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return microseconds a block of each way, and what the page tables and the contents say."""
    told = {row["after"]: row for row in pages}

    def bytes_out(*, loose: bool) -> int:
        leaving = [row for row in times if row["what"].startswith("leaves uncopied")]
        return max(
            row["dtoh_bytes"]["maximum"] for row in leaving if row["what"].endswith(LOOSE) == loose
        )

    half = told["a kernel writes the first half"]
    left = told["it leaves"]
    left_loose = told[f"it leaves{LOOSE}"]
    return {
        "us_per_block": {
            row["what"]: round(row["total_ns"]["median"] / row["blocks"] / 1000, 2) for row in times
        },
        "bytes_out_of_what_was_only_read": bytes_out(loose=False),
        "without_a_preferred_location": {
            "bytes_out_of_what_was_only_read": bytes_out(loose=True),
            "two_copies_are_mapped": told[f"it comes{LOOSE}"]["unmapped_fraction"] == 0,
            "what_was_written_leaves_by_copy": left_loose["dtoh_bytes"] == WRITTEN_BYTES // 2,
            "no_byte_is_lost": left_loose["first_byte"] == OLD and left_loose["last_byte"] == OLD,
        },
        "two_copies_are_mapped": told["it comes, and the host keeps its copy"]["unmapped_fraction"]
        == 0,
        "a_write_is_unmapped": half["unmapped_fraction"] == 0.5,
        "what_was_written_leaves_by_copy": left["dtoh_bytes"] == WRITTEN_BYTES // 2,
        "no_byte_is_lost": left["first_byte"] == NEW and left["last_byte"] == OLD,
        "what_left_is_not_read_in_place": told["a kernel reads what left"]["htod_bytes"]
        == WRITTEN_BYTES,
    }


def ask(session: Session) -> Answer:
    """Bring memory of which the host keeps its copy, write it, and have it leave."""
    kernels = Kernels.load(session)
    times = [*_moves(session), *_writes(session)]
    with page_tables() as tables:
        pages = list(_pages(session, kernels, tables))
    return Answer({"times": times, "pages": pages}, conclude(times, pages))


def _moves(session: Session) -> Iterator[dict[str, Any]]:
    with session.managed_blocks(SIZE_BYTES) as region:
        session.fill(region, SIZE_BYTES, OLD)
        copies = {
            "": TwoCopies(session, region, SIZE_BYTES),
            LOOSE: TwoCopies(session, region, SIZE_BYTES, belongs=False),
        }

        def move(call_bytes: int, where: Location) -> None:
            for offset in range(0, SIZE_BYTES, call_bytes):
                session.prefetch(region + offset, call_bytes, where)
            session.synchronize()

        def timed(
            what: str, act: Callable[[], object], prepare: Callable[[], object]
        ) -> dict[str, Any]:
            return _timed(session, what, SIZE_BYTES, prepare, act)

        move(SIZE_BYTES, session.on_host)
        for name, size in CALL_BYTES.items():
            for how, memory in copies.items():
                away = partial(memory.leave, SIZE_BYTES)
                here = partial(memory.come, SIZE_BYTES)
                yield timed(
                    f"comes and is kept, {name} a call{how}", partial(memory.come, size), away
                )
                yield timed(
                    f"leaves uncopied, {name} a call{how}", partial(memory.leave, size), here
                )
                ends = partial(memory.end_here, size)
                yield timed(f"ends on the device, {name} a call{how}", ends, here)
                away()
            plain_away = partial(move, SIZE_BYTES, session.on_host)
            plain_here = partial(move, SIZE_BYTES, session.on_device)
            fetch, send = (partial(move, size, at) for at in (session.on_device, session.on_host))
            yield timed(f"comes, {name} a call", fetch, plain_away)
            yield timed(f"leaves, {name} a call", send, plain_here)


def _writes(session: Session) -> Iterator[dict[str, Any]]:
    with session.managed_blocks(WRITTEN_BYTES) as region:
        session.fill(region, WRITTEN_BYTES, OLD)
        memory = TwoCopies(session, region, WRITTEN_BYTES)
        loose = TwoCopies(session, region, WRITTEN_BYTES, belongs=False)

        def write() -> None:
            session.cuda("cuMemsetD8Async", region, OLD, WRITTEN_BYTES, session.stream)
            session.synchronize()

        def two_copies() -> None:
            memory.leave(WRITTEN_BYTES)
            memory.come(WRITTEN_BYTES)

        def loose_copies() -> None:
            loose.leave(WRITTEN_BYTES)
            loose.come(WRITTEN_BYTES)

        def ended() -> None:
            two_copies()
            memory.end_here(WRITTEN_BYTES)

        def ended_and_prefetched() -> None:
            ended()
            session.move(region, WRITTEN_BYTES, session.on_device)

        for what, prepare in (
            ("written where it is alone", lambda: None),
            ("written of two copies", two_copies),
            (f"written of two copies{LOOSE}", loose_copies),
            ("written after an end on the device", ended),
            ("written after an end and a prefetch", ended_and_prefetched),
        ):
            yield _timed(session, what, WRITTEN_BYTES, prepare, write)
        yield _timed(
            session,
            "prefetched after an end on the device",
            WRITTEN_BYTES,
            ended,
            lambda: session.move(region, WRITTEN_BYTES, session.on_device),
        )


def _pages(session: Session, kernels: Kernels, tables: PageTables) -> Iterator[dict[str, Any]]:
    with session.managed_blocks(WRITTEN_BYTES) as region:
        session.fill(region, WRITTEN_BYTES, OLD)
        session.move(region, WRITTEN_BYTES, session.on_host)
        memory = TwoCopies(session, region, WRITTEN_BYTES)

        def read() -> None:
            kernels.read(region, WRITTEN_BYTES // 8, 1, session.stream)

        def write_half() -> None:
            session.cuda("cuMemsetD8Async", region, NEW, WRITTEN_BYTES // 2, session.stream)

        for after, act in (
            ("it comes, and the host keeps its copy", lambda: memory.come(WRITTEN_BYTES)),
            ("a kernel writes the first half", write_half),
            ("it leaves", lambda: memory.leave(WRITTEN_BYTES)),
            ("a kernel reads what left", read),
            ("it goes to the host", lambda: session.move(region, WRITTEN_BYTES, session.on_host)),
            ("it comes again, and the host keeps its copy", lambda: memory.come(WRITTEN_BYTES)),
            ("the device's copy stays alone", lambda: memory.end_here(WRITTEN_BYTES)),
        ):
            row = look_after(session, tables, after, act, (region, WRITTEN_BYTES))
            yield {**row, **(_ends_of(region) if after == "it leaves" else {})}
        session.move(region, WRITTEN_BYTES, session.on_host)
        loose = TwoCopies(session, region, WRITTEN_BYTES, belongs=False)

        def write_half_again() -> None:
            session.cuda("cuMemsetD8Async", region, OLD, WRITTEN_BYTES // 2, session.stream)

        for after, act in (
            (f"it comes{LOOSE}", lambda: loose.come(WRITTEN_BYTES)),
            (f"a kernel reads it{LOOSE}", read),
            (f"a kernel writes the first half{LOOSE}", write_half_again),
            (f"it leaves{LOOSE}", lambda: loose.leave(WRITTEN_BYTES)),
        ):
            row = look_after(session, tables, after, act, (region, WRITTEN_BYTES))
            yield {**row, **(_ends_of(region) if after.startswith("it leaves") else {})}


def _ends_of(region: int) -> dict[str, int]:
    """Return two bytes as the CPU reads them."""
    first, last = (
        ctypes.c_ubyte.from_address(region + offset).value for offset in (0, WRITTEN_BYTES - 1)
    )
    return {"first_byte": first, "last_byte": last}


def _timed(
    session: Session,
    what: str,
    size_bytes: int,
    prepare: Callable[[], object],
    act: Callable[[], object],
) -> dict[str, Any]:
    blocks = size_bytes // BLOCK_BYTES
    return {"what": what, "blocks": blocks, **session.timed(act, REPEATS, prepare)}


QUESTION = Question(
    "kept_copies",
    "What does it cost that the host keeps its copy, and what does a write do to it?",
    "512 MiB in calls of four lengths, 64 MiB written; 3 runs each. Pages after each step.",
    ask,
)
