# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What two ends of a connection tell each other, and what follows from it.

Dask's handshake carries one more entry, which stock peers ignore. A peer without it is a stock
peer: everything is sent to it as distributed-ucxx would.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from rmm_uvm import __version__
from rmm_uvm.dask.comm.staging import current_staging
from rmm_uvm.dask.comm.wire import WIRE_VERSION

__all__ = ["HANDSHAKE_KEY", "STOCK_PEER", "Peer", "Receives", "introduce", "meet"]

HANDSHAKE_KEY = "rmm-uvm"

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
    ValueError
        If it speaks another version of our wire format; Dask shows it to both ends.

    Examples
    --------
    >>> meet({}, {"compression": None})
    Peer(ours=False, receives='staged', chunk_bytes=None)
    """
    said = remote.get(HANDSHAKE_KEY)
    if said is None:
        return STOCK_PEER
    own = local.get(HANDSHAKE_KEY, {})
    if said.get("wire") != own.get("wire"):
        raise ValueError(
            f"rmm-uvm {own.get('version')} speaks wire version {own.get('wire')} of ucxuvm, and "
            f"the peer's rmm-uvm {said.get('version')} speaks {said.get('wire')}: "
            "install the same rmm-uvm on all machines of the cluster"
        )
    return Peer(ours=True, receives=said["receives"], chunk_bytes=said["chunk_bytes"])


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
