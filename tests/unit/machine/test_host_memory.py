# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Host memory, read from file trees as Linux machines and containers show them."""

from pathlib import Path

import pytest

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.host_memory import HostMemory, host_memory

GIB = 2**30
TOTAL_BYTES = 64 * GIB
AVAILABLE_BYTES = 48 * GIB

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1_MOUNT = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
CPU_MOUNT = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"
# What version 1 shows for "no limit": the largest multiple of a page below 2**63.
V1_UNLIMITED = 9223372036854771712


class Machine:
    """Writes the files of one machine below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write(
            "/proc/meminfo",
            f"MemTotal:  {TOTAL_BYTES // 1024} kB\nMemFree:  12 kB\n"
            f"MemAvailable:  {AVAILABLE_BYTES // 1024} kB\nHugePages_Total:  0\n",
        )

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def join(self, cgroup: str, *mounts: str) -> None:
        """Put this process into cgroups, with these cgroup file systems mounted."""
        self.write("/proc/self/cgroup", cgroup + "\n")
        self.write("/proc/self/mountinfo", "\n".join(mounts) + "\n")

    def v2(
        self, path: str, *, limit: str | int, used: int, cache: int = 0, high: str = "max"
    ) -> None:
        directory = f"/sys/fs/cgroup/{path}"
        self.write(f"{directory}/memory.max", f"{limit}\n")
        self.write(f"{directory}/memory.high", f"{high}\n")
        self.write(f"{directory}/memory.current", f"{used}\n")
        self.write(f"{directory}/memory.stat", f"anon 1\nfile {cache}\ninactive_file {cache}\n")

    def v1(self, path: str, *, limit: int, used: int, cache: int = 0) -> None:
        directory = f"/sys/fs/cgroup/memory/{path}"
        self.write(f"{directory}/memory.limit_in_bytes", f"{limit}\n")
        self.write(f"{directory}/memory.usage_in_bytes", f"{used}\n")
        # The first figure is this cgroup's alone; usage covers its children too.
        self.write(f"{directory}/memory.stat", f"inactive_file 7\ntotal_inactive_file {cache}\n")

    def read(self) -> HostMemory:
        return host_memory(self.root)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_machine_without_cgroups_gives_available_memory(machine: Machine) -> None:
    assert machine.read() == HostMemory(TOTAL_BYTES, AVAILABLE_BYTES, None, "")


def test_v2_limit_less_usage_bounds_available(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=16 * GIB, used=4 * GIB)
    memory = machine.read()
    assert memory.available_bytes == 12 * GIB
    assert memory.limit_bytes == 16 * GIB
    assert memory.limit_source.endswith("/sys/fs/cgroup/pod/memory.max")


def test_v2_inactive_page_cache_does_not_count_as_used(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=16 * GIB, used=15 * GIB, cache=10 * GIB)
    assert machine.read().available_bytes == 11 * GIB


def test_v2_max_is_no_limit(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit="max", used=4 * GIB)
    assert machine.read() == HostMemory(TOTAL_BYTES, AVAILABLE_BYTES, None, "")


def test_v2_high_below_max_is_the_limit(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=16 * GIB, used=4 * GIB, high=str(8 * GIB))
    memory = machine.read()
    assert (memory.available_bytes, memory.limit_bytes) == (4 * GIB, 8 * GIB)
    assert memory.limit_source.endswith("memory.high")


@pytest.mark.parametrize("tight", ["slice", "slice/pod", "slice/pod/leaf"])
def test_v2_tightest_of_the_whole_path_counts(machine: Machine, tight: str) -> None:
    machine.join("0::/slice/pod/leaf", V2_MOUNT)
    for path in ("slice", "slice/pod", "slice/pod/leaf"):
        machine.v2(path, limit=10 * GIB if path == tight else 40 * GIB, used=GIB)
    memory = machine.read()
    assert memory.available_bytes == 9 * GIB
    assert memory.limit_source.endswith(f"/{tight}/memory.max")


def test_v2_ancestor_with_larger_limit_but_less_room_counts(machine: Machine) -> None:
    machine.join("0::/slice/pod", V2_MOUNT)
    machine.v2("slice", limit=32 * GIB, used=31 * GIB)
    machine.v2("slice/pod", limit=8 * GIB, used=2 * GIB)
    memory = machine.read()
    assert (memory.available_bytes, memory.limit_bytes) == (GIB, 32 * GIB)


def test_v2_in_cgroup_namespace_reads_the_mount_point(machine: Machine) -> None:
    machine.join("0::/", V2_MOUNT)
    machine.v2("", limit=16 * GIB, used=0)
    assert machine.read().available_bytes == 16 * GIB


def test_v2_group_outside_of_namespace_reads_the_mount_point(machine: Machine) -> None:
    machine.join("0::/../other", V2_MOUNT)
    machine.v2("", limit=16 * GIB, used=0)
    machine.v2("../other", limit=GIB, used=0)
    assert machine.read().available_bytes == 16 * GIB


def test_v1_limit_less_usage_bounds_available(machine: Machine) -> None:
    machine.join("4:memory:/job\n1:cpu:/elsewhere", CPU_MOUNT, V1_MOUNT)
    machine.v1("job", limit=16 * GIB, used=5 * GIB, cache=GIB)
    memory = machine.read()
    assert memory.available_bytes == 12 * GIB
    assert memory.limit_source.endswith("/memory/job/memory.limit_in_bytes")


def test_v1_unlimited_value_is_no_limit(machine: Machine) -> None:
    machine.join("4:memory:/job", V1_MOUNT)
    machine.v1("job", limit=V1_UNLIMITED, used=5 * GIB)
    machine.v1("", limit=V1_UNLIMITED, used=5 * GIB)
    assert machine.read() == HostMemory(TOTAL_BYTES, AVAILABLE_BYTES, None, "")


def test_v1_container_without_namespace_strips_the_mount_root(machine: Machine) -> None:
    # The path names the cgroup as the host sees it; the container mounts only that part.
    machine.join("4:cpu,memory:/docker/abc/job", V1_MOUNT.replace(" / ", " /docker/abc ", 1))
    machine.v1("", limit=16 * GIB, used=GIB)
    machine.v1("job", limit=4 * GIB, used=GIB)
    assert machine.read().available_bytes == 3 * GIB


def test_both_versions_mounted_tightest_counts(machine: Machine) -> None:
    unified = V2_MOUNT.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
    machine.join("4:memory:/job\n0::/job", V1_MOUNT, unified)
    machine.v1("job", limit=16 * GIB, used=GIB)
    machine.v2("unified/job", limit=8 * GIB, used=GIB)
    assert machine.read().available_bytes == 7 * GIB


def test_mount_point_with_escaped_blank_is_found(machine: Machine) -> None:
    machine.join("0::/", V2_MOUNT.replace("/sys/fs/cgroup", r"/sys/fs/cgroup/a\040b"))
    machine.v2("a b", limit=16 * GIB, used=0)
    assert machine.read().limit_bytes == 16 * GIB


def test_mount_point_that_is_no_utf8_hides_no_limit(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=16 * GIB, used=4 * GIB)
    mounts = machine.root / "proc/self/mountinfo"
    mounts.write_bytes(b"31 23 0:27 / /mnt/\xff rw - tmpfs tmpfs rw\n" + mounts.read_bytes())
    assert machine.read().limit_bytes == 16 * GIB


def test_usage_over_limit_leaves_nothing(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=4 * GIB, used=5 * GIB)
    assert machine.read().available_bytes == 0


def test_machine_with_less_than_the_limit_leaves_bounds_available(machine: Machine) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=60 * GIB, used=0)
    memory = machine.read()
    assert (memory.available_bytes, memory.limit_bytes) == (AVAILABLE_BYTES, 60 * GIB)


@pytest.mark.parametrize("missing", ["memory.current", "memory.max", "memory.stat"])
def test_unreadable_cgroup_file_never_raises(machine: Machine, missing: str) -> None:
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=16 * GIB, used=6 * GIB, cache=GIB)
    (machine.root / "sys/fs/cgroup/pod" / missing).unlink()
    # Without its statistics all of the usage counts; without the others there is no limit to tell.
    expected_bytes = 10 * GIB if missing == "memory.stat" else AVAILABLE_BYTES
    assert machine.read().available_bytes == expected_bytes


@pytest.mark.parametrize("text", ["", "0", "0::/pod\nnonsense", "a b c - d", "4:memory"])
def test_malformed_process_files_are_no_limit(machine: Machine, text: str) -> None:
    machine.join(text, text, V2_MOUNT.replace("cgroup2", "tmpfs"))
    assert machine.read().limit_bytes is None


@pytest.mark.parametrize("text", [None, "", "MemTotal: 5 kB", "MemTotal: x kB\nMemAvailable: y kB"])
def test_meminfo_missing_or_broken_is_an_error(machine: Machine, text: str | None) -> None:
    (machine.root / "proc/meminfo").unlink()
    if text is not None:
        machine.write("/proc/meminfo", text)
    with pytest.raises(AvailabilityError, match="cannot tell the memory of this machine") as caught:
        machine.read()
    # Pools say that; who measures a GPU can give none.
    assert "maximum_pool_size" not in str(caught.value)


def test_this_machine_gives_sensible_figures() -> None:
    memory = host_memory()
    assert 0 <= memory.available_bytes <= memory.total_bytes
    assert (memory.limit_bytes is None) == (memory.limit_source == "")


def test_memory_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(AvailabilityError, match=r"cannot be read \(No such file or directory\)"):
        host_memory(tmp_path)


def grace(machine: Machine, *, numa_status: bool = True) -> None:
    """Make it one whose node 1 is a GPU's memory, with 20 GiB of the machine's 64."""
    if numa_status:
        machine.write("/proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node: 1\n")
    figures = {"MemFree": 10, "Active(file)": 1, "Inactive(file)": 2}
    for node, (cpus, total_gib) in enumerate((("0-71", 44), ("", 20), ("", 0))):
        told = {"MemTotal": total_gib, **figures}
        lines = [f"Node {node} {name}:  {gib * GIB // 1024} kB" for name, gib in told.items()]
        lines += ["", f"Node {node} HugePages_Total:  0", f"Node {node} SReclaimable:  many kB"]
        machine.write(f"/sys/devices/system/node/node{node}/cpulist", f"{cpus}\n")
        machine.write(
            f"/sys/devices/system/node/node{node}/meminfo", "\n".join(lines) if node < 2 else ""
        )
    machine.write("/sys/devices/system/node/has_cpu", "0\n")


def test_memory_of_a_gpu_that_is_a_numa_node_is_left_out(machine: Machine) -> None:
    grace(machine)
    found = machine.read()
    assert found.total_bytes == TOTAL_BYTES - 20 * GIB
    assert found.available_bytes == AVAILABLE_BYTES - 13 * GIB
    assert found.device_bytes == 20 * GIB


def test_node_without_processors_is_the_hosts_where_no_gpu_is_one(machine: Machine) -> None:
    grace(machine, numa_status=False)  # memory beyond CXL
    assert machine.read() == HostMemory(TOTAL_BYTES, AVAILABLE_BYTES)


def test_node_that_cuda_names_is_left_out_where_proc_is_hidden(machine: Machine) -> None:
    grace(machine, numa_status=False)
    assert host_memory(machine.root, device_nodes=(1,)).device_bytes == 20 * GIB


def test_node_whose_processors_cannot_be_told_stays_the_hosts(machine: Machine) -> None:
    grace(machine)
    (machine.root / "sys/devices/system/node/node0/cpulist").unlink()
    assert machine.read().device_bytes == 20 * GIB


def test_limit_of_a_cgroup_holds_as_it_is_beside_nodes_of_gpus(machine: Machine) -> None:
    grace(machine)
    machine.join("0::/pod", V2_MOUNT)
    # More than the host has without the GPU, and still the tightest: most of it is used.
    machine.v2("pod", limit=50 * GIB, used=45 * GIB)
    found = machine.read()
    assert (found.available_bytes, found.limit_bytes) == (5 * GIB, 50 * GIB)


def test_limit_of_more_than_the_host_has_without_its_gpus_is_none(machine: Machine) -> None:
    grace(machine)
    machine.join("0::/pod", V2_MOUNT)
    machine.v2("pod", limit=50 * GIB, used=GIB)
    assert machine.read() == HostMemory(44 * GIB, AVAILABLE_BYTES - 13 * GIB, device_bytes=20 * GIB)


def test_memory_that_a_container_shows_never_had_a_gpus_node(machine: Machine) -> None:
    grace(machine)
    machine.write("/proc/meminfo", f"MemTotal: {16 * 2**20} kB\nMemAvailable: {12 * 2**20} kB\n")
    assert machine.read() == HostMemory(16 * GIB, 12 * GIB)


def test_memory_stays_as_it_is_told_where_no_node_tells_its_own(machine: Machine) -> None:
    machine.write("/proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node: 1\n")
    assert machine.read() == HostMemory(TOTAL_BYTES, AVAILABLE_BYTES)


def test_node_with_processors_is_the_hosts_also_where_cuda_names_it(machine: Machine) -> None:
    grace(machine, numa_status=False)
    found = host_memory(machine.root, device_nodes=(0,))
    assert found == HostMemory(TOTAL_BYTES, AVAILABLE_BYTES)
