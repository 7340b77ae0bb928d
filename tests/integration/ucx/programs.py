# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of ucxuvm run in processes of their own: ``programs.py NAME``.

UCX keeps its threads and files until a process ends, so each program has one. It ends with status
0 if everything it asserts is so.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import dask
import distributed_ucxx.ucxx as stock
import msgpack
import rmm
from distributed import Client, LocalCluster, wait
from distributed.comm import connect, listen
from distributed.comm.core import CommClosedError
from distributed.protocol import to_serialize
from frames import Data, chunks, install, random_bytes

from rmm_uvm.dask.comm import handshake, wire
from rmm_uvm.dask.comm.backend import UvmComm
from rmm_uvm.dask.comm.handshake import STOCK_PEER
from rmm_uvm.dask.comm.staging import staging_for_frames
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.pool.install import current_installation

CHUNK = 512 << 10  # of an IPC pool of 8 MiB with these settings
SIZES = (0, 1, 255, 256, 257, CHUNK - 1, CHUNK, CHUNK + 1, 20 << 20)


async def echo(comm: Any) -> None:
    """Send back what comes, until the other end hangs up."""
    with contextlib.suppress(CommClosedError):
        while True:
            message = await comm.read()
            await comm.write({name: to_serialize(value) for name, value in message.items()})


@contextlib.asynccontextmanager
async def connected(
    handler: Callable[[Any], Awaitable[None]] = echo,
    listening: str = "ucxuvm",
    connecting: str = "ucxuvm",
) -> AsyncIterator[Any]:
    """Open a connection to a listener in this process."""
    ended = asyncio.Event()

    async def handle(comm: Any) -> None:
        try:
            await handler(comm)
        finally:
            ended.set()

    listener = await listen(f"{listening}://127.0.0.1:0", handle)
    address = listener.contact_address.replace(f"{listening}://", f"{connecting}://")
    comm = await connect(address)
    try:
        yield comm
    finally:
        await comm.close()
        async with asyncio.timeout(60):
            await ended.wait()  # the handler sees the end
        listener.stop()


async def exchange(comm: Any, nbytes: int, seed: int) -> None:
    """Send data and get them back."""
    await comm.write({"data": to_serialize(Data.random(nbytes, seed)), "text": to_serialize("x")})
    data = (await comm.read())["data"]
    assert data.way == "device", data.way
    assert data.contents == random_bytes(nbytes, seed), nbytes


def assert_whole() -> None:
    """Check that no chunk of this process is missing."""
    now = chunks()
    # A peer that hangs up as soon as it has the data may be seen before the end of the send is: the
    # last chunks are then in quarantine, and not lost.
    assert now["free"] + now["quarantined"] == now["count"] > 0, now


async def staged() -> None:
    """Managed frames of any size cross intact, by way of the pool alone."""
    install()
    async with connected() as comm:
        assert comm.peer.ours
        assert comm.peer.chunk_bytes == CHUNK
        for seed, nbytes in enumerate(SIZES):
            await exchange(comm, nbytes, seed)
        several = {str(n): Data.random(n, n) for n in (1, 300, CHUNK, 70_000)}
        await comm.write({name: to_serialize(data) for name, data in several.items()})
        for name, data in (await comm.read()).items():
            assert data.contents == several[name].contents
    counted = totals()
    moved = 2 * (sum(SIZES) + 1 + 300 + CHUNK + 70_000)
    assert counted.sent_staged_bytes == counted.received_staged_bytes == moved, counted
    assert counted.sent_overflow_bytes == counted.received_overflow_bytes == 0, counted
    assert counted.sent_direct_bytes == counted.received_direct_bytes == 0, counted
    assert_whole()


async def both_directions() -> None:
    """Large messages in both directions at once, on several connections, all arrive."""
    install()

    async def shout(comm: Any) -> None:
        """Send and receive at the same time."""
        with contextlib.suppress(CommClosedError):
            _, message = await asyncio.gather(
                comm.write({"data": to_serialize(Data.random(12 << 20, 2))}), comm.read()
            )
            assert message["data"].contents == random_bytes(12 << 20, 1)
            await comm.read()

    async def call() -> None:
        async with connected(shout) as comm:
            _, message = await asyncio.gather(
                comm.write({"data": to_serialize(Data.random(12 << 20, 1))}), comm.read()
            )
            assert message["data"].contents == random_bytes(12 << 20, 2)

    async with asyncio.timeout(100):
        await asyncio.gather(*(call() for _ in range(6)))
    assert totals().chunk_waits > 0, totals()  # there were fewer chunks than were asked for
    assert_whole()


