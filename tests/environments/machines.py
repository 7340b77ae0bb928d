# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A process on a machine that lacks something. Each function changes this process for good."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import resource
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import rmm

from .packages import without_cupti

NOBODY = 65534
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000  # linux/sched.h
_MS_REC, _MS_PRIVATE, _MOUNT_ATTR_RDONLY = 0x4000, 0x40000, 1  # linux/mount.h
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_CAP_DAC_READ_SEARCH = 2  # linux/capability.h
_PR_SET_KEEPCAPS = 8  # linux/prctl.h
_CAPABILITY_VERSION_3 = 0x20080522


def complete() -> None:
    """Nothing is missing, but for NVIDIA's driver, which no environment has: `hidden`."""


def without_tools_device() -> None:
    """The kernel driver's counters cannot be opened, by the doctor nor by a device."""
    from rmm_uvm.doctor import CudaFacts, DeviceFacts, SystemProbe, probe

    from .columns import DEVICE

    found = SystemProbe(Path(tempfile.mkdtemp())).counters()
    card = DeviceFacts(
        *(0, "card", "", (9, 0), 1 << 34, 1 << 34),
        managed_memory=True,
        concurrent_managed_access=True,
        pageable_memory_access=False,
        host_page_tables=False,
        legacy_ipc=True,
    )
    probe.read_cuda = lambda: CudaFacts("", (13, 0), (card,), has_discard=True)
    probe.SystemProbe.counters = lambda self: found  # type: ignore[method-assign]
    DEVICE["counters"] = False


def unprivileged() -> None:
    """A user who owns nothing; of an installation that only root can read, reading is left.

    Where that cannot be left, in a container with few rights, root stays and has no right that
    others have not.
    """
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    mine = re.search(r"^CapPrm:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    kept = int(mine[1], 16) & 1 << _CAP_DAC_READ_SEARCH if mine else 0
    if kept or (_others_can_read(Path(rmm.__file__)) and _others_can_read(Path(os.__file__))):
        libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))


def _others_can_read(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in path.resolve().parents)


def read_only() -> str:
    """All mounts are read-only in this process; where that is not allowed, as `not_writable`.

    Returns what the system says then.
    """
    _work_in_a_folder()
    if _mount_read_only():
        return os.strerror(errno.EROFS)
    unprivileged()
    return os.strerror(errno.EACCES)


def not_writable() -> None:
    """No folder that this user could write to: home, temporary and working folder, boards."""
    _work_in_a_folder()
    unprivileged()


def _work_in_a_folder() -> None:
    """Have all that is written go to one folder, in which only root may write."""
    folder = tempfile.mkdtemp()
    Path(folder).chmod(0o555)
    os.chdir(folder)
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        os.environ[name] = folder
    tempfile.tempdir = None
    tempfile._candidate_tempdir_list = lambda: [folder]  # type: ignore[attr-defined]
    _shared_memory_in(Path(folder))
    from rmm_uvm.watch.telling import board

    board.board_directories = lambda: (Path(folder) / "rmm-uvm",)


def _mount_read_only() -> bool:
    """Make all mounts read-only in mounts of this process's own; whether that was allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWNS) != 0:
        if libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER) != 0:
            return False
        with contextlib.suppress(OSError):  # who is not in the maps is nobody, which does as well
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    private = libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    wanted = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY)  # struct mount_attr
    return private == 0 and not libc.syscall(
        *(ctypes.c_long(each) for each in (_SYS_MOUNT_SETATTR, _AT_FDCWD)),
        b"/",
        *(ctypes.c_long(_AT_RECURSIVE), wanted, ctypes.c_size_t(ctypes.sizeof(wanted))),
    )


def without_shared_memory() -> None:
    """There is no /dev/shm."""
    _shared_memory_in(Path("/nowhere/shm"))


def few_descriptors() -> None:
    """Hardly any file can be opened beside those that are open."""
    open_now = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 16, open_now + 16))


def no_descriptors() -> None:
    """All is imported, and no file can be opened any more."""
    from .columns import COLUMNS

    for column in COLUMNS.values():
        column()
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, highest + 1))
    os.dup(0)
    while True:
        try:
            os.dup(0)
        except OSError:
            break


def limited_memory() -> None:
    """The container's limit is 256 MiB, of which 64 are used."""
    root = Path(tempfile.mkdtemp())
    group = root / "sys/fs/cgroup"
    for folder in (group, root / "proc/self"):
        folder.mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    (root / "proc/self/cgroup").write_text("0::/\n")
    (root / "proc/self/mountinfo").write_text(
        "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    )
    (group / "memory.max").write_text(f"{256 << 20}\n")
    (group / "memory.current").write_text(f"{64 << 20}\n")
    from rmm_uvm.machine import host_memory

    host_memory.host_memory.__defaults__ = (root,)
    from rmm_uvm.doctor import probe

    probe.SystemProbe.__init__.__defaults__ = (root, None)  # type: ignore[misc]


def _shared_memory_in(folder: Path) -> None:
    import rmm_uvm.harvest
    import rmm_uvm.ipc.table

    rmm_uvm.ipc.table._FOLDER = folder
    rmm_uvm.harvest.USUAL_DIRECTORY = str(folder)


MACHINES: Mapping[str, Callable[[], str | None]] = {
    "nothing missing but NVIDIA's driver": complete,
    "no libcuda, but": complete,
    "no NVML, but": complete,
    "no `/dev/nvidia-uvm-tools`": without_tools_device,
    "no CUPTI": without_cupti,
    "not root": unprivileged,
    "read-only file system": read_only,
    "no folder that may be written to": not_writable,
    "no `/dev/shm`": without_shared_memory,
    "16 file descriptors left": few_descriptors,
    "no file descriptor left": no_descriptors,
    "a container's memory limit": limited_memory,
}
# What of NVIDIA's driver can be loaded; it has none of NVIDIA's functions.
THERE: Mapping[str, tuple[str, ...]] = {
    "no libcuda, but": ("libnvidia-ml.so.1",),
    "no NVML, but": ("libcuda.so.1",),
}
