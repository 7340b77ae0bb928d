# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The Dask comm backend ``ucxuvm``: distributed-ucxx, with managed memory staged through a pool.

Dask finds it by its entry point; ``protocol="ucxuvm"`` is all there is to do. The name begins with
"ucx" because Dask's workers treat such protocols alike. Connections, addresses and closing are
distributed-ucxx's; reading and writing are `rmm_uvm.dask.comm.send` and
`rmm_uvm.dask.comm.receive`.

This is the only module that imports distributed-ucxx.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Collection
from typing import Any

from distributed.comm.core import Comm, CommClosedError
from distributed.comm.utils import OFFLOAD_THRESHOLD, from_frames, to_frames
from distributed.protocol.serialize import Serialize
from distributed.protocol.utils import host_array

from rmm_uvm.dask.comm.channel import UcxChannel
from rmm_uvm.dask.comm.handshake import HANDSHAKE_KEY, STOCK_PEER, Peer, introduce, meet
from rmm_uvm.dask.comm.pulling import Agreement
from rmm_uvm.dask.comm.receive import receive_message
from rmm_uvm.dask.comm.send import frame_bytes, send_message
from rmm_uvm.dask.comm.staging import staging_for_frames
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.residency.memory_of import is_cudf
from rmm_uvm.support.messages import shown
from rmm_uvm.support.requirements import install_extra

try:
    from distributed_ucxx.config import get_rmm_config, get_ucx_config
    from distributed_ucxx.ucxx import UCXX, UCXXBackend, UCXXConnector, UCXXListener
except ImportError as error:
    raise ImportError(
        f"protocol 'ucxuvm' needs distributed-ucxx: {install_extra('dask')}"
    ) from error

__all__ = ["PREFIX", "UvmBackend", "UvmComm"]

PREFIX = "ucxuvm://"

_STOCK_PREFIX = "ucx://"
_SERIALIZERS = ("cuda", "dask", "pickle", "error")

logger = logging.getLogger("rmm_uvm.dask.comm")


class UvmComm(UCXX):
    """One connection.

    Notes
    -----
    As every comm of Dask: one reader and one writer at a time, on one event loop.
    """

    def __init__(self, ep: Any, local_addr: str, peer_addr: str, deserialize: bool = True) -> None:  # noqa: FBT001, FBT002 - as distributed-ucxx calls it
        # The base class checks that addresses have its own prefix.
        super().__init__(ep, _stock(local_addr), _stock(peer_addr), deserialize)
        self._local_addr, self._peer_addr = local_addr, peer_addr
        self._peer: Peer | None = None
        self._agreement = Agreement()
        import ucxx  # not before distributed-ucxx has set it up, which it did for this endpoint

        self._progress = ucxx.progress

    def handshake_info(self) -> dict[str, Any]:
        """Return what this end tells the other."""
        return {**super().handshake_info(), HANDSHAKE_KEY: introduce()}

    @staticmethod
    def handshake_configuration(local: dict[str, Any], remote: dict[str, Any]) -> dict[str, Any]:
        """Return what both ends agree on.

        Raises
        ------
        ValueError
            If the other end speaks another version of Dask, or of this protocol.
        """
        return {**Comm.handshake_configuration(local, remote), HANDSHAKE_KEY: meet(local, remote)}

    @property
    def peer(self) -> Peer:
        """The other end; a stock peer until it has said what it is."""
        if self._peer is None:
            peer = self.handshake_options.get(HANDSHAKE_KEY)
            if peer is None:
                return STOCK_PEER
            self._peer = peer
        return self._peer

    async def write(
        self, msg: Any, serializers: Collection[str] | None = None, on_error: str = "message"
    ) -> int:
        """Send a message; return the bytes of its frames.

        Raises
        ------
        CommClosedError
            If the connection is closed, or broke.
        """
        if self.closed():
            raise CommClosedError("Endpoint is closed -- unable to send message")
        if serializers is None:
            serializers = _SERIALIZERS
        peer, offload = self.peer, self.allow_offload
        if peer.ours and peer.receives == "host":
            # It has no GPU: data go through host memory here rather than fail there.
            serializers = [name for name in serializers if name != "cuda"]
        elif "cuda" in serializers and _has_arrays_on_a_device_alone(msg):
            offload = False
        frames = await to_frames(
            msg, serializers=serializers, on_error=on_error, allow_offload=offload
        )
        try:
            channel = UcxChannel(self, self._agreement, self._progress)
            return await send_message(channel, frames, peer, staging_for_frames)
        except BaseException as error:
            del msg, frames  # or whoever keeps the error would keep the data, too
            # A part of the message may be out: nothing after it could be understood.
            self._break_off(error, "writing")
            raise

    async def read(self, deserializers: Collection[str] | None = _SERIALIZERS) -> Any:
        """Receive a message.

        Raises
        ------
        CommClosedError
            If the connection is closed, or broke, or what came cannot be received.
        """
        if deserializers is None:
            deserializers = _SERIALIZERS
        try:
            channel = UcxChannel(self, self._agreement, self._progress)
            frames = await receive_message(channel, self.peer, staging_for_frames, host_array)
        except BaseException as error:
            self._break_off(error, "reading")
            raise
        if frames is None:
            self.abort()
            raise CommClosedError("Connection closed by writer")
        shaking_hands = not self.remote_info
        try:
            msg = await from_frames(
                frames,
                deserialize=self.deserialize,
                deserializers=deserializers,
                allow_offload=self.allow_offload and _has_much_on_the_host(frames),
            )
            if shaking_hands:
                _refuse_other_than_handshake(msg)
        except EOFError as error:
            self.abort()
            raise CommClosedError("Aborted stream on truncated data") from error
        except Exception as error:
            if shaking_hands:  # later it is a task's data, and its reader has to see the error
                totals().refused_messages += 1
                self._break_off(error, "shaking hands")
            raise
        return msg

    def abort(self) -> None:
        """Close the connection, without waiting."""
        super().abort()
        self._agreement.end()

    def _break_off(self, error: BaseException, doing: str) -> None:
        """Close the connection, and raise what Dask understands by that."""
        self.abort()
        # Dask's log of a worker keeps errors, which would keep the frames of the message alive.
        # Those whose time is not over yet are in quarantine.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, CommClosedError) or not isinstance(error, Exception):
            return
        gone = isinstance(error, ConnectionError) or type(error).__module__.startswith("ucxx")
        if not gone:  # more than a peer that went away
            logger.warning("while %s, a transfer failed: %s", doing, error)
        raise CommClosedError(f"While {doing}, the connection was closed: {error}") from error


