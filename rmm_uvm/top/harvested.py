# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds how much of whose idle memory: a line for each device of a harvest board."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from rmm_uvm.harvest import DeviceHarvest
from rmm_uvm.top.columns import short_bytes

__all__ = ["harvest_line"]

_MOST_HOLDERS = 3


def harvest_line(device: DeviceHarvest, *, name: str = "", narrow: bool = False) -> Text:
    """Return what is agreed about one device; yellow while something is to be given back.

    Parameters
    ----------
    device : DeviceHarvest
        Its offers and claims.
    name : str
        Of the device; empty where the line stands below it.
    narrow : bool
        Few columns: sizes are abbreviated, and owners not named.

    Examples
    --------
    >>> from rmm_uvm.harvest import Claim, Offer
    >>> of = DeviceHarvest("GPU-0", (Offer(7, 3 << 30, False),), (Claim(8, 2 << 30, 0),))
    >>> print(harvest_line(of))
      held by PID 8 2.00 GiB; 3.00 GiB offered by PID 7
    >>> print(harvest_line(of, name="GPU-0", narrow=True))
    GPU-0: held by 8 2.0G; 3.0G offered
    """

    def size(nbytes: int) -> str:
        return short_bytes(nbytes, narrow=narrow)

    parts = []
    pid = "" if narrow else "PID "
    claims = sorted(device.claims, key=lambda claim: (-claim.claimed_bytes, claim.process))
    if claims:
        held = [f"{each.process} {size(each.claimed_bytes)}" for each in claims[:_MOST_HOLDERS]]
        rest = claims[_MOST_HOLDERS:]
        more = sum(each.claimed_bytes for each in rest)
        held += [f"{len(rest)} more {size(more)}"] * bool(rest)
        parts.append(f"held by {pid}{', '.join(held)}")
    offered = device.offered_bytes
    if offered is not None:
        owners = _owners([o.process for o in device.offers if o.offered_bytes is not None])
        parts.append(f"{size(offered)} offered{'' if narrow else f' by {owners}'}")
    excess = 0 if offered is None else max(0, device.claimed_bytes - offered)
    if excess:
        parts.append(f"{size(excess)} to give back")
    if device.busy:
        parts.append("busy" if narrow else "its links are busy")
    text = Text(f"{name}: " if name else "  ", style="yellow" if excess else "")
    return text.append("; ".join(parts))


def _owners(processes: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(processes)[:_MOST_HOLDERS]))
    more = len(processes) - _MOST_HOLDERS
    return f"PID {shown}" + (f" and {more} more" if more > 0 else "")
