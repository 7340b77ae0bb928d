# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing a trace while a monitor runs: our adaptors' allocations, uses, stages and samples.

A simulated device tells what kernels use. Of a GPU nobody knows that, and so uses are written that
are announced to our pools.

Does not cover the format; see docs/understand/trace-format.md.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.drivers import SimulatedDevice, UvmDriver
from rmm_uvm.errors import DataError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.support.output import is_special
from rmm_uvm.watch.sampling import chain

__all__ = ["Tracing"]

_ALREADY = (
    "a trace is being written already: stop the monitor that writes it first, or watch without "
    "trace="
)


_Source: TypeAlias = UvmResourceAdaptor | ManagedResidency | SimulatedDevice


class Tracing:
    """A trace file that is being written.

    Parameters
    ----------
    path : Path
        The file; must not exist.
    devices : sequence of RecordedDevice
        What is watched.
    drivers : sequence of UvmDriver
        Their drivers; a simulated device tells of touches.
    settings, versions : mapping of str to str
        For people who read it.
    origin_ns : int or None
        What `time.monotonic_ns` showed when the monitor began; None: now.

    Raises
    ------
    DataError
        If the file cannot be made, or exists; if another trace of one of the resources or
        simulated devices is being written. Nothing has changed then.

    Notes
    -----
    Thread-safe. A full disk ends the writing, not the program; `available` has the reason then.
    """

    def __init__(
        self,
        path: Path,
        devices: Sequence[RecordedDevice],
        drivers: Sequence[UvmDriver],
        settings: dict[str, str],
        versions: dict[str, str],
        origin_ns: int | None,
    ) -> None:
        from rmm_uvm._lib.trace import TraceWriter

        self._device_ids = tuple(device.device_id for device in devices)
        self._simulated = tuple(each for each in drivers if isinstance(each, SimulatedDevice))
        self._refused = ""
        if any(source.observed for source in self._observable()):
            raise DataError(_ALREADY)
        facts = {
            "devices": [dataclasses.asdict(device) for device in devices],
            "settings": settings,
            "versions": versions,
            "uses": "by kernels" if self._simulated else "announced",
        }
        if is_special(path):  # the writer would have it removed
            raise DataError(
                f"the trace {path} is not a regular file: name one that is not there yet"
            )
        self.writer: Any = TraceWriter(path, facts, origin_ns=origin_ns)
        # All at once, in case that another trace was begun in another thread just now.
        if not all([source.attach_observer(self.writer) for source in self._observable()]):
            self.close()
            with contextlib.suppress(OSError):
                path.unlink()
            raise DataError(_ALREADY)
        self._next_sequence = self._annotated = 0
        self._lock = threading.Lock()

    def observe(self, adaptor: UvmResourceAdaptor) -> None:
        """Write what an adaptor allocates and frees from now on, and what is used of it.

        If another trace has it, it is left out, and `available` says so.
        """
        if not all([source.attach_observer(self.writer) for source in _sources_of(adaptor)]):
            self._refused = "a resource that was installed later is in another trace already"

    def flush(self, sampler: Any, findings: Sequence[Finding] = ()) -> None:
        """Write new samples and findings, and everything that is buffered.

        Parameters
        ----------
        sampler : Sampler
            Has the samples.
        findings : sequence of Finding
            All so far.
        """
        with self._lock:
            for finding in findings[self._annotated :]:
                self.writer.annotate(str(finding))
            self._annotated = len(findings)
            rows, self._next_sequence, _ = sampler.samples(self._next_sequence)
            if len(rows):
                self.writer.samples(rows)
            self.writer.flush()

    @property
    def available(self) -> Availability:
        """Whether it is being written; the reason is why writing ended."""
        failed = str(self.writer.failed) or self._refused
        return Availability(available=not failed, reason=failed)

    def close(self) -> None:
        """End the file. Adaptors that were replaced meanwhile are ignored from now on."""
        for source in self._observable():
            source.detach_observer(self.writer)
        self._simulated = ()
        self.writer.close()

    def _observable(self) -> list[_Source]:
        """Return what can be observed now. Do not keep it."""
        adaptors = [chain.own_adaptor(device_id) for device_id in self._device_ids]
        found = [source for each in adaptors if each is not None for source in _sources_of(each)]
        return [*found, *self._simulated]


def _sources_of(adaptor: UvmResourceAdaptor) -> list[_Source]:
    """Return what tells of an adaptor's memory: itself, and whom uses are announced to."""
    residency = adaptor.managed_mr.residency
    if isinstance(residency.driver, SimulatedDevice):  # it tells what is used, announced or not
        return [adaptor]
    return [adaptor, residency]
