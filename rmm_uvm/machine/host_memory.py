# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How much host memory this process can still use before the kernel ends it.

Managed memory that leaves the device lies in host pages that cannot be swapped out and are charged
to the memory cgroup of the process. So the room is the smaller of what the machine has available
and what every cgroup on the way from this process up to the root still allows.

Covers Linux with cgroup v1, v2, and both mounted at once, inside containers too; GPUs whose memory
is a NUMA node of the host (Grace), which is left out.
Does not cover: limits per NUMA node, `ulimit -v`, swap.

See Also
--------
rmm_uvm.pool.sizing : the pool's maximum, which rests on these figures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rmm_uvm.errors import AvailabilityError

__all__ = ["HostMemory", "host_memory"]


@dataclass(frozen=True)
class HostMemory:
    """Host memory at one moment.

    Attributes
    ----------
    total_bytes : int
        Memory of the machine, without that of GPUs.
    available_bytes : int
        What this process can still take: the machine's available memory, or the room left under
        `limit_bytes` if that is smaller. Never negative.
    limit_bytes : int or None
        The memory limit with the least room left among this process' cgroups; None if each allows
        what the machine has.
    limit_source : str
        The file that holds `limit_bytes`; empty if there is no limit.
    device_bytes : int
        Memory of GPUs that Linux counts as the host's, and that is left out of the others.
    """

    total_bytes: int
    available_bytes: int
    limit_bytes: int | None = None
    limit_source: str = ""
    device_bytes: int = 0


@dataclass(frozen=True)
class _Limit:
    """One cgroup's limit and what is left of it, in bytes."""

    limit_bytes: int
    room_bytes: int
    source: str


@dataclass(frozen=True)
class _Layout:
    """Names of the files of one cgroup version."""

    limits: tuple[str, ...]
    usage: str
    reclaimable_key: str


