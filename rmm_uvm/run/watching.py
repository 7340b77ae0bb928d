# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Installing the pool, watching while a program runs, and telling at the end.

Used in the process that runs the program: ``rmm-uvm run`` itself, or the first Python process of a
command. Whatever of it cannot be had becomes a note in the summary; the program runs anyway.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmm_uvm.errors import (
    AvailabilityError,
    ConfigurationError,
    DriverError,
    FindingWarning,
    UvmError,
)
from rmm_uvm.recording.recorded import PEAK
from rmm_uvm.run.failure import PoolLimit, of_error, status_of
from rmm_uvm.run.request import RunRequest
from rmm_uvm.run.summary import NO_POOL
from rmm_uvm.support.off_switch import OFF, is_off
from rmm_uvm.watch.telling.board import told_command

if TYPE_CHECKING:
    from rmm_uvm.mr import UvmResourceAdaptor
    from rmm_uvm.recording.recorded import Recording
    from rmm_uvm.run.torch_memory import TorchRun
    from rmm_uvm.watch.monitor import Monitor

__all__ = ["Watch", "say"]

_LEAST_POOL_BYTES = 8 << 20
_POOL_SHARE = 64  # of the budget, first, where the budget is torch's as well


def say(line: str) -> None:
    """Print a line for the user on the error stream; a stream that is gone is no error."""
    if sys.__stderr__ is None:  # print would take it for standard output
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"rmm_uvm: {line}", file=sys.__stderr__, flush=True)


@dataclass
class Watch:
    """One run's pool and monitor.

    Parameters
    ----------
    request : RunRequest
        What was asked for.

    Attributes
    ----------
    notes : list of str
        What could not be done, one line each, for the first lines of the summary.
    failure : str
        How the program ended, where it did not end well, as `rmm_uvm.run.failure` says it.
    status : int or None
        Its exit status, as shells have it; None: it is not known yet.
    """

    request: RunRequest
    notes: list[str] = field(default_factory=list)
    failure: str = ""
    status: int | None = None
    _limit: PoolLimit | None = field(default=None, repr=False)
    _monitor: Monitor | None = field(default=None, repr=False)
    _adaptor: UvmResourceAdaptor | None = field(default=None, repr=False)
    _torch: TorchRun | None = field(default=None, repr=False)
    _pool: str = ""

    def begin(self) -> None:
        """Install the pool and start watching.

        Raises
        ------
        ConfigurationError
            If a size or name cannot be used: nobody wants to find that in the summary.
        DriverError, AvailabilityError
            If a device was named that does not exist.
        MemoryError
            If the first slab cannot be had.
        """
        if self.request.driver is not None:
            # For what the program installs itself, and for processes that it starts.
            os.environ["RMM_UVM_DRIVER"] = self.request.driver
        if is_off():
            self.notes.append(f"{NO_POOL}: {OFF}" if self.request.pool else OFF)
            say(OFF)
        elif self.request.pool:
            self._install()
        if self.request.torch and not is_off():
            from rmm_uvm.run.torch_memory import TorchRun

            self._torch = TorchRun(self.request, shares_pool=self._adaptor is not None, say=say)
            self._torch.begin()
        try:
            self._monitor = self._start_monitor()
        except ConfigurationError:
            raise
        except Exception as error:
            what = "" if isinstance(error, UvmError) else f"{type(error).__name__}: "
            self.notes.append(f"not watched: {what}{error}")

    def ended_with(self, error: BaseException) -> None:
        """Keep how the program ended."""
        self.status = status_of(error)
        self.failure = of_error(error, self._limit, asked_for_pool=self.request.pool)

    def recording(self) -> Recording | None:
        """Stop watching; return what was recorded. Never raises."""
        monitor, self._monitor = self._monitor, None
        running, self._torch = self._torch, None
        if running is not None:
            try:
                self.notes.append(running.summary())
            except Exception as error:
                self.notes.append(f"no summary of torch: {type(error).__name__}: {error}")
        peak_bytes = 0 if self._adaptor is None else self._adaptor.peak_bytes
        self._note_replacement()
        if monitor is None:
            return None
        try:
            # What is found this late stands in the summary, right below.
            with warnings.catch_warnings(), contextlib.suppress(FindingWarning):
                warnings.simplefilter("ignore", FindingWarning)
                monitor.stop()
            recorded: Recording = monitor.recording()
            about = {**recorded.about, "program": told_command()}
            about |= {} if self.status is None else {"exit status": str(self.status)}
            about |= {"pool": self._pool} if self._pool else {}
            recorded = dataclasses.replace(recorded, failure=self.failure, about=about)
            if peak_bytes:  # samples may have missed all of it
                settings = {**recorded.settings, PEAK: str(peak_bytes)}
                recorded = dataclasses.replace(recorded, settings=settings)
        except Exception as error:
            self.notes.append(f"no report: {type(error).__name__}: {error}")
            return None
        return recorded

    def _install(self) -> None:
        import rmm_uvm

        request = self.request
        settings = dict(request.settings)
        if request.torch:
            from rmm_uvm.run.torch_memory import torch_budget

            budget = torch_budget(request)
            settings |= {"device_budget": budget, "eviction": None, "neighbors": None}
            # Most memory is torch's, which takes it segment by segment.
            share_bytes = max(_LEAST_POOL_BYTES, budget.budget_bytes // _POOL_SHARE)
            settings.setdefault("initial_pool_size", share_bytes)
        settings |= {
            "driver": request.driver,
            "devices": request.device or 0,
            "monitor": False,  # the one that this module starts outlives the installation
        }
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                installed = rmm_uvm.reinitialize(**settings)
                self._adaptor = installed.managed_mr
                self._pool = installed.pools_line()
                sizes = installed.devices[0].sizes
                self._limit = PoolLimit(sizes.maximum_bytes, sizes.maximum_reason)
        except (DriverError, AvailabilityError) as error:
            if request.device is not None:
                raise
            self.notes.append(f"{NO_POOL}: {error}")
        for warning in caught:
            say(str(warning.message))

    def _note_replacement(self) -> None:
        """Note what does not hold where the program installed a pool by itself."""
        from rmm_uvm.drivers import SimulatedDevice
        from rmm_uvm.pool.install import installed_devices

        adaptors = [device.managed_mr for device in installed_devices()]
        if self._adaptor is None or not adaptors or self._adaptor in adaptors:
            return
        note = "the program called rmm_uvm.reinitialize itself, so that its own settings held"
        if given := self.request.of_pool():
            note += ", not " + ", ".join(given)
        simulated = isinstance(self._adaptor.driver, SimulatedDevice)
        if simulated and all(one.driver is not self._adaptor.driver for one in adaptors):
            note += "; its device is another one than was watched: leave out that call, or --device"
        self.notes.append(note)

    def _start_monitor(self) -> Monitor:
        from rmm_uvm.watch.monitor import Monitor

        request = self.request
        monitor = Monitor(
            devices=None if request.device is None else (request.device,),
            interval_seconds=request.interval_seconds,
            faults=request.faults,
            attribution=request.attribution,
            lines=request.lines,
            on_finding=request.on_finding,
            driver=None if request.pool else request.driver,
            trace=request.written_trace,
            publish=True,
        )
        monitor.start()
        return monitor
