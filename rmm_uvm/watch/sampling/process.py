# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Other processes: which use CUDA here, and how to read their counters.

Covers finding them in ``/proc`` and attaching. Does not cover what is made of the counters.

See Also
--------
rmm_uvm._lib.cuda.ProcessCounters : what `attach` returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from rmm_uvm._lib.cuda import Nvml, ProcessCounters, attachable
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.process_facts import command_of, name_of, user_of

__all__ = ["CudaProcess", "attach", "cuda_processes"]

_UVM_DEVICE = "/dev/nvidia-uvm"
_Item = TypeVar("_Item")


@dataclasses.dataclass(frozen=True)
class CudaProcess:
    """A process that uses CUDA.

    Parameters
    ----------
    pid : int
    name : str
        As the kernel shows it, at most 15 characters; empty if it cannot be read.
    command : str
        Command line, quoted as a shell's; the name if it cannot be read.
    user : str
        Whose it is; the number if it has no name.
    attachable : bool
        Whether `attach` may read its counters.
    reason : str
        Why not; empty if it may.
    """

    pid: int
    name: str
    command: str = ""
    user: str = ""
    attachable: bool = True
    reason: str = ""


def attach(pid: int, uuid: str | None = None, *, faults: bool = False) -> ProcessCounters:
    """Begin to read the counters of a process, which need not know of it.

    Parameters
    ----------
    pid : int
        > 0.
    uuid : str, optional
        Of the GPU to watch, "GPU-..."; all together by default.
    faults : bool
        Count faults too: a program that only faults takes up to 10 % longer.

    Returns
    -------
    rmm_uvm._lib.cuda.ProcessCounters
        To be closed; it also lets go when it sees that the process has ended.

    Raises
    ------
    ConfigurationError
        If `pid` or `uuid` can be none.
    AvailabilityError
        If there is no such process, it does not use CUDA, this one may not look into it, or the
        kernel driver's counters cannot be had.

    Notes
    -----
    Creates no CUDA context. A child that inherited a CUDA process' descriptors by ``fork`` shows
    the counters of that process.

    Examples
    --------
    >>> attach(0)
    Traceback (most recent call last):
        ...
    rmm_uvm.errors.ConfigurationError: a PID is a number from 1 to 2147483647, not 0
    """
    if not 1 <= pid <= 2**31 - 1:
        raise ConfigurationError(f"a PID is a number from 1 to {2**31 - 1}, not {pid}")
    return ProcessCounters(pid, uuid, faults=faults)


def cuda_processes(
    proc: Path = Path("/proc"),
    *,
    check: Callable[[int], Availability] = attachable,
    nvml: Nvml | None = None,
) -> tuple[CudaProcess, ...]:
    """List the processes that use CUDA, in order of their PID.

    Found are those whose descriptors this process may list; of others, those that NVML names.

    Parameters
    ----------
    proc : Path
        Where the process file system is.
    check : callable
        Tells whether a process may be attached to.
    nvml : Nvml, optional
        Asked for processes that ``/proc`` hides; a new one by default.

    Returns
    -------
    tuple of CudaProcess
        Empty when there are none. This process is among them if it uses CUDA.
    """
    named = set(_named_by_nvml(Nvml() if nvml is None else nvml))
    found = []
    for pid in sorted(_pids(proc)):
        if _uses_cuda(proc / str(pid)) or pid in named:
            may = check(pid)
            found.append(_describe(proc, pid, may))
    return tuple(found)


def _pids(proc: Path) -> Iterator[int]:
    """Yield the PIDs that there are now."""
    for entry in proc.iterdir():
        if entry.name.isascii() and entry.name.isdecimal():
            yield int(entry.name)


def _uses_cuda(process: Path) -> bool:
    """Tell whether a process has CUDA's managed memory open, as far as may be seen."""
    try:
        return any(_target(link) == _UVM_DEVICE for link in (process / "fd").iterdir())
    except OSError:  # it has ended, or is none of ours
        return False


def _target(link: Path) -> str:
    """Return what a descriptor is open on, empty if it was closed meanwhile."""
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _named_by_nvml(nvml: Nvml) -> Iterable[int]:
    """Return the PIDs that NVML names, as far as it does."""
    pids: set[int] = set()
    if nvml.available:
        for uuid, _ in _without_error(nvml.devices):
            pids.update(pid for pid, _ in _without_error(partial(nvml.processes, uuid)))
    return pids


def _without_error(ask: Callable[[], Iterable[_Item]]) -> Iterable[_Item]:
    """Return what NVML answers, nothing if it does not."""
    try:
        return ask()
    except AvailabilityError:
        return ()


def _describe(proc: Path, pid: int, may: Availability) -> CudaProcess:
    """Return what can be read about a process, which may end at any time."""
    name = name_of(pid, proc)
    command = command_of(pid, proc) or name
    return CudaProcess(pid, name, command, user_of(pid, proc), may.available, may.reason)