# In version 2, a cgroup over "high" is not killed but throttled until it gives memory back. Host
# pages of managed memory cannot be given back, so "high" is as much of a limit as "max" is.
_V2 = _Layout(("memory.max", "memory.high"), "memory.current", "inactive_file")
_V1 = _Layout(("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")
_NODE_LINE = re.compile(r"^Node \d+ (\S+): +(\d+) kB$", re.MULTILINE | re.ASCII)
# What of the machine's MemAvailable the file of a node tells.
_AVAILABLE_PARTS = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")


def host_memory(root: Path = Path("/"), *, device_nodes: Collection[int] = ()) -> HostMemory:
    """Read the host memory of this machine and this process' cgroups.

    Parameters
    ----------
    root : Path
        Directory that stands for ``/``; tests pass one with a ``proc`` and a ``sys`` of their own.
    device_nodes : collection of int
        NUMA nodes that CUDA names as memory of GPUs (`DeviceInfo.numa_node`). They are found
        without it too, wherever NVIDIA's driver shows its GPUs in ``/proc``.

    Returns
    -------
    HostMemory

    Raises
    ------
    AvailabilityError
        If ``/proc/meminfo`` does not tell the memory of the machine (not Linux, or hidden).

    Notes
    -----
    A cgroup that cannot be read counts as unlimited: limits above the container's root are
    invisible from inside, and need not be asked for. Page cache that the kernel would drop first
    (inactive file pages) does not count as used. Thread-safe; takes well under a millisecond.

    Memory of a GPU can be a NUMA node of the host: with Grace, unless the driver keeps it to itself
    (CDMM). NVIDIA's kernel driver then shows a file ``numa_status`` for the GPU (nv-procfs.c of the
    open kernel modules 595.45.04), also where ``CUDA_VISIBLE_DEVICES`` hides it. On such a machine
    every node that has memory and no CPU counts as a GPU's: there it may be one that a container
    does not show, or a part of MIG's. Elsewhere such a node is memory beyond CXL, and the host's.

    In a container ``/proc/meminfo`` may show the container's memory (lxcfs), beside the nodes of
    the whole machine. What is no more than the host's nodes have is taken to be theirs.
    """
    told_bytes, available_bytes = _machine_memory(root / "proc/meminfo")
    host_bytes, device_available_bytes = _nodes_memory(root, device_nodes)
    total_bytes = told_bytes if host_bytes is None else min(told_bytes, host_bytes)
    if device_bytes := told_bytes - total_bytes:
        available_bytes = max(available_bytes - device_available_bytes, 0)
    # The kernel's "no limit" in version 1 is a number near 2**63: more than any machine has.
    limits = [
        limit
        for limit in _limits(root)
        if limit.limit_bytes < total_bytes or limit.room_bytes < available_bytes
    ]
    if not limits:
        return HostMemory(total_bytes, available_bytes, device_bytes=device_bytes)
    tightest = min(limits, key=lambda limit: limit.room_bytes)
    return HostMemory(
        total_bytes=total_bytes,
        available_bytes=min(available_bytes, tightest.room_bytes),
        limit_bytes=tightest.limit_bytes,
        limit_source=tightest.source,
        device_bytes=device_bytes,
    )


def _nodes_memory(root: Path, device_nodes: Collection[int]) -> tuple[int | None, int]:
    """Return the total of the NUMA nodes of the host, and what nodes of GPUs have available, bytes.

    None for the total where no GPU is a node, or no node tells it.
    """
    nodes = root / "sys/devices/system/node"
    without_cpus = {
        node for node in _names(nodes) if _read_text(nodes / node / "cpulist").isspace()
    }
    # The file is not read: for that the driver may have to wait for the GPU.
    gpus = root / "proc/driver/nvidia/gpus"
    if without_cpus.isdisjoint(f"node{number}" for number in device_nodes) and not any(
        (gpus / gpu / "numa_status").exists() for gpu in _names(gpus)
    ):
        return None, 0
    host_bytes = available_bytes = 0
    for node in _names(nodes):
        for name, kib in _NODE_LINE.findall(_read_text(nodes / node / "meminfo")):
            if node not in without_cpus:
                host_bytes += (name == "MemTotal") * int(kib) * 1024
            elif name in _AVAILABLE_PARTS:
                available_bytes += int(kib) * 1024
    return host_bytes or None, available_bytes


def _machine_memory(meminfo: Path) -> tuple[int, int]:
    """Return total and available bytes of the machine."""
    try:
        text = meminfo.read_text()
    except OSError as error:
        raise AvailabilityError(
            f"cannot tell the memory of this machine: {meminfo} cannot be read ({error.strerror})"
        ) from error
    try:
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        total_kib, available_kib = (
            int(fields[name].split()[0]) for name in ("MemTotal", "MemAvailable")
        )
    except (KeyError, ValueError, IndexError) as error:
        raise AvailabilityError(
            f"cannot tell the memory of this machine: {meminfo} has no MemTotal and MemAvailable"
        ) from error
    return total_kib * 1024, available_kib * 1024


def _limits(root: Path) -> Iterator[_Limit]:
    """Yield every memory limit that governs this process."""
    groups = _memberships(_read_text(root / "proc/self/cgroup"))
    for layout, mount_root, mount_point in _mounts(_read_text(root / "proc/self/mountinfo")):
        if (group := groups.get(layout)) is None:
            continue
        for directory in _path_to_root(group, mount_root, mount_point):
            yield from _limits_of(root / directory.relative_to("/"), layout)


def _memberships(cgroup: str) -> dict[_Layout, PurePosixPath]:
    """Return this process' cgroup in each hierarchy that can limit memory.

    Lines read ``0::/path`` (version 2) or ``4:memory:/path`` (version 1).
    """
    groups = {}
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            groups[_V2] = PurePosixPath(path)
        elif "memory" in controllers.split(","):
            groups[_V1] = PurePosixPath(path)
    return groups


def _mounts(mountinfo: str) -> Iterator[tuple[_Layout, PurePosixPath, PurePosixPath]]:
    """Yield layout, root within the hierarchy, and mount point of each cgroup file system.

    The fields are described in proc_pid_mountinfo(5).
    """
    for line in mountinfo.splitlines():
        mount, _, file_system = line.partition(" - ")
        mount_fields, type_fields = mount.split(), file_system.split()
        if len(mount_fields) < 5 or len(type_fields) < 3:
            continue
        where = PurePosixPath(mount_fields[3]), PurePosixPath(_unescaped(mount_fields[4]))
        if type_fields[0] == "cgroup2":
            yield _V2, *where
        elif type_fields[0] == "cgroup" and "memory" in type_fields[2].split(","):
            yield _V1, *where


def _path_to_root(
    group: PurePosixPath, mount_root: PurePosixPath, mount_point: PurePosixPath
) -> Iterator[PurePosixPath]:
    """Yield the directories of `group` and of all its ancestors that the mount shows.

    In a container without a cgroup namespace, `group` is the path on the host and `mount_root`
    its beginning. A group outside of the mount (``/..``) leaves the mount point alone to look at.
    """
    relative = PurePosixPath()
    if group.is_relative_to(mount_root) and ".." not in group.parts:
        relative = group.relative_to(mount_root)
    yield mount_point / relative
    yield from (mount_point / parent for parent in relative.parents)


def _limits_of(directory: Path, layout: _Layout) -> Iterator[_Limit]:
    """Yield the limits that one cgroup sets, with the room left under each."""
    usage_bytes = _read_number(directory / layout.usage)
    if usage_bytes is None:
        return
    for name in layout.limits:
        limit_bytes = _read_number(directory / name)
        if limit_bytes is not None:
            used_bytes = max(0, usage_bytes - _reclaimable_bytes(directory, layout))
            room_bytes = max(0, limit_bytes - used_bytes)
            yield _Limit(limit_bytes, room_bytes, str(directory / name))


def _reclaimable_bytes(directory: Path, layout: _Layout) -> int:
    """Return the page cache that the kernel drops before it ends a process of this cgroup."""
    for line in _read_text(directory / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key == layout.reclaimable_key and value.isdecimal():
            return int(value)
    return 0


def _read_number(path: Path) -> int | None:
    """Return the number in a file; None if there is none, as for the word "max" (no limit)."""
    text = _read_text(path).strip()
    return int(text) if text.isdecimal() else None


def _names(directory: Path) -> list[str]:
    """Return what is in a directory, nothing if it cannot be read."""
    try:
        return [entry.name for entry in directory.iterdir()]
    except OSError:
        return []


def _read_text(path: Path) -> str:
    """Return a file's text, empty if it cannot be read."""
    try:
        # Somebody may have mounted something at a path that is no UTF-8: the other lines count.
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _unescaped(field: str) -> str:
    r"""Undo the octal escapes of mountinfo, such as ``\040`` for a blank."""
    return field.encode("latin-1", "replace").decode("unicode_escape")