async def _with_stock(listening: str, connecting: str) -> None:
    """Exchange frames with distributed-ucxx's own comm, which has no CUDA here to wait for."""
    install()
    stock.init_once()
    stock.synchronize_stream = lambda *args: None
    stock.device_array = lambda n: rmm.DeviceBuffer(size=n, mr=rmm.mr.get_per_device_resource(0))
    peers = []

    async def handler(comm: Any) -> None:
        peers.append(comm)
        await echo(comm)

    async with connected(handler, listening, connecting) as comm:
        for seed, nbytes in enumerate(SIZES):
            await exchange(comm, nbytes, seed)
        await comm.write({"text": to_serialize("y" * 100_000)})
        assert (await comm.read())["text"] == "y" * 100_000
        ends = (comm, peers[0])
        assert [type(end) is UvmComm for end in ends].count(True) == 1, ends
        for end in ends:
            assert type(end) is not UvmComm or end.peer is STOCK_PEER
    counted = totals()
    assert counted.sent_staged_bytes == counted.received_staged_bytes == 0, counted
    assert counted.sent_overflow_bytes == counted.received_overflow_bytes == sum(SIZES), counted
    assert_whole()


async def stock_connects() -> None:
    """A stock end connects to ours."""
    await _with_stock("ucxuvm", "ucx")


async def stock_listens() -> None:
    """Ours connects to a stock end."""
    await _with_stock("ucx", "ucxuvm")


async def other_version() -> None:
    """A peer of another wire version is refused at both ends, and the listener lives on."""
    install()
    said = handshake.introduce()
    lied = []

    def introduce() -> dict[str, Any]:
        lied.append(True)
        return {**said, "wire": wire.WIRE_VERSION + 1, "version": "9.9"} if len(lied) == 1 else said

    UvmComm.handshake_info.__globals__["introduce"] = introduce
    served = []
    ended = asyncio.Event()

    async def handler(comm: Any) -> None:
        served.append(comm)
        await echo(comm)
        ended.set()

    listener = await listen("ucxuvm://127.0.0.1:0", handler)
    try:
        await connect(listener.contact_address)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = "none"
    assert "wire version" in refusal, refusal
    ways = ("speaks", "speaks wire version")
    other = wire.WIRE_VERSION + 1
    assert any(f"rmm-uvm 9.9 {speaks} {other}" in refusal for speaks in ways), refusal
    assert served == []
    comm = await connect(listener.contact_address)
    await exchange(comm, 1000, 1)
    await comm.close()
    async with asyncio.timeout(60):
        await ended.wait()
    listener.stop()


def _handshake_of(message: Any) -> list[bytes]:
    """Return the messages of a first message that is well formed, whatever it says."""
    frame = msgpack.dumps(message)
    count, header = wire.pack_header([wire.FrameKind.HOST], [len(frame)])
    return [wire.pack_prelude(closing=False, entries=count), header, frame]


