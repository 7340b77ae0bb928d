# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the process' resident memory, by which Dask pauses a worker, shows data on the host.

    RMM_UVM_MANAGED_LIMIT=2GiB python benchmarks/cluster/pause.py --json FILE

One allocation of a managed pool lies on the device, is prefetched to the host, is then touched by
the CPU, and goes back to the device. At each point: what the kernel says of this process, of its
cgroup and of the machine, and what `rmm_uvm.dask.worker.host_pause` would add. ``--simulated``
tries the script itself without a GPU; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
from pathlib import Path
from typing import Any

import psutil

import rmm_uvm
from rmm_uvm.dask.worker import host_pause
from rmm_uvm.drivers import SimulatedDevice

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

GIB = 1 << 30


def status_bytes() -> dict[str, int]:
    """Return the resident memory of this process, all and by kind."""
    text = Path("/proc/self/status").read_text()
    return {name: int(kib) << 10 for name, kib in re.findall(r"(VmRSS|Rss\w+):\s+(\d+) kB", text)}


def mapped_bytes(address: int) -> int | None:
    """Return the resident bytes of the mapping that an address lies in; None if there is none."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("Rss:"):
            return int(line.split()[1]) << 10
    return None


def cgroup_bytes() -> int | None:
    """Return what the process' cgroup has charged; None if that cannot be read."""
    group = re.search(r"^0::(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    candidates = [Path("/sys/fs/cgroup/memory.current")]
    if group:
        candidates.insert(0, Path(f"/sys/fs/cgroup{group[1]}/memory.current"))
    candidates.append(Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))
    for path in candidates:
        if path.exists():
            return int(path.read_text())
    return None


def machine_available_bytes() -> int:
    """Return the memory that the machine has available."""
    text = Path("/proc/meminfo").read_text()
    found = re.search(r"MemAvailable:\s+(\d+) kB", text)
    if found is None:
        raise SystemExit("/proc/meminfo does not tell MemAvailable")
    return int(found[1]) << 10


def figures(address: int, told: host_pause.WithEvicted) -> dict[str, Any]:
    """Return everything there is to see at this moment."""
    installation = rmm_uvm.current_installation()
    snapshot = installation.monitor.snapshot()
    return {
        "psutil_rss_bytes": psutil.Process().memory_info().rss,
        **{f"{name}_bytes": value for name, value in status_bytes().items()},
        "mapping_rss_bytes": mapped_bytes(address),
        "cgroup_bytes": cgroup_bytes(),
        "machine_available_bytes": machine_available_bytes(),
        "footprint_bytes": snapshot.footprint_bytes,
        "resident_bytes": snapshot.resident_bytes,
        "resident_exact": snapshot.resident_exact,
        "evicted_bytes": host_pause.evicted_bytes(),
        "told_bytes": told(),
    }


def touch_by_cpu(driver: Any, address: int, nbytes: int) -> None:
    """Read every page from the CPU; what is on the host is then mapped."""
    if isinstance(driver, SimulatedDevice):
        driver.cpu_touch(address, nbytes)
        return
    for offset in range(0, nbytes, 4096):
        ctypes.c_char.from_address(address + offset).value  # noqa: B018 - the read is the point


def measure(size_bytes: int) -> dict[str, Any]:
    """Move one allocation about, and look at each point."""
    mr = rmm_uvm.current_installation().managed_mr
    address = mr.allocate(size_bytes)
    points = {}
    told = host_pause.WithEvicted(lambda: psutil.Process().memory_info().rss)
    for name, where in (("on_device", "device"), ("on_host", "host")):
        mr.driver.prefetch(address, size_bytes, where)
        mr.driver.synchronize()
        points[name] = figures(address, told)
    touch_by_cpu(mr.driver, address, size_bytes)
    points["on_host_touched_by_cpu"] = figures(address, told)
    mr.driver.prefetch(address, size_bytes, "device")
    mr.driver.synchronize()
    points["on_device_again"] = figures(address, told)
    mr.deallocate(address, size_bytes)
    return points


def verdicts(points: dict[str, Any], size_bytes: int) -> dict[str, Any]:
    """Return how much of the data each figure showed, as a fraction of them."""

    def shown(name: str, point: str) -> float | None:
        before, after = points["on_device"][name], points[point][name]
        return None if before is None or after is None else round((after - before) / size_bytes, 3)

    return {
        "rss_shows_host_data": shown("psutil_rss_bytes", "on_host"),
        "rss_shows_host_data_touched_by_cpu": shown("psutil_rss_bytes", "on_host_touched_by_cpu"),
        "cgroup_shows_host_data": shown("cgroup_bytes", "on_host"),
        "machine_has_less_by": shown("machine_available_bytes", "on_host"),
        "dask_is_told_host_data": shown("told_bytes", "on_host"),
        "dask_is_told_host_data_touched_by_cpu": shown("told_bytes", "on_host_touched_by_cpu"),
    }


def main() -> None:
    """Run it and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--simulated", action="store_true")
    asked = parser.parse_args()
    driver = rmm_uvm.simulated_device("4GiB") if asked.simulated else rmm_uvm.cuda_driver(0)
    limit_bytes = harness.require_managed_limit(driver.memory()[0])
    size_bytes = min(GIB, limit_bytes // 2)
    with rmm_uvm.reinitialize(
        size_bytes, limit_bytes // 2, driver=driver, libraries=(), monitor={"on_finding": None}
    ):
        points = measure(size_bytes)
    harness.write_json(
        asked.json,
        "dask_pause",
        {
            "size_bytes": size_bytes,
            "points": points,
            "verdicts": verdicts(points, size_bytes),
        },
    )


if __name__ == "__main__":
    main()
