# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The board of offers and claims, and what people see of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from rmm_uvm import harvest
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.harvest import Claim, HarvestBoard, Offer

MIB = 1 << 20
GPU = "GPU-00000000-0000-0000-0000-000000000001"
OTHER_GPU = "GPU-00000000-0000-0000-0000-000000000002"


def file_in(directory: Path) -> Path:
    return directory / f"rmm_uvm-board-{os.geteuid()}"


def claimed(board: HarvestBoard, nbytes: int, gpu: str = GPU, free_bytes: int = 1 << 40) -> int:
    return board.claim(gpu, nbytes, free_bytes=free_bytes, reserve_bytes=0)


def test_usual_board_is_in_shared_memory() -> None:
    assert harvest.USUAL_DIRECTORY == "/dev/shm"
    assert harvest.read_board().path == f"/dev/shm/rmm_uvm-board-{os.geteuid()}"


def test_view_of_a_board_tells_who_offers_and_who_claims(tmp_path: Path) -> None:
    owner, harvester = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert owner.offer(GPU, 64 * MIB)
    assert claimed(harvester, 10 * MIB) == 10 * MIB
    harvester.placed(GPU, 4 * MIB)
    assert claimed(harvester, 6 * MIB, OTHER_GPU, free_bytes=4 * MIB) == 4 * MIB
    view = harvest.read_board(tmp_path)
    assert (view.available, view.reason, view.path) == (True, "", str(file_in(tmp_path)))
    assert view.processes == (os.getpid(), os.getpid())
    offered, free = view.devices
    assert offered.uuid == GPU
    assert offered.offers == (Offer(os.getpid(), 64 * MIB, busy=False),)
    assert offered.claims == (Claim(os.getpid(), 10 * MIB, 6 * MIB),)
    assert (offered.offered_bytes, offered.claimed_bytes, offered.busy) == (
        64 * MIB,
        10 * MIB,
        False,
    )
    assert free.offers == ()
    assert (free.offered_bytes, free.claimed_bytes) == (None, 4 * MIB)


def test_view_of_several_offers_has_the_least(tmp_path: Path) -> None:
    first, second = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert first.offer(GPU, 64 * MIB)
    assert second.offer(GPU, 16 * MIB)
    (device,) = harvest.read_board(tmp_path).devices
    assert device.offered_bytes == 16 * MIB
    second.withdraw(GPU)
    (device,) = harvest.read_board(tmp_path).devices
    assert device.offered_bytes == 64 * MIB


def test_view_of_busy_links_needs_no_offer(tmp_path: Path) -> None:
    owner = HarvestBoard(tmp_path)
    assert owner.set_busy(GPU, True)
    (device,) = harvest.read_board(tmp_path).devices
    assert device.busy
    assert device.offers == (Offer(os.getpid(), None, busy=True),)
    assert device.offered_bytes is None
    assert owner.set_busy(GPU, False)
    assert harvest.read_board(tmp_path).devices == ()


def test_view_without_a_board_says_so_and_makes_none(tmp_path: Path) -> None:
    view = harvest.read_board(tmp_path)
    assert not view.available
    assert "does not exist: no process has joined a board" in view.reason
    assert (view.processes, view.devices) == ((), ())
    assert not file_in(tmp_path).exists()


def test_view_of_what_is_no_board_says_so_and_leaves_it(tmp_path: Path) -> None:
    file_in(tmp_path).write_text("notes")
    file_in(tmp_path).chmod(0o600)
    assert "has 5 bytes, a board of rmm-uvm" in harvest.read_board(tmp_path).reason
    with pytest.raises(AvailabilityError, match="has 5 bytes"):
        HarvestBoard(tmp_path)
    assert file_in(tmp_path).read_text() == "notes"


def test_joining_where_there_is_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AvailabilityError, match="cannot agree about idle memory"):
        HarvestBoard(tmp_path / "none")


def test_joining_a_full_board_is_an_error_until_one_leaves(tmp_path: Path) -> None:
    boards = [HarvestBoard(tmp_path) for _ in range(64)]
    with pytest.raises(AvailabilityError, match="is full: 64 processes have joined it"):
        HarvestBoard(tmp_path)
    del boards[5]
    HarvestBoard(tmp_path)


