# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Side streams of a driver, and host memory that copies take in turn."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

import rmm_uvm
from rmm_uvm._lib.sim import SimulatedDevice
from rmm_uvm.errors import DriverError
from rmm_uvm.torch.activations.host_buffers import HostBuffers
from rmm_uvm.torch.activations.side_streams import CudaSideStreams, staging_bytes_of

from ...support.late_streams import LateStreams

NBYTES = 4096


MIB = 1 << 20


@pytest.fixture
def device() -> SimulatedDevice:
    """Give a device whose copies move bytes."""
    return rmm_uvm.simulated_device("64MiB", backing=True)


def tensor_at(address: int) -> torch.Tensor:
    return torch.frombuffer((ctypes.c_uint8 * NBYTES).from_address(address), dtype=torch.uint8)


@pytest.mark.parametrize("staging_bytes", [0, 2048])
def test_bytes_are_copied_out_and_back_in_order(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch, staging_bytes: int
) -> None:
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _: 0, raising=False)
    mr = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    there, host, again = (tensor_at(mr.allocate(NBYTES)) for _ in range(3))
    there.copy_(torch.arange(NBYTES) % 251)
    again.zero_()
    streams = CudaSideStreams(device, staging_bytes)
    assert streams.staging_bytes == staging_bytes
    stream = streams.current()
    streams.follow(streams.out, stream)
    streams.copy(streams.out, host.untyped_storage(), there.untyped_storage(), NBYTES)
    copied = streams.mark(streams.out)
    streams.wait(stream, copied)
    streams.follow(streams.back, stream)
    streams.copy(streams.back, again.untyped_storage(), host.untyped_storage(), NBYTES - 1)
    streams.finish()
    assert streams.passed(copied)
    assert torch.equal(again[:-1], there[:-1])
    assert again[-1] == 0  # no more than was asked for


@pytest.mark.parametrize(("free", "taken"), [(33, 32), (25, 16), (9, 0)])
def test_side_without_room_for_staging_copies_without(
    device: SimulatedDevice, free: int, taken: int
) -> None:
    mr = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    there, host, again = (tensor_at(mr.allocate(NBYTES)) for _ in range(3))
    there.copy_(torch.arange(NBYTES) % 251)
    mr.allocate(device.memory()[0] - free * MIB)
    streams = CudaSideStreams(device, 32 * MIB)
    assert streams.staging_bytes == taken * MIB
    streams.copy(streams.out, host.untyped_storage(), there.untyped_storage(), NBYTES)
    streams.copy(streams.back, again.untyped_storage(), host.untyped_storage(), NBYTES)
    streams.finish()
    assert torch.equal(again, there)


def test_staging_that_fails_otherwise_is_an_error(device: SimulatedDevice) -> None:
    device.fail_call("take_staging", "driver_error")
    with pytest.raises(DriverError):
        CudaSideStreams(device, 32 * MIB)


def test_staging_is_a_small_part_of_the_budget_and_no_more_than_hides_its_cost() -> None:
    assert staging_bytes_of(1 << 40) == 64 * MIB
    assert staging_bytes_of(1 << 30) == 32 * MIB
    assert staging_bytes_of(128 * MIB) == 4 * MIB
    assert staging_bytes_of(128 * MIB - 1) == 0


def test_only_the_default_stream_is_usual(device: SimulatedDevice) -> None:
    streams = CudaSideStreams(device)
    assert streams.is_usual(0)
    assert not streams.is_usual(2)  # per thread


def test_device_that_gives_no_stream_is_an_error_at_once(device: SimulatedDevice) -> None:
    device.fail_call("mark", "driver_error")
    with pytest.raises(DriverError):
        CudaSideStreams(device)


