# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Transfers on a GPU, and export and open between processes, on every GPU that is there.

Needs one GPU: two processes share it. Where there are more, the reader uses each of them in turn.
"""

from __future__ import annotations

import ctypes

import cupy
import pytest
import rmm
from rmm.pylibrmm.stream import Stream

import rmm_uvm
from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.errors import ConfigurationError, DriverError
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.slabs import slabs
from rmm_uvm.mr import ManagedMemoryResource

from .other import OtherError, OtherProcess, other_process

pytestmark = pytest.mark.gpu

MIB = 1 << 20
NBYTES = 32 * MIB

_WAIT = cupy.RawKernel(
    """
extern "C" __global__ void wait(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}""",
    "wait",
)
_WAIT_CYCLES = 600_000_000  # a third of a second at 1.8 GHz


def array_of(buffer: object) -> cupy.ndarray:
    return cupy.asarray(buffer).view("u4")


def devices() -> list[int]:
    return list(range(cupy.cuda.runtime.getDeviceCount()))


# Transfers


def test_memory_kind_tells_the_kinds_apart(gpu: CudaDriver) -> None:
    transfers = Transfers(gpu)
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    managed = ManagedMemoryResource(gpu)
    pooled = rmm.DeviceBuffer(size=MIB, mr=pool)
    pointer = managed.allocate(4 * MIB)
    kind = transfers.memory_kind(pooled.ptr + 5)
    assert kind is not None
    assert (kind.managed, kind.ipc_capable, kind.device_id) == (False, True, 0)
    assert kind.base <= pooled.ptr
    assert kind.nbytes >= 64 * MIB
    kind = transfers.memory_kind(pointer + MIB)
    assert kind is not None
    assert (kind.managed, kind.ipc_capable, kind.base) == (True, False, pointer)
    asynchronous = rmm.mr.CudaAsyncMemoryResource()
    other = rmm.DeviceBuffer(size=MIB, mr=asynchronous)
    kind = transfers.memory_kind(other.ptr)
    assert kind is not None
    assert (kind.managed, kind.ipc_capable) == (False, False)
    assert transfers.memory_kind(id(transfers)) is None
    managed.deallocate(pointer, 4 * MIB)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_copy_waits_for_the_stream_and_the_stream_for_its_mark(
    gpu: CudaDriver, *, non_blocking: bool
) -> None:
    transfers = Transfers(gpu)
    pool = rmm_uvm.ipc_pool("128MiB", driver=gpu)
    stream = cupy.cuda.Stream(non_blocking=non_blocking)
    source, staged, target = (rmm.DeviceBuffer(size=NBYTES, mr=pool) for _ in range(3))
    cupy.cuda.Device().synchronize()
    with stream:
        array_of(source)[:] = 1
        _WAIT((1,), (1,), (_WAIT_CYCLES,))
        array_of(source)[:] = 7
    transfers.wait_for(stream.ptr)
    half = NBYTES // 2
    transfers.copy([(staged.ptr, source.ptr, half), (staged.ptr + half, source.ptr + half, half)])
    mark = transfers.mark()
    assert not mark.done()  # nobody has waited yet, and the kernel takes its time
    mark.make_wait(stream.ptr)
    with stream:
        array_of(target)[:] = array_of(staged)
    stream.synchronize()
    assert mark.done()
    assert int((array_of(target) == 7).sum()) == NBYTES // 4


def test_copy_waits_for_the_legacy_stream(gpu: CudaDriver) -> None:
    transfers = Transfers(gpu)
    pool = rmm_uvm.ipc_pool("128MiB", driver=gpu)
    source, target = (rmm.DeviceBuffer(size=NBYTES, mr=pool) for _ in range(2))
    _WAIT((1,), (1,), (_WAIT_CYCLES,))
    array_of(source)[:] = 9
    transfers.wait_for(0)
    transfers.copy([(target.ptr, source.ptr, NBYTES)])
    transfers.mark().wait()
    assert int((array_of(target) == 9).sum()) == NBYTES // 4


def test_copy_from_managed_memory_brings_its_bytes(gpu: CudaDriver) -> None:
    transfers = Transfers(gpu)
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    managed = rmm.DeviceBuffer(size=NBYTES, mr=ManagedMemoryResource(gpu))
    target = rmm.DeviceBuffer(size=NBYTES, mr=pool)
    array_of(managed)[:] = 11
    gpu.prefetch(managed.ptr, NBYTES, "host")
    transfers.wait_for(0)
    transfers.copy([(target.ptr, managed.ptr, NBYTES)])
    transfers.mark().wait()
    assert int((array_of(target) == 11).sum()) == NBYTES // 4


def test_stream_that_is_captured_is_refused_and_its_capture_survives(gpu: CudaDriver) -> None:
    transfers = Transfers(gpu)
    stream = cupy.cuda.Stream(non_blocking=True)
    array = cupy.zeros(1024, "u4")
    with stream:
        array += 1  # compiled before the capture
        stream.synchronize()
        stream.begin_capture()
        array += 1
        with pytest.raises(DriverError, match="captured"):
            transfers.wait_for(stream.ptr)
        graph = stream.end_capture()
        graph.launch()
    stream.synchronize()
    assert int(array[0]) == 2


def test_refused_calls_name_cudas_error(gpu: CudaDriver) -> None:
    transfers = Transfers(gpu)
    managed = ManagedMemoryResource(gpu)
    pointer = managed.allocate(4 * MIB)
    with pytest.raises(DriverError, match=r"CUDA_ERROR_\w+ \(\d+\); only cudaMalloc memory"):
        transfers.ipc_memory_handle(pointer)
    with pytest.raises(DriverError, match=r"CUDA_ERROR_\w+ \(\d+\)"):
        transfers.open_ipc_memory(bytes(64))
    managed.deallocate(pointer, 4 * MIB)


# Export and open

READER = """
import cupy
device_id = {device_id}
cupy.cuda.Device(device_id).use()
def count(handle, value, stream=None):
    # How many of its 32-bit numbers have the value, read in a stream of the reader's.
    stream = stream or cupy.cuda.Stream(non_blocking=True)
    with rmm_uvm.ipc.open(handle, stream=stream.ptr) as opened, stream:
        return int((cupy.asarray(opened).view('u4') == value).sum())
