# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Watching on a real device: exact to the byte, other processes too, and nothing left behind."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import cupy
import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.cuda import Nvml, ProcessCounters
from rmm_uvm.drivers import CudaDriver

from .contents import PatternBuffer

pytestmark = pytest.mark.gpu

MIB = 1 << 20
PAGE_BYTES = 4096


def touch_by_cpu(address: int, nbytes: int) -> None:
    data = np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype=np.uint8)
    data[::PAGE_BYTES] += 1


def touch_by_gpu(address: int, nbytes: int) -> None:
    memory = cupy.cuda.UnownedMemory(address, nbytes, None)
    array = cupy.ndarray(nbytes, cupy.uint8, cupy.cuda.MemoryPointer(memory, 0))
    array += 1
    cupy.cuda.Device().synchronize()


def run_python(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own, under the cap of this one."""
    return subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(source)],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "1GiB", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def managed(gpu: CudaDriver) -> rmm_uvm.mr.ManagedMemoryResource:
    return rmm_uvm.mr.ManagedMemoryResource(gpu, prefetch="never")


def test_bytes_each_way_over_a_mix_are_exact(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    size, block = 64 * MIB, 2 * MIB
    address = managed.allocate(size)
    random = np.random.default_rng(3)
    on_device = np.zeros(size // block, dtype=bool)
    with rmm_uvm.monitor(driver=gpu, on_finding=None, publish=False) as m:
        touch_by_cpu(address, size)  # populates, moves nothing
        for _ in range(40):
            first = int(random.integers(0, 32))
            last = int(random.integers(first, 32)) + 1
            begin, nbytes = address + first * block, (last - first) * block
            way = int(random.integers(0, 4))
            before = m.snapshot()
            if way == 0:
                gpu.prefetch(begin, nbytes, "device")
            elif way == 1:
                touch_by_gpu(begin, nbytes)
            elif way == 2:
                gpu.prefetch(begin, nbytes, "host")
            else:
                touch_by_cpu(begin, nbytes)
            gpu.synchronize()
            window = m.window(before)
            # A block moves exactly when it is not yet where it is wanted.
            moves = int((on_device[first:last] != (way < 2)).sum()) * block
            counted = (window.host_to_device_bytes, window.device_to_host_bytes)
            assert counted == ((moves, 0) if way < 2 else (0, moves))
            on_device[first:last] = way < 2
        # Everything to the device, then everything back: whole, to the byte.
        gpu.prefetch(address, size, "device")
        gpu.synchronize()
        start = m.snapshot()
        touch_by_cpu(address, size)
        assert m.window(start).device_to_host_bytes == size
        start = m.snapshot()
        touch_by_gpu(address, size)
        window = m.window(start)
        assert (window.host_to_device_bytes, window.device_to_host_bytes) == (size, 0)
        start = m.snapshot()
        gpu.prefetch(address, size, "host")
        gpu.synchronize()
        window = m.window(start)
        assert (window.host_to_device_bytes, window.device_to_host_bytes) == (0, size)
        assert window.own_to_host_bytes == size
    managed.deallocate(address, size)


def test_faults_are_counted_when_asked_for_and_not_before(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    address = managed.allocate(16 * MIB)
    touch_by_cpu(address, 16 * MIB)
    with rmm_uvm.monitor(driver=gpu, on_finding=None, publish=False) as m:
        assert m.snapshot().gpu_faults is None
    own = rmm_uvm.cuda_driver(0)  # a driver keeps its tracker of faults until it goes
    with rmm_uvm.monitor(driver=own, faults=True, on_finding=None, publish=False) as m:
        start = m.snapshot()
        touch_by_gpu(address, 16 * MIB)
        touch_by_cpu(address, 16 * MIB)
        window = m.window(start)
        assert window.gpu_faults is not None
        assert window.gpu_faults > 0
        assert window.cpu_faults is not None
        assert window.cpu_faults > 0
    managed.deallocate(address, 16 * MIB)


def test_pass_that_fits_has_no_finding_and_no_eviction() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with rmm_uvm.reinitialize("512MiB", "1GiB", libraries=("cupy",)) as uvm:
            assert uvm.monitor is not None
            assert uvm.monitor.sources["kernel_counters"]
            wrong = cupy.zeros(1, cupy.uint64)
            for seed in range(20):
                buffer = PatternBuffer.make(uvm.managed_mr, 20 * MIB, seed, cupy.cuda.Stream.null)
                buffer.count_wrong(wrong)
                buffer.free(uvm.managed_mr)
            assert int(wrong[0]) == 0
            snapshot = uvm.monitor.snapshot()
            assert snapshot.footprint_bytes is not None
            assert snapshot.evicted_bytes_estimate == 0
            assert snapshot.device_used_bytes is not None
            assert uvm.monitor.findings == ()
            del wrong


def test_chain_of_rmm_alone_is_watched(gpu: CudaDriver) -> None:
    before = rmm.mr.get_current_device_resource()
    pool = rmm.mr.PoolMemoryResource(
        rmm.mr.LimitingResourceAdaptor(rmm.mr.ManagedMemoryResource(), 256 * MIB),
        64 * MIB,
        128 * MIB,
    )
    rmm.mr.set_current_device_resource(rmm.mr.StatisticsResourceAdaptor(pool))
    try:
        with rmm_uvm.monitor(driver=gpu, on_finding=None, publish=False) as m:
            buffer = rmm.DeviceBuffer(size=8 * MIB)
            touch_by_cpu(buffer.ptr, 8 * MIB)
            touch_by_gpu(buffer.ptr, 8 * MIB)
            snapshot = m.snapshot()
            assert m.sources["rmm_chain"]
            assert snapshot.footprint_bytes == 8 * MIB
            assert snapshot.host_to_device_bytes == 8 * MIB
            del buffer
    finally:
        rmm.mr.set_current_device_resource(before)


FOREIGN = """
import ctypes, sys
import cupy, numpy as np

nbytes = 64 << 20
memory = cupy.cuda.malloc_managed(nbytes)
data = np.frombuffer((ctypes.c_char * nbytes).from_address(memory.ptr), dtype=np.uint8)
data[::4096] += 1
array = cupy.ndarray(nbytes, cupy.uint8, memory)
print("ready", flush=True)
for line in sys.stdin:
    array += 1
    cupy.cuda.Device().synchronize()
    data[::4096] += 1
    print("done", flush=True)
"""


@pytest.fixture
def foreign() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", FOREIGN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


def one_round(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_foreign_process_is_read_to_the_byte(foreign: subprocess.Popen[str]) -> None:
    with ProcessCounters(foreign.pid) as counters:
        before = counters.read()
        one_round(foreign)
        after = counters.read()
    size = 64 * MIB
    assert after["host_to_device_bytes"] - before["host_to_device_bytes"] == size
    assert after["device_to_host_bytes"] - before["device_to_host_bytes"] == size


def test_foreign_process_that_exits_is_let_go_of_at_once(
    gpu: CudaDriver, foreign: subprocess.Popen[str]
) -> None:
    nvml, uuid = Nvml(), gpu.info.uuid
    with ProcessCounters(foreign.pid) as counters:
        one_round(foreign)
        while_running = nvml.memory(uuid)[0]
        foreign.stdin.close()
        foreign.wait(30)
        begin = time.monotonic()
        assert counters.wait(1.0)
        assert counters.exited
        while nvml.memory(uuid)[0] >= while_running and time.monotonic() - begin < 5.0:
            time.sleep(0.02)
        assert nvml.memory(uuid)[0] < while_running


def test_top_of_a_foreign_process_gives_its_bytes(foreign: subprocess.Popen[str]) -> None:
    command = [sys.executable, "-P", "-m", "rmm_uvm.cli", "top", "--json", "--interval", "2"]
    with subprocess.Popen([*command, str(foreign.pid)], stdout=subprocess.PIPE, text=True) as top:
        for _ in range(30):
            one_round(foreign)
            time.sleep(0.05)
        output = top.communicate(timeout=30)[0]
    assert top.returncode == 0, output
    [process] = [row for row in json.loads(output)["processes"] if row["pid"] == foreign.pid]
    assert process["host_to_device_bytes"] > 0


def test_run_of_a_plain_program_reports_its_traffic(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "import cupy, ctypes\n"
        "m = cupy.cuda.malloc_managed(64 << 20)\n"
        "ctypes.memset(m.ptr, 1, 64 << 20)\n"
        "a = cupy.ndarray(64 << 20, cupy.uint8, m)\n"
        "a += 1\n"
        "print(int(a[-1]))\n"
        "import time; time.sleep(1)\n"
    )
    for arguments in (["--no-pool", str(script)], ["--no-pool", "--", sys.executable, str(script)]):
        out = tmp_path / "out.json"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "rmm_uvm.cli", "run", "--json", str(out), *arguments],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "2\n"
        assert "64.00 MiB to the device" in done.stderr, done.stderr
        assert json.loads(out.read_text())


def test_device_reset_leaves_monitor_and_process_whole() -> None:
    done = run_python(
        """
        import ctypes, time
        import cupy, rmm_uvm
        m = rmm_uvm.monitor(on_finding=None, publish=False, interval_seconds=0.02)
        m.start()
        cupy.zeros(1000).sum()
        time.sleep(0.2)
        assert ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0) == 0
        time.sleep(0.5)
        print(len(m.samples()) > 5, m.snapshot().host_to_device_bytes)
        m.stop()
        print("whole")
        """
    )
    assert done.stdout.endswith("whole\n"), done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


def test_fork_leaves_parent_watching_and_child_whole() -> None:
    done = run_python(
        """
        import os, time
        import cupy, rmm_uvm
        m = rmm_uvm.monitor(on_finding=None, publish=False, interval_seconds=0.02)
        m.start()
        driver = rmm_uvm.cuda_driver(0)
        mr = rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")
        p = mr.allocate(8 << 20)
        driver.prefetch(p, 8 << 20, "host"); driver.synchronize()
        start = m.snapshot()
        pid = os.fork()
        if pid == 0:
            m.stop()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        import ctypes
        ctypes.memset(p, 1, 8 << 20)
        driver.prefetch(p, 8 << 20, "device"); driver.synchronize()
        assert m.window(start).host_to_device_bytes == 8 << 20, m.window(start)
        n = len(m.samples()); time.sleep(0.3)
        assert len(m.samples()) > n
        mr.deallocate(p, 8 << 20)
        m.stop()
        print("whole")
        """
    )
    assert done.stdout.endswith("whole\n"), done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


def test_exit_while_watching_is_clean() -> None:
    done = run_python(
        """
        import rmm_uvm
        m = rmm_uvm.monitor(on_finding=None, interval_seconds=0.01)
        m.start()
        uvm = rmm_uvm.reinitialize("64MiB", "128MiB")
        print("last line")
        """
    )
    assert (done.returncode, done.stdout) == (0, "last line\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_attribution_is_told_while_it_is_on_and_costs_no_stop(
    gpu: CudaDriver, managed: rmm_uvm.mr.ManagedMemoryResource
) -> None:
    address = managed.allocate(32 * MIB)
    touch_by_cpu(address, 32 * MIB)
    with rmm_uvm.monitor(driver=gpu, attribution=True, on_finding=None, publish=False) as m:
        assert m.sources["cupti"], m.sources["cupti"].reason
        gpu.prefetch(address, 32 * MIB, "device")
        gpu.synchronize()
        deadline = time.monotonic() + 10
        causes = m.snapshot().causes
        while not causes["host_to_device_bytes"]["user"] and time.monotonic() < deadline:
            time.sleep(0.2)
            causes = m.snapshot().causes
        assert causes["host_to_device_bytes"]["user"] == 32 * MIB
        touch_by_cpu(address, 16 * MIB)
    causes = m.snapshot().causes
    assert causes["host_to_device_bytes"]["user"] == 32 * MIB
    assert sum(causes["device_to_host_bytes"].values()) == 16 * MIB
    managed.deallocate(address, 32 * MIB)


def test_bytes_of_every_device_are_its_own() -> None:
    count = cupy.cuda.runtime.getDeviceCount()
    drivers = [rmm_uvm.cuda_driver(number) for number in range(count)]
    resources = [rmm_uvm.mr.ManagedMemoryResource(each, prefetch="never") for each in drivers]
    with rmm_uvm.monitor(devices=range(count), on_finding=None, publish=False) as m:
        assert [facts.device_id for facts in m.devices] == list(range(count))
        assert len({facts.uuid for facts in m.devices}) == count
        for number, (driver, mr) in enumerate(zip(drivers, resources, strict=True)):
            size = (number + 1) * 8 * MIB
            address = mr.allocate(size)
            touch_by_cpu(address, size)
            driver.prefetch(address, size, "device")
            driver.synchronize()
            touch_by_cpu(address, size // 2)
            mr.deallocate(address, size)
        for number in range(count):
            snapshot = m.snapshot(number)
            assert snapshot.host_to_device_bytes == (number + 1) * 8 * MIB
            assert snapshot.device_to_host_bytes == (number + 1) * 4 * MIB
        assert set(m.samples()["device_id"]) == set(range(count))
