# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which way frames travel, what is counted, and what is warned of."""

from __future__ import annotations

import asyncio
import struct
import warnings
from typing import Any

import pytest

from rmm_uvm.dask.comm.handshake import STOCK_PEER, Peer
from rmm_uvm.dask.comm.receive import receive_message
from rmm_uvm.dask.comm.send import choose_kind, send_message
from rmm_uvm.dask.comm.wire import FrameKind
from rmm_uvm.errors import IpcPoolWarning

from .fakes import KIB, InProcessChannel, Process, contents, transfer

CHUNK = 4 * KIB
NBYTES = 10 * CHUNK + 300


@pytest.mark.parametrize(
    ("exportable", "has_chunks", "peer", "kind"),
    [
        (False, True, Peer(ours=True, receives="staged"), FrameKind.STREAM),
        (False, True, Peer(ours=True, receives="staged", chunk_bytes=256), FrameKind.STREAM),
        (False, True, Peer(ours=True, receives="direct"), FrameKind.STREAM),
        (False, False, Peer(ours=True, receives="staged", chunk_bytes=256), FrameKind.DEVICE),
        (True, True, Peer(ours=True, receives="direct", chunk_bytes=256), FrameKind.DEVICE),
        (True, True, Peer(ours=True, receives="staged", chunk_bytes=256), FrameKind.STREAM),
        (True, False, Peer(ours=True, receives="staged", chunk_bytes=256), FrameKind.STREAM),
        (True, True, Peer(ours=True, receives="staged"), FrameKind.DEVICE),
        (False, True, STOCK_PEER, FrameKind.DEVICE),
        (True, True, STOCK_PEER, FrameKind.DEVICE),
        (None, True, Peer(ours=True, receives="staged"), FrameKind.DEVICE),
    ],
)
def test_way_of_a_frame_follows_its_memory_and_the_peer(
    exportable: bool | None, has_chunks: bool, peer: Peer, kind: FrameKind
) -> None:
    assert choose_kind(exportable=exportable, has_chunks=has_chunks, peer=peer) is kind


def _sent(process: Process) -> dict[str, float]:
    return _moved(process, "sent_")


def _received(process: Process) -> dict[str, float]:
    return _moved(process, "received_")


def _moved(process: Process, prefix: str) -> dict[str, float]:
    """Return the byte counts that are not 0, by way."""
    return {
        name.removeprefix(prefix).removesuffix("_bytes"): value
        for name, value in process.totals.to_dict().items()
        if name.startswith(prefix) and value
    }


def test_managed_frames_between_managed_processes_are_staged_at_both_ends() -> None:
    one, other = Process(), Process()
    asyncio.run(transfer(one, other, [b"head", one.frame(NBYTES)]))
    assert (_sent(one), _received(other)) == ({"staged": NBYTES}, {"staged": NBYTES})
    assert (one.said, other.said) == ([], [])
    assert one.totals.chunk_waits == 0


def test_plain_frames_between_plain_processes_go_directly() -> None:
    one, other = Process(managed=False), Process(managed=False)
    asyncio.run(transfer(one, other, [one.frame(NBYTES)]))
    assert (_sent(one), _received(other)) == ({"direct": NBYTES}, {"direct": NBYTES})
    assert one.copies.copied_bytes == other.copies.copied_bytes == 0


def test_managed_frames_to_a_plain_process_are_received_in_place() -> None:
    one, other = Process(), Process(managed=False)
    frame = one.frame(NBYTES, 1)
    (received,) = asyncio.run(transfer(one, other, [frame]))
    assert contents(received) == contents(frame)
    assert (_sent(one), _received(other)) == ({"staged": NBYTES}, {"direct": NBYTES})
    assert other.copies.copied_bytes == 0


def test_several_frames_in_one_chunk_to_a_plain_process_are_copied_out() -> None:
    one, other = Process(), Process(managed=False)
    frames = [one.frame(100, 1), one.frame(200, 2)]
    received = asyncio.run(transfer(one, other, frames))
    assert [contents(f) for f in received] == [contents(f) for f in frames]
    assert _received(other) == {"staged": 300}


