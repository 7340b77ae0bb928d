# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cuDF: libcudf's own prefetch on column access.

cuDF allocates from RMM's current resource without being told. Its prefetch works on the default
stream only, and costs a driver call for every column access.
"""

from __future__ import annotations

import importlib.util
from typing import Literal

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.integrations.wiring import Wiring

CudfPrefetch = bool | Literal["auto"]


def check_prefetch(value: CudfPrefetch) -> None:
    """Refuse values other than True, False and "auto".

    Raises
    ------
    ConfigurationError
        If it is something else.
    """
    if value not in (True, False, "auto") or not isinstance(value, (bool, str)):
        raise ConfigurationError(f"cudf_prefetch={value!r}: use True, False or 'auto'")


def wire_prefetch(value: CudfPrefetch) -> Wiring:
    """Switch libcudf's prefetch.

    Parameters
    ----------
    value : bool or "auto"
        "auto" switches it off: what was measured is in ``docs/decisions/``.

    Returns
    -------
    Wiring
        Its `undo` switches back to off, which is libcudf's default: it cannot be asked for.
    """
    if importlib.util.find_spec("pylibcudf") is None:
        return Wiring("cudf_prefetch", active=False, reason="cuDF is not installed")
    from pylibcudf import prefetch

    if value is True:
        prefetch.enable()
        return Wiring("cudf_prefetch", active=True, reason="as asked", undo=prefetch.disable)
    prefetch.disable()
    reason = "as asked" if value is False else "auto: while data fit it only costs"
    return Wiring("cudf_prefetch", active=False, reason=reason)
