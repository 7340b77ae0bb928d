# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which device is meant, as torch lets programs say it."""

from __future__ import annotations

import torch

from rmm_uvm.errors import ConfigurationError

__all__ = ["ordinal_of"]


def ordinal_of(device: int | str | torch.device | None) -> int:
    """Return the CUDA ordinal of a device.

    Parameters
    ----------
    device : int, str, torch.device or None
        The ordinal itself; a device such as ``"cuda:0"``; None or ``"cuda"`` for the current one,
        which torch has with a GPU only.

    Raises
    ------
    ConfigurationError
        If it is no CUDA device.

    Examples
    --------
    >>> ordinal_of("cuda:1"), ordinal_of(3)
    (1, 3)
    """
    if isinstance(device, int):
        return device
    try:
        found = torch.device("cuda" if device is None else device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type != "cuda":
        raise ConfigurationError(f"device={device!r}: use a CUDA ordinal, or one such as 'cuda:0'")
    return int(torch.cuda.current_device() if found.index is None else found.index)
