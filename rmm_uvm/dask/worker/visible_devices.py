# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is odd about CUDA_VISIBLE_DEVICES, in one line.

CUDA itself says nothing: it shows fewer devices, or none. The rules are those of the CUDA
Programming Guide, "CUDA Environment Variables": a list of numbers or of UUIDs, each once; what
follows an entry that is no device is hidden.
"""

from __future__ import annotations

import re

__all__ = ["count_visible_devices", "mig_remark", "visible_devices_problem"]

_NUMBER = re.compile(r"\d+")
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]+")


def visible_devices_problem(value: str | None) -> str:
    """Return why a GPU of this list cannot be used, in one line; empty if all is well.

    Parameters
    ----------
    value : str or None
        Of the environment variable; None if it is not set.

    Examples
    --------
    >>> visible_devices_problem("0,1")
    ''
    >>> visible_devices_problem("0,0")
    "CUDA_VISIBLE_DEVICES is '0,0': it names 0 twice, and CUDA then shows no device; name each once"
    """
    if value is None:
        return ""
    begin = f"CUDA_VISIBLE_DEVICES is {value!r}: "
    entries = _entries(value)
    if not any(entries) or entries[0] in ("-1", "NoDevFiles"):
        return begin + "it hides every GPU; unset it, or name devices"
    for entry in entries:
        if not _NUMBER.fullmatch(entry) and not _UUID.fullmatch(entry):
            return begin + (
                f"{entry!r} is neither a number nor a UUID (GPU-..., MIG-...), and hides itself "
                "and what follows; take it out"
            )
    numbers = [entry for entry in entries if _NUMBER.fullmatch(entry)]
    if numbers and len(numbers) < len(entries):
        return begin + "it mixes numbers and UUIDs, which CUDA does not read; use one of them"
    for entry in entries:
        if entries.count(entry) > 1:
            return begin + (
                f"it names {entry} twice, and CUDA then shows no device; name each once"
            )
    return ""


def mig_remark(value: str | None) -> str:
    """Return what a worker on a MIG instance must do without, in one line; empty for others.

    Examples
    --------
    >>> mig_remark("0,1")
    ''
    """
    if value is None or not any(entry.startswith("MIG-") for entry in _entries(value)):
        return ""
    return (
        "this worker is on a MIG instance: CUDA IPC between instances does not exist, so results "
        "travel through the host whatever the IPC pool; nothing here was tested on MIG"
    )


def count_visible_devices(value: str | None) -> int | None:
    """Return how many devices a list names, None if it is not set.

    Examples
    --------
    >>> count_visible_devices("0,1,2"), count_visible_devices(None)
    (3, None)
    """
    return None if value is None else sum(1 for entry in _entries(value) if entry)


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",")]
