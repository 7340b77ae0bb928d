# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cuDF: libcudf's own prefetch on column access.

cuDF allocates from RMM's current resource without being told. Its prefetch works on the default
stream only, and costs a driver call for every column access.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Sequence

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.integrations.prefetch_switch import PrefetchSwitch
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.support.settings import CudfPrefetch

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
        `rmm_uvm.integrations.prefetch_switch`.
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