@pytest.mark.parametrize("pool_bytes", [0, 64 * KIB])
def test_plain_frames_to_a_managed_process_are_sent_in_place_and_received_staged(
    pool_bytes: int,
) -> None:
    one, other = Process(pool_bytes, managed=False), Process()
    frame = one.frame(NBYTES, 1)
    (received,) = asyncio.run(transfer(one, other, [frame]))
    assert contents(received) == contents(frame)
    assert (_sent(one), _received(other)) == ({"direct": NBYTES}, {"staged": NBYTES})
    assert one.copies.copied_bytes == 0
    assert (one.said, other.said) == ([], [])


@pytest.mark.parametrize("pool_bytes", [0, 64 * KIB])
def test_several_plain_frames_in_one_chunk_to_a_managed_process_are_copied_in(
    pool_bytes: int,
) -> None:
    one, other = Process(pool_bytes, managed=False), Process()
    frames = [one.frame(100, 1), one.frame(200, 2)]
    received = asyncio.run(transfer(one, other, frames))
    assert [contents(f) for f in received] == [contents(f) for f in frames]
    assert (_sent(one), _received(other)) == ({"staged": 300}, {"staged": 300})


def test_managed_frames_without_a_pool_are_overflow_and_warned_of() -> None:
    one, other = Process(0), Process()
    frame = one.frame(NBYTES, 1)
    with (
        pytest.warns(IpcPoolWarning, match="there is no IPC pool in this process"),
        pytest.warns(IpcPoolWarning, match="the peer has no IPC pool"),
    ):
        (received,) = asyncio.run(transfer(one, other, [frame]))
    assert contents(received) == contents(frame)
    assert (_sent(one), _received(other)) == ({"overflow": NBYTES}, {"overflow": NBYTES})
    assert [reason for reason, _ in one.said] == ["no pool"]
    assert [reason for reason, _ in other.said] == ["stock peer"]


def test_managed_frames_between_processes_without_pools_are_warned_of_at_both_ends() -> None:
    one, other = Process(0), Process(0)
    with pytest.warns(IpcPoolWarning, match="there is no IPC pool in this process"):
        asyncio.run(transfer(one, other, [one.frame(NBYTES, 1)]))
    assert [reason for reason, _ in one.said + other.said] == ["no pool", "no pool"]


def test_managed_frames_to_a_process_without_a_pool_arrive_as_overflow() -> None:
    one, other = Process(), Process(0)
    frame = one.frame(NBYTES, 1)
    with pytest.warns(IpcPoolWarning, match="set ipc-pool-size"):
        (received,) = asyncio.run(transfer(one, other, [frame]))
    assert contents(received) == contents(frame)
    assert (_sent(one), _received(other)) == ({"staged": NBYTES}, {"overflow": NBYTES})


def test_message_to_a_stock_peer_is_what_distributed_ucxx_sends() -> None:
    one, other = Process(), Process()
    frames = [b"head", one.frame(NBYTES, 1), b"", one.frame(0), b"tail"]

    async def run() -> None:
        here, there = InProcessChannel.pair()
        sending = asyncio.create_task(send_message(here, frames, STOCK_PEER, lambda: one.staging))
        # As distributed-ucxx reads: two host messages, then every frame that is not empty.
        prelude = bytearray(struct.calcsize("?Q"))
        await there.recv(prelude)
        assert struct.unpack("?Q", prelude) == (False, 5)
        header = bytearray(struct.calcsize("?????QQQQQ"))
        await there.recv(header)
        fields = struct.unpack("?????QQQQQ", header)
        assert fields == (False, True, False, True, False, 4, NBYTES, 0, 0, 4)
        received = [bytearray(4), other.frame(NBYTES), bytearray(4)]
        for frame in received:
            await there.recv(frame)
        assert await sending == NBYTES + 8
        assert [contents(f) for f in received] == [b"head", contents(frames[1]), b"tail"]

    with pytest.warns(IpcPoolWarning, match="the peer does not speak ucxuvm"):
        asyncio.run(run())
    assert _sent(one) == {"overflow": NBYTES}
    one.assert_whole()