def test_buffers_are_powers_of_two_and_taken_again() -> None:
    buffers = HostBuffers(LateStreams())
    sizes = [1, 2, 3, 4096, 4097]
    taken = [one for size in sizes if (one := buffers.take(size, 0)) is not None]
    assert [one.nbytes for one in taken] == [1, 2, 4, 4096, 8192]
    buffers.give_back(taken[3])
    assert buffers.take(2049, 0) is taken[3]
    assert buffers.take(4096, 0) is not taken[3]


def test_buffer_that_is_given_back_twice_is_one() -> None:
    buffers = HostBuffers(LateStreams())
    buffer = buffers.take(64, 0)
    for _ in range(2):
        buffers.give_back(buffer)
    assert buffers.take(64, 0) is not buffers.take(64, 0)


def test_stream_waits_for_whoever_reads_a_buffer_still() -> None:
    streams = LateStreams()
    buffers = HostBuffers(streams)
    buffer, target = buffers.take(64, 0), torch.zeros(64, dtype=torch.uint8)
    buffer.fill_(7)
    streams.follow(streams.back, 0)
    streams.copy(streams.back, target.untyped_storage(), buffer.untyped_storage(), 64)
    buffers.give_back(buffer, streams.mark(streams.back))
    assert not bool((target == 7).any())
    assert buffers.take(64, 0) is buffer
    assert bool((target == 7).all())  # before who takes it writes


def test_buffers_stay_until_copies_are_over_and_go_then() -> None:
    streams = LateStreams()
    buffers = HostBuffers(streams)
    kept, free = (buffers.take(64, 0) for _ in range(2))
    buffers.give_back(free)
    assert streams.finished_total == 0
    buffers.end()
    assert streams.finished_total == 1
    buffers.give_back(kept)
    assert streams.finished_total == 2
    assert buffers.take(64, 0) is not kept


def test_end_goes_through_although_the_device_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise DriverError("an illegal address was read")

    streams = LateStreams()
    buffers = HostBuffers(streams)
    free = buffers.take(64, 0)
    buffers.give_back(free)
    monkeypatch.setattr(streams, "finish", fails)
    buffers.end()
    assert buffers.take(64, 0) is not free


def test_buffer_whose_owner_is_lost_stays_until_the_end() -> None:
    """An interrupt between a copy and its record: others must not have what is written to."""
    streams = LateStreams()
    buffers = HostBuffers(streams)
    lost = buffers.take(64, 0)
    assert lost is not None
    gone = StorageWeakRef(lost.untyped_storage())
    del lost
    assert not gone.expired()
    buffers.end()
    assert streams.finished_total == 1  # before it can go
    del buffers
    assert gone.expired()


def test_interrupt_while_a_buffer_is_taken_again_leaves_it_with_us(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_mark: object) -> bool:
        raise KeyboardInterrupt

    streams = LateStreams()
    buffers = HostBuffers(streams)
    buffer = buffers.take(64, 0)
    assert buffer is not None
    gone = StorageWeakRef(buffer.untyped_storage())
    buffers.give_back(buffer, streams.mark(streams.back))
    del buffer
    monkeypatch.setattr(streams, "passed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        buffers.take(64, 0)
    assert not gone.expired()  # it may be read from still


def test_without_room_free_buffers_are_taken_and_others_are_asked_for_later() -> None:
    streams = LateStreams(host_bytes=64)
    buffers = HostBuffers(streams)
    buffer = buffers.take(64, 0)
    assert buffer is not None
    assert buffers.take(32, 0) is None
    buffers.give_back(buffer)
    assert buffers.take(64, 0) is buffer
    streams.host_bytes = 32
    assert buffers.take(32, 0) is None  # to ask takes long
    buffers.ask_again()
    assert buffers.take(32, 0) is not None


def test_copies_that_cannot_be_tried_count_as_endless(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: CudaSideStreams, _nbytes: int) -> torch.Tensor:
        raise RuntimeError("no pinned memory")

    monkeypatch.setattr(CudaSideStreams, "host_buffer", refuse)
    assert CudaSideStreams(device).seconds_of_copies() == float("inf")