@pytest.mark.parametrize("name", ["0", "GPU-1", "", 3, None])
def test_device_that_is_no_uuid_is_refused(tmp_path: Path, name: object) -> None:
    with pytest.raises(ConfigurationError, match="named by its UUID"):
        HarvestBoard(tmp_path).offer(name, 1)  # type: ignore[arg-type]


def test_device_names_of_gpus_and_of_their_parts_are_taken(tmp_path: Path) -> None:
    owner = HarvestBoard(tmp_path)
    bare = GPU.removeprefix("GPU-")
    assert owner.offer(f"MIG-{bare}", 4 * MIB)
    assert claimed(HarvestBoard(tmp_path), 8 * MIB, bare) == 4 * MIB


@pytest.mark.parametrize("nbytes", [-1, 1 << 64])
def test_bytes_that_cannot_be_are_refused(tmp_path: Path, nbytes: int) -> None:
    with pytest.raises(OverflowError):
        HarvestBoard(tmp_path).offer(GPU, nbytes)


def test_offer_that_falls_is_given_back_in_shares(tmp_path: Path) -> None:
    owner, first, second = (HarvestBoard(tmp_path) for _ in range(3))
    assert owner.offer(GPU, 100 * MIB)
    assert claimed(first, 60 * MIB) == 60 * MIB
    assert claimed(second, 60 * MIB) == 40 * MIB
    assert owner.offer(GPU, 50 * MIB)
    assert (first.excess(GPU), second.excess(GPU)) == (30 * MIB, 20 * MIB)
    first.release(GPU, 30 * MIB)
    second.release(GPU, 20 * MIB)
    assert (first.excess(GPU), second.excess(GPU)) == (0, 0)
    assert owner.claimed_by_others(GPU) == 50 * MIB


def test_lender_asks_by_ordinal_and_keeps_the_place(tmp_path: Path) -> None:
    owner = HarvestBoard(tmp_path)
    assert owner.offer(GPU, 10 * MIB)
    lender = HarvestBoard(tmp_path).lender({1: GPU})
    assert lender.claim(1, 16 * MIB, 100 * MIB, 0) == 10 * MIB
    lender.placed(1, 4 * MIB)
    lender.cancel(1, 6 * MIB)
    assert (lender.held(1), owner.claimed_by_others(GPU)) == (4 * MIB, 4 * MIB)
    assert owner.offer(GPU, 0)
    assert lender.excess(1) == 4 * MIB
    lender.release(1, 4 * MIB)
    assert (lender.held(1), lender.excess(1), lender.busy(1)) == (0, 0, False)
    assert lender.claim(0, 16 * MIB, 100 * MIB, 0) == 0
    assert lender.excess(0, 4 * MIB) == 0


def test_lender_is_made_by_a_board_only() -> None:
    from rmm_uvm._lib.harvest import NeighborLender

    with pytest.raises(TypeError, match=r"HarvestBoard\.lender"):
        NeighborLender()


def test_board_in_a_forked_child_is_nobodys(tmp_path: Path) -> None:
    owner, board = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert owner.offer(GPU, 10 * MIB)
    assert claimed(board, 10 * MIB) == 10 * MIB
    child = os.fork()
    if child == 0:
        board.release(GPU, 10 * MIB)
        right = not board.usable and board.held(GPU) == 0 and claimed(board, 2 * MIB) == 0
        os._exit(0 if right and not board.offer(GPU, 0) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert board.usable
    assert board.held(GPU) == 10 * MIB


def test_board_that_is_removed_is_not_usable(tmp_path: Path) -> None:
    board = HarvestBoard(tmp_path)
    file_in(tmp_path).unlink()
    assert "was removed while in use" in board.usable.reason
    assert claimed(board, 2 * MIB, free_bytes=100 * MIB) == 0


def test_threads_of_one_place_claim_no_more_than_is_offered(tmp_path: Path) -> None:
    owner, board = HarvestBoard(tmp_path), HarvestBoard(tmp_path)
    assert owner.offer(GPU, 100 * MIB)
    granted: list[int] = []

    def claim_until_nothing_is_left() -> None:
        while got := claimed(board, 6 * MIB):
            granted.append(got)

    threads = [threading.Thread(target=claim_until_nothing_is_left) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 100 * MIB == board.held(GPU)