"""


def reader_on(process: OtherProcess, device_id: int) -> None:
    process.ask(READER.format(device_id=device_id))


def test_every_gpu_reads_what_was_exported_after_the_exporters_stream(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("128MiB", driver=gpu)
    stream = cupy.cuda.Stream(non_blocking=True)
    assert devices()
    for device_id in devices():
        with other_process() as reader:
            reader_on(reader, device_id)
            for value in range(1, 6):
                buffer = rmm.DeviceBuffer(size=NBYTES, stream=Stream(stream), mr=pool)
                with stream:
                    array_of(buffer)[:] = 0
                    _WAIT((1,), (1,), (_WAIT_CYCLES // 4,))
                    array_of(buffer)[:] = value
                handle = pool.export(buffer, stream=stream.ptr)
                del buffer
                found = reader.ask(f"count({handle!r}, {value})")
                assert found == NBYTES // 4, f"device {device_id}"
                assert pool.collect() == NBYTES


def test_every_gpu_writes_what_the_exporter_sees(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    for device_id in devices():
        buffer = rmm.DeviceBuffer(size=NBYTES, mr=pool)
        array_of(buffer)[:] = 0
        handle = pool.export(buffer)
        with other_process() as reader:
            reader_on(reader, device_id)
            reader.ask(
                f"o = rmm_uvm.ipc.open({handle!r})\n"
                f"cupy.asarray(o).view('u4')[:] = {device_id + 40}\n"
                "o.close()"
            )
        assert pool.collect() == NBYTES
        assert int((array_of(buffer) == device_id + 40).sum()) == NBYTES // 4


def test_every_gpu_copies_by_transfers_into_its_own_pool(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    buffer = rmm.DeviceBuffer(size=NBYTES, mr=pool)
    array_of(buffer)[:] = cupy.arange(NBYTES // 4, dtype="u4")
    for device_id in devices():
        handle = pool.export(buffer)
        with other_process() as reader:
            reader_on(reader, device_id)
            wrong = reader.ask(
                "own = rmm_uvm.ipc_pool('64MiB', device=device_id)\n"
                f"target = rmm.DeviceBuffer(size={NBYTES}, mr=own)\n"
                f"with rmm_uvm.ipc.open({handle!r}, transfers=own.transfers) as o:\n"
                "    own.transfers.wait_for(0)\n"
                "    own.transfers.copy([(target.ptr, o.ptr, o.nbytes)])\n"
                "    own.transfers.mark().wait()\n"
            )
            wrong = reader.ask(
                f"int((cupy.asarray(target).view('u4') != cupy.arange({NBYTES // 4}, dtype='u4'))"
                ".sum())"
            )
            assert wrong == 0, f"device {device_id}"
            reader.ask("del target, own; gc.collect()")


def test_many_buffers_are_each_their_own_and_their_memory_is_used_anew(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("16MiB", driver=gpu)
    with other_process() as reader:
        reader_on(reader, devices()[-1])
        for first in range(0, 200, 8):
            handles = []
            for value in range(first, first + 8):  # 12 of the 16 MiB
                buffer = rmm.DeviceBuffer(size=3 * MIB // 2, mr=pool)
                array_of(buffer)[:] = value
                handles.append(pool.export(buffer))
            del buffer
            found = reader.ask(f"[count(h, {first} + i) for i, h in enumerate({handles!r})]")
            assert found == [3 * MIB // 8] * 8
        reader.ask("assert slabs().counts() == (1, 0)")


def test_reader_that_is_killed_gives_its_memory_back(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    buffer = rmm.DeviceBuffer(size=NBYTES, mr=pool)
    array_of(buffer)[:] = 3
    with other_process() as reader:
        reader_on(reader, 0)
        reader.ask(f"o = rmm_uvm.ipc.open({pool.export(buffer)!r}); cupy.asarray(o).sum()")
        assert pool.collect() == 0
        reader.kill()
    assert pool.collect() == NBYTES
    assert int((array_of(buffer) == 3).sum()) == NBYTES // 4


def test_slab_of_an_exporter_that_was_killed_can_be_closed(gpu: CudaDriver) -> None:
    with other_process() as exporter:
        exporter.ask(
            "import cupy\n"
            "pool = rmm_uvm.ipc_pool('64MiB')\n"
            f"buffer = rmm.DeviceBuffer(size={NBYTES}, mr=pool)\n"
            "cupy.asarray(buffer)[:] = 5\n"
            "handle = pool.export(buffer)"
        )
        opened = rmm_uvm.ipc.open(bytes.fromhex(exporter.ask("handle")))
        assert int((cupy.asarray(opened) == 5).sum()) == NBYTES
        exporter.kill()
    opened.close()
    assert slabs().counts() == (0, 0)
    cupy.cuda.Device().synchronize()  # the context has survived it


def test_managed_and_foreign_memory_are_not_exported(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    managed = rmm.DeviceBuffer(size=MIB, mr=ManagedMemoryResource(gpu))
    with pytest.raises(ConfigurationError, match="managed memory, which has no IPC handle"):
        pool.export(managed)
    with pytest.raises(ConfigurationError, match="another allocation"):
        pool.export(rmm.DeviceBuffer(size=MIB, mr=rmm.mr.CudaMemoryResource()))
    host = ctypes.create_string_buffer(64)

    class Host:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (64,),
            "typestr": "|u1",
            "data": (ctypes.addressof(host), False),
            "version": 3,
        }

    with pytest.raises(ConfigurationError, match="no device memory"):
        pool.export(Host())


def test_handle_that_names_bytes_past_the_slab_is_refused(gpu: CudaDriver) -> None:
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    handle = pool.export(rmm.DeviceBuffer(size=MIB, mr=pool))
    far = Handle.unpack(handle)._replace(slab_bytes=1 << 40, offset=1 << 39).pack()
    for device_id in devices():
        with other_process() as reader:
            reader_on(reader, device_id)
            with pytest.raises(OtherError, match="of a slab that has"):
                reader.ask(f"rmm_uvm.ipc.open({far!r})")
    assert pool.revoke(handle)


def test_device_that_is_hidden_from_the_reader_is_named(
    gpu: CudaDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = rmm_uvm.ipc_pool("64MiB", driver=gpu)
    handle = pool.export(rmm.DeviceBuffer(size=MIB, mr=pool))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, devices()[1:])) or "-1")
    with other_process() as reader, pytest.raises(OtherError, match="is not visible here"):
        reader.ask(f"rmm_uvm.ipc.open({handle!r})")
    assert pool.revoke(handle)