async def garbage() -> None:
    """Whatever comes in place of a handshake closes its connection alone, and is counted."""
    install()
    stock.init_once()
    import ucxx  # not before distributed-ucxx has set it up

    served = []

    async def handler(comm: Any) -> None:
        served.append(comm)
        await echo(comm)

    one = wire.pack_prelude(closing=False, entries=1)
    refused = [
        [b"\x02" + bytes(15)],
        [random_bytes(16, 1)],
        [wire.pack_prelude(closing=False, entries=10**9)],
        [wire.pack_prelude(closing=False, entries=2**64 - 1)],
        [wire.pack_prelude(closing=False, entries=0)],
        [one, random_bytes(16, 2)],
        [one, struct.pack("BQ", 0, 2**64 - 1)],
        [one, struct.pack("BQ", 1, 2**64 - 1)],
        [one, struct.pack("BQ", 0, 1 << 46)],
        _handshake_of([1, 2]),
        _handshake_of(None),
        [*_handshake_of("x")[:2], b"\xc1\xc1"],
    ]
    # UCX gives less than was asked for without a word: what is missing stays zero.
    refused += [[b""], [b"\0"], [one, b"\0"]]
    # These the transport notices: more than was asked for, and a peer that goes away.
    broken = [[one * 2], _handshake_of({})[:2]]
    listener = await listen("ucxuvm://127.0.0.1:0", handler)
    try:
        for number, messages in enumerate(refused + broken):
            raw = await ucxx.create_endpoint("127.0.0.1", listener.get_host_port()[1])
            for message in messages:
                await raw.send(message)
            if messages is broken[-1]:
                raw.abort()
                continue
            async with asyncio.timeout(30):
                while raw.alive:
                    await asyncio.sleep(0.001)
            assert totals().refused_messages == min(number + 1, len(refused)), (number, messages)
        assert served == []
        comm = await connect(listener.contact_address)
        await exchange(comm, 1000, 1)
        await comm.close()
    finally:
        listener.stop()
    assert_whole()


async def without_backing() -> None:
    """A simulated device without memory behind it refuses frames, and the process lives on."""
    import rmm_uvm

    install()
    data = Data.random(1000, 1)
    rmm_uvm.reinitialize(
        "32MiB",
        driver=rmm_uvm.simulated_device("256MiB"),
        ipc_pool_size="8MiB",
        libraries=(),
        monitor=False,
    )
    async with connected() as comm:
        try:
            await comm.write({"data": to_serialize(data)})
            await comm.read()
        except CommClosedError:
            pass
        else:
            raise AssertionError("frames went through memory that is not there")
    async with connected() as comm:
        await comm.write({"text": to_serialize("alive")})
        assert (await comm.read())["text"] == "alive"


def _echoing_peer(addresses: Any) -> None:
    """Be a process that sends back what comes, and makes its pools anew when it is told to."""

    async def handler(comm: Any) -> None:
        with contextlib.suppress(CommClosedError):
            while True:
                message = await comm.read()
                if "install" in message:
                    del message
                    install()
                    await comm.write({"text": "done"})
                    continue
                await comm.write({name: to_serialize(value) for name, value in message.items()})

    async def run() -> None:
        install()
        listener = await listen("ucxuvm://127.0.0.1:0", handler)
        addresses.put(listener.contact_address)
        await asyncio.Event().wait()

    asyncio.run(run())


async def pulled() -> None:
    """Two processes copy from each other's pools, also after one of them has made its anew."""
    install()
    spawn = multiprocessing.get_context("spawn")
    addresses = spawn.Queue()
    peer = spawn.Process(target=_echoing_peer, args=(addresses,))
    peer.start()
    try:
        comm = await connect(await asyncio.to_thread(addresses.get))
        moved = pulled = 0
        for again in (None, "here", "there"):
            if again == "here":
                install()
            elif again == "there":
                await comm.write({"install": True})
                await comm.read()
            for seed, nbytes in enumerate(SIZES):
                await exchange(comm, nbytes, seed)
                moved += 2 * nbytes
                pulled += 2 * nbytes if 16 * nbytes >= CHUNK else 0  # others cost less if sent
            assert totals().pulled_bytes == pulled, (again, totals())
            assert len(staging_for_frames().mappings) == 1
            assert_whole()
        await comm.close()
        assert len(staging_for_frames().mappings) == 0
    finally:
        peer.kill()
        peer.join()
        addresses.close()
    counted = totals()
    assert counted.sent_staged_bytes + counted.received_staged_bytes == moved, counted
    assert counted.aborted_transfers == counted.refused_messages == 0, counted


def _peer(addresses: Any, nbytes: int, *, sends: bool) -> None:
    """Be a process that sends, or that receives, one message after the other until it is killed."""

    async def handler(comm: Any) -> None:
        with contextlib.suppress(CommClosedError):
            while True:
                if sends:
                    await comm.write({"data": to_serialize(Data.random(nbytes, 1))})
                else:
                    await comm.read()

    async def run() -> None:
        install()
        listener = await listen("ucxuvm://127.0.0.1:0", handler)
        addresses.put(listener.contact_address)
        await asyncio.Event().wait()

    asyncio.run(run())


