# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Gathers the recordings of workers, some of which may leave meanwhile.

A worker sends at most about 1 MB; see `rmm_uvm.report.lighter`. Does not cover what is made of it;
see `rmm_uvm.dask.reports.gathered`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import struct
from collections.abc import Mapping
from typing import Any

from rmm_uvm.dask.worker.figures import NOT_THERE, name_order
from rmm_uvm.errors import DataError
from rmm_uvm.recording.as_json import plain, restored
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.recording.values import fields_of

__all__ = ["LEFT", "WorkerRecording", "gathered", "recorded"]

_LENGTH = struct.Struct("<Q")
LEFT = "it left the cluster before it answered"
"""Why there is no recording of a worker that the scheduler does not know any more."""


@dataclasses.dataclass(frozen=True)
class WorkerRecording:
    """The recording of one worker, or why there is none.

    Parameters
    ----------
    address, name, host : str
        As Dask knows the worker.
    recording : Recording or None
        What its monitor recorded.
    reason : str
        Why there is none; empty when there is.
    ipc_pool_bytes : int or None
        Size of its IPC pool; 0 without one.
    comm : mapping of str to float
        Totals of its transfers; see `rmm_uvm.dask.comm.statistics.CommTotals`.
    samples_total : int
        Samples that the worker has; `recording` holds fewer.
    """

    address: str
    name: str
    host: str
    recording: Recording | None = None
    reason: str = ""
    ipc_pool_bytes: int | None = None
    comm: Mapping[str, float] = dataclasses.field(default_factory=dict)
    samples_total: int = 0


async def recorded() -> bytes:
    """Return what this process' monitor recorded and what was transferred; runs in a worker.

    JSON and raw samples, of which a client believes nothing, and refuses what one worker sends
    without losing that of others. Made in a thread, so that the worker's event loop goes on.
    """
    return await asyncio.to_thread(_recorded)


def _recorded() -> bytes:
    from rmm_uvm.dask.comm.statistics import totals
    from rmm_uvm.dask.installed import workers_pool
    from rmm_uvm.dask.worker.telemetry import watching_monitor
    from rmm_uvm.report.lighter import lighter
    from rmm_uvm.support.off_switch import OFF, is_off

    found = workers_pool()
    installed = None if found is None else found[0]
    known: dict[str, Any] = {"comm": totals().to_dict()}
    if found is not None:
        known["ipc_pool_bytes"] = found[1].sizes.ipc_bytes
    monitor = watching_monitor()
    if monitor is None and installed is not None:
        monitor = installed.monitor  # stopped; its recording stays
    if monitor is None or not monitor.devices:
        no_pool = OFF if is_off() else "no pool of rmm_uvm is installed"
        known["reason"] = f"no monitor runs there, and {no_pool}"
        if installed is not None:
            known["reason"] = f"no monitor runs there: {installed.monitor_reason or 'none started'}"
        return packed(known, None)
    recording = monitor.recording()
    known["samples_total"] = len(recording.samples)
    return packed(known, lighter(recording))


def packed(known: Mapping[str, Any], recording: Recording | None) -> bytes:
    """Return what a worker says: the length of the JSON part, that part, and its samples."""
    told = dict(known) if recording is None else {**known, "recording": plain(recording)}
    text = json.dumps(told).encode()
    samples = b"" if recording is None else recording.samples.tobytes()
    return _LENGTH.pack(len(text)) + text + samples


def unpacked(answer: bytes) -> dict[str, Any]:
    """Return what a worker said: fields of `WorkerRecording`. Runs no code, whatever it said.

    Raises
    ------
    DataError
        If it is nothing that `packed` gives.
    """
    try:
        (length,) = _LENGTH.unpack_from(answer)
        end = _LENGTH.size + length
        told = json.loads(answer[_LENGTH.size : end])
        recording = told.pop("recording", None) if isinstance(told, dict) else None
        # Who it is, Dask says.
        known = fields_of(WorkerRecording, told, "it", left_out=("address", "name", "host"))
        if recording is not None:
            known["recording"] = restored(recording, answer[end:])
    except (ValueError, TypeError, RecursionError, struct.error) as error:
        raise DataError(f"no recording of a worker: {error}") from error
    else:
        return known


async def gathered(client: Any, timeout_seconds: float) -> list[WorkerRecording]:
    """Return what every worker of a client's cluster recorded, in order of their names.

    Parameters
    ----------
    client : distributed.Client
        The client; this runs in its event loop.
    timeout_seconds : float
        How long a worker may take to answer; one that takes longer is listed with that reason.
    """
    known = (await client.scheduler.identity(n_workers=-1))["workers"]
    told = await asyncio.gather(
        *(_of_worker(client, address, facts, timeout_seconds) for address, facts in known.items())
    )
    if any(one.reason for one in told):
        here = (await client.scheduler.identity(n_workers=-1))["workers"]
        told = [
            one if not one.reason or one.address in here else dataclasses.replace(one, reason=LEFT)
            for one in told
        ]
    return sorted(told, key=lambda one: name_order(one.name))


async def _of_worker(
    client: Any, address: str, facts: Mapping[str, Any], timeout_seconds: float
) -> WorkerRecording:
    one = WorkerRecording(address, str(facts.get("name", address)), str(facts.get("host", "")))
    try:
        answers = await asyncio.wait_for(
            client.run(recorded, workers=[address], on_error="return"), timeout_seconds
        )
    except TimeoutError:
        reason = f"it did not answer within {timeout_seconds:g} s: it may be busy; ask again"
        return dataclasses.replace(one, reason=reason)
    except Exception as error:  # the scheduler's; that of a worker is returned
        return dataclasses.replace(one, reason=_why(error))
    answer = answers.get(address)
    if isinstance(answer, BaseException):
        return dataclasses.replace(one, reason=_why(answer))
    try:
        return dataclasses.replace(one, **unpacked(answer))
    except Exception as error:
        reason = f"its recording cannot be read, another version of rmm_uvm may run there: {error}"
        return dataclasses.replace(one, reason=reason)


def _why(error: BaseException) -> str:
    """Return why a worker gave nothing, in one line."""
    # By its text: what a worker cannot pickle, Dask sends as an exception of no special kind.
    if "No module named 'rmm_uvm" in str(error):
        return NOT_THERE
    if isinstance(error, OSError):
        return f"it cannot be reached: {type(error).__name__}"
    return f"{type(error).__name__}: {error}".partition("\n")[0]
