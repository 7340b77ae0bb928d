# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cuDF: libcudf's own prefetch on column access, and when it is on.

cuDF allocates from RMM's current resource without being told. Its prefetch works on the default
stream only, and costs a driver call for every column access.

Measured on an H200 (``benchmarks/results/cudf_prefetch.json``): with everything on the device a
pass takes 1.47 times as long with the prefetch on, with the input on the host 0.71 times. So it is
on while pages leave the device, and off again when they have stayed for a while.
"""

from __future__ import annotations

import atexit
import ctypes
import dataclasses
import importlib.util
import os
import threading
from collections.abc import Callable, Sequence

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.support.settings import CudfPrefetch

_PERIOD_SECONDS = 0.5
_ON_BYTES = 32 << 20  # in one period: 16 blocks; less is a stray CPU access, not an eviction
_QUIET_LOOKS = 6  # three seconds without a byte


@dataclasses.dataclass(frozen=True)
class SwitchState:
    """The state of the switch between two looks.

    Parameters
    ----------
    on : bool
        The prefetch is on.
    quiet_looks : int
        Looks in a row that saw nothing leave the device.
    """

    on: bool = False
    quiet_looks: int = 0


def next_state(state: SwitchState, left_bytes: int) -> SwitchState:
    """Return the state after a look that saw `left_bytes` leave the device.

    Examples
    --------
    >>> next_state(SwitchState(), 1 << 30)
    SwitchState(on=True, quiet_looks=0)
    """
    if left_bytes >= _ON_BYTES:
        return SwitchState(on=True)
    if left_bytes > 0:
        return SwitchState(on=state.on)
    quiet_looks = state.quiet_looks + 1
    return SwitchState(on=state.on and quiet_looks < _QUIET_LOOKS, quiet_looks=quiet_looks)


class PrefetchSwitch:
    """Looks at the device-to-host counter twice a second and switches.

    Parameters
    ----------
    left_bytes_total : callable
        Returns the bytes that left the device so far; a memory load.
    switch : callable
        Called with True or False, from the thread of this object, when the state changes.

    Notes
    -----
    `stop` is idempotent. The interpreter's end stops it, too.
    """

    def __init__(
        self, left_bytes_total: Callable[[], int], switch: Callable[[bool], object]
    ) -> None:
        self._left_bytes_total = left_bytes_total
        self._switch = switch
        self._seen_bytes = left_bytes_total()
        self._state = SwitchState()
        self._ended = threading.Event()
        self._thread = OwnThread(target=self._run, name="rmm_uvm cudf", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()
        self._process = os.getpid()
        atexit.register(self._stop_at_exit)

    def stop(self) -> None:
        """Stop looking, and wait for the last look to end."""
        atexit.unregister(self._stop_at_exit)
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _stop_at_exit(self) -> None:
        if os.getpid() == self._process:  # a forked child has no such thread
            self.stop()

    def look(self) -> None:
        """Look once; the thread's work."""
        total_bytes = self._left_bytes_total()
        state = next_state(self._state, total_bytes - self._seen_bytes)
        self._seen_bytes = total_bytes
        if state.on != self._state.on:
            self._switch(state.on)
        self._state = state

    def _run(self) -> None:
        while not self._ended.wait(_PERIOD_SECONDS):
            self.look()


# std::atomic_bool& cudf::prefetch::detail::enabled(), from cudf/utilities/prefetch.hpp of 26.10.
# pylibcudf has enable() and disable(), and no question.
_ENABLED_SYMBOL = "_ZN4cudf8prefetch6detail7enabledEv"


def prefetch_enabled() -> bool | None:
    """Return whether libcudf prefetches on column access now.

    Returns
    -------
    bool or None
        None if libcudf is not loaded, or is one that cannot be asked.
    """
    try:
        libcudf = ctypes.CDLL("libcudf.so", mode=os.RTLD_NOLOAD | os.RTLD_LOCAL)
        enabled = getattr(libcudf, _ENABLED_SYMBOL)
    except (OSError, AttributeError):
        return None
    enabled.restype = ctypes.POINTER(ctypes.c_bool)
    return bool(enabled().contents)


def wire_prefetch(
    value: CudfPrefetch, drivers: Sequence[UvmDriver], *, budget: bool = False
) -> Wiring:
    """Switch libcudf's prefetch.

    Parameters
    ----------
    value : bool or "auto"
        "auto": on while pages leave the device, off while data fit; see
        `PrefetchSwitch`.
    drivers : sequence of UvmDriver
        Whose counters "auto" goes by; without counters it stays off.
    budget : bool
        A budget is kept: "auto" stays off, since its manager brings in what is used and does not
        know of what libcudf prefetches.

    Returns
    -------
    Wiring
        Its `undo` switches back to what was before; to off, which is libcudf's default, if a later
        libcudf cannot be asked.
    """
    if importlib.util.find_spec("pylibcudf") is None:
        return Wiring("cudf_prefetch", active=False, reason="cuDF is not installed")
    from pylibcudf import prefetch

    undo = prefetch.enable if prefetch_enabled() else prefetch.disable
    if value is True:
        prefetch.enable()
        return Wiring("cudf_prefetch", active=True, reason="as asked", undo=undo)
    prefetch.disable()
    if value is False:
        return Wiring("cudf_prefetch", active=False, reason="as asked", undo=undo)
    if budget:
        reason = "auto: the budget's manager brings in what is used"
        return Wiring("cudf_prefetch", active=False, reason=reason, undo=undo)
    counted = [driver for driver in drivers if driver.counters_available()]
    if not counted:
        reason = "auto: without counters nothing shows when it would help"
        return Wiring("cudf_prefetch", active=False, reason=reason, undo=undo)
    switch = PrefetchSwitch(
        lambda: sum(driver.migrated_bytes()[1] for driver in counted),
        lambda on: prefetch.enable() if on else prefetch.disable(),
    )
    switch.start()

    def stop() -> None:
        switch.stop()
        undo()

    reason = "auto: on only while pages leave the device"
    return Wiring("cudf_prefetch", active=False, reason=reason, undo=stop)