async def _killed(*, sends: bool) -> None:
    install()
    staging = staging_for_frames()
    staging.quarantine.seconds = 0.05
    memory = current_installation()
    assert memory is not None
    alive_bytes = memory.managed_mr.get_allocated_bytes()
    kept = []  # as Dask's log of a worker keeps errors
    spawn = multiprocessing.get_context("spawn")
    addresses = spawn.Queue()
    peers = [
        spawn.Process(target=_peer, args=(addresses, 64 << 20), kwargs={"sends": sends})
        for _ in range(2)
    ]
    try:
        for victim, peer in enumerate(peers):
            peer.start()
            comm = await connect(await asyncio.to_thread(addresses.get))
            before = totals().sent_staged_bytes + totals().received_staged_bytes

            async def transfer(comm: Any = comm) -> None:
                while True:
                    if sends:
                        data = (await comm.read())["data"]
                        assert data.contents == random_bytes(64 << 20, 1)
                        del data
                    else:
                        await comm.write({"data": to_serialize(Data.random(64 << 20, 1))})

            transferring = asyncio.create_task(transfer())
            # A part of a message, the first time; several whole ones, the second time.
            enough = before + ((4 << 20) if victim == 0 else (100 << 20))
            while totals().sent_staged_bytes + totals().received_staged_bytes < enough:
                assert not transferring.done(), transferring
                await asyncio.sleep(0)
            os.kill(peer.pid or 0, signal.SIGKILL)
            try:
                async with asyncio.timeout(60):
                    await transferring
            except CommClosedError as error:
                kept.append(error)
            else:
                raise AssertionError("a transfer with a dead peer ended well")
            assert comm.closed()
            while chunks()["quarantined"]:
                await asyncio.sleep(0.01)
            assert_whole()
            gc.collect()
            assert memory.managed_mr.get_allocated_bytes() == alive_bytes, memory.managed_mr
    finally:
        for peer in peers:
            if peer.pid is not None:
                peer.kill()
                peer.join()
        addresses.close()
    assert totals().aborted_transfers == 2, totals()
    assert totals().pulled_bytes > (100 << 20), totals()


async def killed_sender() -> None:
    """A peer is killed while it sends: this end says so, and goes on with others."""
    await _killed(sends=True)


async def killed_receiver() -> None:
    """A peer is killed while it receives."""
    await _killed(sends=False)


def _check(data: Data, nbytes: int, seed: int) -> str:
    assert data.contents == random_bytes(nbytes, seed)
    return data.way


def cluster() -> None:
    """Dask workers exchange results over ucxuvm; client and scheduler have no device."""
    nbytes = 20 << 20
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, protocol="ucxuvm", dashboard_address=":0"
        ) as running,
        Client(running) as client,
    ):
        assert running.scheduler_address.startswith("ucxuvm://")
        one, other = client.run(install)
        made = client.submit(Data.random, nbytes, 1, workers=one)
        wait(made)
        assert client.submit(_check, made, nbytes, 1, workers=other).result() == "device"
        counted = client.run(lambda: totals().to_dict())
        assert counted[one]["sent_staged_bytes"] == nbytes, counted
        assert counted[other]["received_staged_bytes"] == nbytes, counted
        for each in (one, other):
            assert counted[each]["pulled_bytes"] == nbytes, counted
        for each in counted.values():
            assert each["sent_overflow_bytes"] == each["received_overflow_bytes"] == 0, counted
        # The scheduler, by way of which this goes, has nothing to receive device frames into.
        assert made.result().way == "host"
        assert made.result().contents == random_bytes(nbytes, 1)
        for now in client.run(chunks).values():
            assert now["free"] == now["count"] == 14, now


def main() -> None:
    """Run the program that is named."""
    program = globals()[sys.argv[1]]
    # The deserialising of large frames in threads is Dask's own business.
    with dask.config.set({"rmm-uvm.comm.chunk-size": CHUNK}):
        if asyncio.iscoroutinefunction(program):
            asyncio.run(program())
        else:
            program()


if __name__ == "__main__":
    main()
