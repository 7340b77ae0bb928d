# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The handshake: two ends of a connection tell each other how they receive.

Dask's handshake carries one more entry, which stock peers ignore. A peer without it is a stock
peer: everything is sent to it as distributed-ucxx would.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

from rmm_uvm import __version__
from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.dask.comm.staging import current_staging
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.comm.wire import MOST_MESSAGE_BYTES, WIRE_VERSION
from rmm_uvm.errors import DataError
from rmm_uvm.support.messages import shown

__all__ = ["HANDSHAKE_KEY", "STOCK_PEER", "Peer", "Receives", "introduce", "meet"]

HANDSHAKE_KEY = "rmm-uvm"
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,40}")

Receives: TypeAlias = Literal["host", "direct", "staged"]
"""Where a process puts device frames: it cannot; in memory that CUDA IPC exports; in other."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """The other end.

    Parameters
    ----------
    ours : bool
        It speaks our wire format.
    receives : {"host", "direct", "staged"}
        Where it put device frames when the connection was made.
    chunk_bytes : int or None
        Size of its staging chunks then, in bytes; None if it had none.
    """

    ours: bool
    receives: Receives = "staged"
    chunk_bytes: int | None = None


STOCK_PEER = Peer(ours=False)


def introduce() -> dict[str, Any]:
    """Return what this process says of itself."""
    staging = current_staging()
    return {
        "wire": WIRE_VERSION,
        "version": __version__,
        "chunk_bytes": None if staging is None else staging.chunk_bytes,
        "receives": receives(),
    }


def meet(local: Mapping[str, Any], remote: Mapping[str, Any]) -> Peer:
    """Return who the other end is.

    Parameters
    ----------
    local, remote : mapping
        The handshakes of both ends.

    Raises
    ------
    DataError
        If it speaks another version of our wire format, or says what none of ours does. It is a
        ValueError, which Dask shows to both ends; it is counted.

    Examples
    --------
    >>> meet({}, {"compression": None})
    Peer(ours=False, receives='staged', chunk_bytes=None)
    """
    try:
        return _peer(local.get(HANDSHAKE_KEY, {}), remote.get(HANDSHAKE_KEY))
    except DataError:
        totals().refused_messages += 1
        raise


def _peer(own: Mapping[str, Any], said: Any) -> Peer:
    if said is None:
        return STOCK_PEER
    if not isinstance(said, dict):
        raise DataError(
            f"expected a handshake of ucxuvm, and a peer says {shown(said)} of its rmm-uvm"
        )
    wire, version = said.get("wire"), said.get("version")
    if type(wire) is not int or wire != own.get("wire"):
        named = version if isinstance(version, str) and _VERSION.fullmatch(version) else "there"
        raise DataError(
            f"rmm-uvm {own.get('version')} speaks wire version {own.get('wire')} of ucxuvm, and "
            f"the peer's rmm-uvm {named} speaks {shown(wire)}: "
            "install the same rmm-uvm on all machines of the cluster"
        )
    where, chunk_bytes = said.get("receives"), said.get("chunk_bytes")
    if not isinstance(where, str) or where not in get_args(Receives):
        raise DataError(
            f"a peer receives {shown(where)}: expected one of {', '.join(get_args(Receives))}"
        )
    if chunk_bytes is not None and not _is_chunk_size(chunk_bytes):
        raise DataError(
            f"a peer has chunks of {shown(chunk_bytes)} bytes: a positive multiple of "
            f"{ALIGNMENT_BYTES} was expected, or none"
        )
    return Peer(ours=True, receives=cast(Receives, where), chunk_bytes=chunk_bytes)


def _is_chunk_size(value: Any) -> bool:
    return type(value) is int and 0 < value <= MOST_MESSAGE_BYTES and not value % ALIGNMENT_BYTES


def receives() -> Receives:
    """Return where this process puts device frames now."""
    if sys.modules.get("rmm") is None:
        return "host"
    import rmm

    staging = current_staging()
    if staging is None and not _has_gpu():
        return "host"
    device_id = 0 if staging is None else staging.device_id
    return way_of(rmm.mr.get_per_device_resource(device_id))


def way_of(resource: Any) -> Receives:
    """Return where frames go that are allocated from a memory resource.

    Only what cudaMalloc itself gave can be exported by CUDA IPC: neither managed memory nor that
    of an asynchronous pool.
    """
    while (upstream := getattr(resource, "upstream_mr", None)) is not None:
        resource = upstream
    plain = ("CudaMemoryResource", "SimulatedCudaMemoryResource")
    return "direct" if type(resource).__name__ in plain else "staged"


def _has_gpu() -> bool:
    from rmm._cuda.gpu import CUDARuntimeError, getDeviceCount

    try:
        return bool(getDeviceCount() > 0)
    except CUDARuntimeError:
        return False
