# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing a trace while a monitor runs: our adaptors' allocations, stages and samples.

Does not cover the format; see docs/trace-format.md.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.device_info import Availability
from rmm_uvm.drivers import SimulatedDevice, UvmDriver
from rmm_uvm.watch import footprint
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import DeviceFacts

__all__ = ["Tracing"]


class Tracing:
    """A trace file that is being written.

    Parameters
    ----------
    path : Path
        The file; must not exist.
    devices : sequence of DeviceFacts
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
        If the file cannot be made, or exists.

    Notes
    -----
    Thread-safe. A full disk ends the writing, not the program; `available` has the reason then.
    """

    def __init__(
        self,
        path: Path,
        devices: Sequence[DeviceFacts],
        drivers: Sequence[UvmDriver],
        settings: dict[str, str],
        versions: dict[str, str],
        origin_ns: int | None,
    ) -> None:
        from rmm_uvm._lib.trace import TraceWriter

        facts = {
            "devices": [dataclasses.asdict(device) for device in devices],
            "settings": settings,
            "versions": versions,
        }
        self.writer: Any = TraceWriter(path, facts, origin_ns=origin_ns)
        self._device_ids = tuple(device.device_id for device in devices)
        self._simulated = tuple(each for each in drivers if isinstance(each, SimulatedDevice))
        for device in self._simulated:
            self.writer.observe(device)
        self._next_sequence = self._annotated = 0
        self._lock = threading.Lock()

    def observe(self, adaptor: UvmResourceAdaptor) -> None:
        """Write what an adaptor allocates and frees from now on."""
        self.writer.observe(adaptor)

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
        failed = str(self.writer.failed)
        return Availability(available=not failed, reason=failed)

    def close(self) -> None:
        """End the file. Adaptors that were replaced meanwhile are ignored from now on."""
        for device_id in self._device_ids:
            adaptor = footprint.own_adaptor(device_id)
            if adaptor is not None:
                adaptor.observe(None)
        for device in self._simulated:
            device.observe(None)
        self._simulated = ()
        self.writer.close()
