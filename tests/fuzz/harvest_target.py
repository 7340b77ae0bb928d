# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The harvest board: whatever other programs write there, nobody gets more than there is."""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path

from rmm_uvm import harvest
from rmm_uvm._lib.harvest import HarvestBoard, look
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.report.document import plain
from rmm_uvm.top.render import harvest_line

from .promises import FOLDER, Finding, attempted, check_shown
from .slow_board import BLOCK, BYTES, DEVICES, WORDS, SlowBoard

_PATCH, STEP = struct.Struct("<HQ"), struct.Struct("<BBQQQ")
_OTHER = "GPU-00000000-0000-0000-0000-0000000000ff"
_MOST_STEPS = 40
_PLACES = 3


def harvest_board(data: bytes) -> None:
    """Read a board, and take part in it.

    The first byte says how: "f" the rest is its file; "s" the same, at the length of a board; "w"
    processes have joined a board, and words of it are written over: one byte says how many, each is
    a place and eight bytes. What is left are steps of one of the processes.
    """
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        path = folder / f"rmm_uvm-board-{os.geteuid()}"
        if data[:1] == b"w":
            boards = [HarvestBoard(folder) for _ in range(_PLACES)]
            end = 2 + (data[1] if len(data) > 1 else 0) * _PATCH.size
            _write_over(path, data[2:end])
            _check_view(folder, path.read_bytes(), frozenset(range(_PLACES)))
            _take_part(boards[1], path, 1, data[end:])
            return
        path.write_bytes(data[1:].ljust(BYTES, b"\0")[:BYTES] if data[:1] == b"s" else data[1:])
        path.chmod(0o600)
        _check_view(folder, path.read_bytes(), frozenset())
        joined = attempted(lambda: HarvestBoard(folder), (AvailabilityError,))
        if joined is not None:
            _check_view(folder, path.read_bytes(), frozenset({0}))
            _take_part(joined, path, 0, data[1:])


def _write_over(path: Path, patches: bytes) -> None:
    with path.open("r+b") as file:
        for place in range(0, len(patches) - _PATCH.size + 1, _PATCH.size):
            word, value = _PATCH.unpack_from(patches, place)
            file.seek(8 * (word % WORDS))
            file.write(value.to_bytes(8, "little"))


def _check_view(folder: Path, contents: bytes, taken: frozenset[int]) -> None:
    readable, _, processes, entries = look(folder)
    wanted = SlowBoard(contents, taken) if len(contents) == BYTES else None
    if wanted is None or not wanted.valid:
        if readable.available or not 0 < len(readable.reason) < 600:
            raise Finding(f"no board, and yet: {readable}")
        return
    if not readable.available or len(processes) != len(taken):
        raise Finding(f"{len(taken)} processes, and seen are {processes}: {readable.reason}")
    if list(entries) != wanted.entries():
        raise Finding(f"seen are {entries}, there are {wanted.entries()}")
    for device in harvest.read_board(folder).devices:
        for narrow in (False, True):
            line = harvest_line(device, name=device.uuid, narrow=narrow)
            check_shown(line.lead + plain(line.words))


def _take_part(board: HarvestBoard, path: Path, me: int, steps: bytes) -> None:
    taken = frozenset(range(_PLACES)) if me else frozenset({0})
    for place in range(0, min(len(steps), _MOST_STEPS * STEP.size) - STEP.size + 1, STEP.size):
        what, which, nbytes, free_bytes, reserve_bytes = STEP.unpack_from(steps, place)
        before = SlowBoard(path.read_bytes(), taken)
        device = before.uuid(which) if which < DEVICES else _OTHER
        _check_said(board, before, me, device, nbytes)
        match what % 8:
            case 0 | 1:
                wanted = before.claim(device, me, nbytes, free_bytes, reserve_bytes)
                got = board.claim(
                    device, nbytes, free_bytes=free_bytes, reserve_bytes=reserve_bytes
                )
                if (got, board.held(device)) != wanted:
                    raise Finding(f"got {got} of {nbytes}, free {free_bytes}, not {wanted}")
            case 2:
                board.offer(device, nbytes)
            case 3:
                board.withdraw(device)
            case 4:
                board.placed(device, nbytes)
            case 5:
                board.cancel(device, nbytes)
            case 6:
                board.release(device, nbytes)
            case _:
                board.set_busy(device, bool(nbytes & 1))
        if wrong := SlowBoard(path.read_bytes(), taken).changed(before, me):
            raise Finding(f"words of others were written: {wrong}")


def _check_said(board: HarvestBoard, now: SlowBoard, me: int, device: str, shortage: int) -> None:
    """Check what the board answers without a change."""
    row = now.row(device)
    said = board.held(device), board.claimed_by_others(device), board.busy(device)
    back = board.excess(device, shortage)
    if row is None:
        wanted: tuple[int, int, bool] = (0, 0, False)
        least = 0
    else:
        others = now.taken - {me}
        claimed = sum(now.holding(row, process)[0] for process in others)
        busy = any(now.offer(row, process)[1] for process in others)
        wanted = now.holding(row, me)[0], claimed, busy
        least = now.to_give_back(row, me, shortage)
    if said != wanted:
        raise Finding(f"of {device} said {said}, not {wanted}")
    # Of more blocks than 32 bits count the share is rounded up by some.
    if back % BLOCK or not least <= back <= min(said[0], least + 65 * BLOCK):
        raise Finding(f"gives back {back} of {said[0]} bytes on {device}, its share is {least}")