def test_message_of_a_stock_peer_is_understood() -> None:
    one, other = Process(managed=False), Process(managed=False)
    frame = one.frame(NBYTES, 1)

    async def run() -> list[Any] | None:
        here, there = InProcessChannel.pair()
        receiving = asyncio.create_task(receive_message(there, STOCK_PEER, lambda: other.staging))
        await here.send(struct.pack("?Q", False, 3))
        await here.send(struct.pack("???QQQ", False, True, False, 4, NBYTES, 0))
        for each in (b"head", frame):
            await here.send(each)
        return await receiving

    received = asyncio.run(run())
    assert received is not None
    assert [contents(f) for f in received] == [b"head", contents(frame), b""]
    assert _received(other) == {"direct": NBYTES}


def test_exhausted_pool_sends_past_itself_and_warns() -> None:
    one, other = Process(wait_seconds=0.001), Process()

    async def run() -> Any:
        held = [await one.staging.sending.acquire(1) for _ in range(one.staging.sending.count)]
        frame = one.frame(NBYTES, 1)
        (received,) = await transfer(one, other, [frame])
        assert contents(received) == contents(frame)
        for chunk in held:
            one.staging.sending.release(chunk)

    with pytest.warns(IpcPoolWarning, match="had none free in time; set a larger ipc-pool-size"):
        asyncio.run(run())
    assert (_sent(one), _received(other)) == ({"overflow": NBYTES}, {"staged": NBYTES})
    assert one.totals.chunk_waits == 11  # one for every chunk
    assert [reason for reason, _ in one.said] == ["overflow"]
    one.assert_whole()


def test_waits_of_half_a_second_within_a_minute_are_warned_of() -> None:
    one = Process()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one.clock.now, seconds, said in (
            (0.0, 0.3, 0),
            (30.0, 0.2, 0),  # 0.5 s is not yet more than half a second
            (61.0, 0.2, 0),  # the first one is forgotten
            (62.0, 0.2, 1),
            (63.0, 5.0, 1),  # said once a minute
        ):
            one.staging._waited(seconds)
            assert [reason for reason, _ in one.said] == ["waiting"] * said
    assert one.totals.chunk_waits == 5
    assert one.totals.chunk_wait_seconds == pytest.approx(5.9)
    assert "waited 0.6 s of the last minute" in one.said[0][1]


@pytest.mark.parametrize("factor", [15, 17])
def test_message_far_larger_than_the_budget_is_warned_of(factor: int) -> None:
    one, other = Process(16 * KIB, chunk_bytes=256), Process(16 * KIB, chunk_bytes=256)
    budget_bytes = one.staging.sending.total_bytes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(transfer(one, other, [one.frame(factor * budget_bytes)]))
    assert [reason for reason, _ in one.said] == (["large message"] if factor > 16 else [])


def test_pool_that_others_have_used_up_gives_fewer_chunks() -> None:
    import rmm

    from rmm_uvm.dask.comm.settings import CommSettings
    from rmm_uvm.dask.comm.staging import Staging

    one = Process(0)
    pool = rmm.mr.PoolMemoryResource(one.ipc_mr, 64 * KIB, 64 * KIB)
    taken = rmm.DeviceBuffer(size=40 * KIB, mr=pool)
    staging = Staging(one.copies, pool, 64 * KIB, one.allocate, CommSettings(4 * KIB))
    assert staging.sending.count == staging.receiving.count == 3
    del taken


def test_pool_without_room_for_any_chunk_is_warned_of() -> None:
    import rmm

    from rmm_uvm.dask.comm.settings import CommSettings
    from rmm_uvm.dask.comm.staging import Staging

    one = Process(0)
    pool = rmm.mr.PoolMemoryResource(one.ipc_mr, 64 * KIB, 64 * KIB)
    taken = rmm.DeviceBuffer(size=60 * KIB, mr=pool)
    with pytest.warns(IpcPoolWarning, match=r"has no room for two chunks of 4\.00 KiB"):
        staging = Staging(
            one.copies, pool, 64 * KIB, one.allocate, CommSettings(4 * KIB), notices=one.notices
        )
    assert staging.chunk_bytes is None
    del taken