class UvmConnector(UCXXConnector):
    """Opens connections."""

    prefix = PREFIX
    comm_class = UvmComm


class UvmListener(UCXXListener):
    """Accepts connections."""

    prefix = PREFIX
    comm_class = UvmComm

    async def on_connection(
        self, comm: Comm, handshake_overrides: dict[str, Any] | None = None
    ) -> None:
        """Shake hands.

        Raises
        ------
        CommClosedError
            If that failed, or the peer cannot be understood.
        """
        try:
            await super().on_connection(comm, handshake_overrides)
        except ValueError as error:  # of versions; the peer says the same at its end
            logger.warning("a connection was refused: %s", error)
            comm.abort()
            raise CommClosedError(str(error)) from error


class UvmBackend(UCXXBackend):
    """Gives Dask connectors and listeners.

    Raises
    ------
    ConfigurationError
        From both, if distributed-ucxx is configured in a way that excludes staging.
    """

    def get_connector(self) -> UvmConnector:
        """Return a connector."""
        refuse_configuration()
        return UvmConnector()

    def get_listener(
        self,
        loc: str,
        handle_comm: Any,
        deserialize: bool,  # noqa: FBT001 - Dask's signature
        **connection_args: Any,
    ) -> UvmListener:
        """Return a listener that was not started yet."""
        refuse_configuration()
        return UvmListener(loc, handle_comm, deserialize, **connection_args)


def refuse_configuration() -> None:
    """Refuse options of distributed-ucxx that go past our pools.

    Raises
    ------
    ConfigurationError
        If one is set.
    """
    if get_ucx_config("multi-buffer", default=False):
        raise ConfigurationError(
            "distributed-ucxx.multi-buffer is on: it receives into memory of its own, which "
            "protocol 'ucxuvm' cannot stage; leave it off"
        )
    if (size := get_rmm_config("pool-size")) is not None:
        raise ConfigurationError(
            f"distributed-ucxx.rmm.pool-size is {size!r}: it would replace the managed pool; "
            "leave it unset, and use rmm-uvm.initial-pool-size"
        )


def _has_arrays_on_a_device_alone(message: Any) -> bool:
    """Return whether a message has results, and all are of classes of arrays on a device.

    Those are not to be offloaded, as `_has_much_on_the_host` says. Frames of cuDF are left to Dask:
    they may wait for the device to tell what they have.
    """
    results = message.get("data") if type(message) is dict else None
    return (
        type(results) is dict
        and bool(results)
        and all(
            type(each) is Serialize
            and hasattr(type(each.data), "__cuda_array_interface__")
            and not is_cudf(each.data)
            for each in results.values()
        )
    )


def _has_much_on_the_host(frames: Collection[Any]) -> bool:
    """Return whether unpacking takes long enough for another thread to do it.

    Dask decides by all bytes. Device memory is wrapped, not copied, and a change of threads takes
    longer than that.
    """
    host_bytes = sum(
        frame_bytes(frame) for frame in frames if not hasattr(frame, "__cuda_array_interface__")
    )
    return bool(OFFLOAD_THRESHOLD) and host_bytes > OFFLOAD_THRESHOLD


def _refuse_other_than_handshake(message: Any) -> None:
    if not isinstance(message, dict):
        raise DataError(f"a handshake was expected, and {shown(message)} came")


def _stock(address: str) -> str:
    return _STOCK_PREFIX + address.removeprefix(PREFIX) if address else address
