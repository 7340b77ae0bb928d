# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Refuse to load beside another RMM than the one this package was built for.

RMM promises no stable interface between minor versions, and its symbols carry the minor in their
names. Importing RMM here, before the compiled layer, also loads ``librmm.so`` for it.
"""

from __future__ import annotations

import importlib.metadata

_NEEDED = "26.10"


def _check() -> None:
    try:
        import rmm
    except ImportError as error:
        raise ImportError(
            f"rmm_uvm needs RMM {_NEEDED}: install rmm-cu13=={_NEEDED}.* ({error})"
        ) from error
    if not rmm.__version__.startswith(f"{_NEEDED}."):
        raise ImportError(
            f"rmm_uvm is built for RMM {_NEEDED} and found {rmm.__version__}: "
            f"install rmm-cu13=={_NEEDED}.*, or the rmm-uvm made for that RMM"
        )
    try:
        importlib.metadata.version("librmm-cu12")
    except importlib.metadata.PackageNotFoundError:
        return
    raise ImportError(
        "rmm_uvm is built for CUDA 13 and found RMM for CUDA 12: "
        f"uninstall rmm-cu12 and librmm-cu12, install rmm-cu13=={_NEEDED}.*"
    )


_check()
