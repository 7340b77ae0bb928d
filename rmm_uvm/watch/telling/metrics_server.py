# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server in threads of its own, which ends when it is told to, and wholly.

``prometheus_client`` has one too; its request threads outlive it, and a port that is taken is a
bare OSError there.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import socket
import socketserver
import threading
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from rmm_uvm._lib.own_threads import OwnThread
from rmm_uvm._lib.sampler_ends import Stoppable
from rmm_uvm._lib.thread_starts import starting_thread
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.support.messages import shown

__all__ = ["MetricsServer"]

_IDLE_SECONDS = 10  # after which a client that says nothing is let go


class MetricsServer:
    """Serves a WSGI application until it is closed.

    Parameters
    ----------
    port : int
        0 for any free one.
    host : str
        Address to listen on.
    app : WSGI application
        What answers.
    owned : object with stop(), optional
        Stopped by `close`.

    Attributes
    ----------
    host : str
        As asked.
    port : int
        Where it listens.

    Raises
    ------
    AvailabilityError
        If the port cannot be had, or the process can have no more threads.
    ConfigurationError
        If the port is no number from 0 to 65535, or the host no text.
    """

    def __init__(self, port: int, host: str, app: Any, owned: Stoppable | None = None) -> None:
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
            raise ConfigurationError(f"port is {shown(port)}; a number from 0 to 65535 is needed")
        if not isinstance(host, str):
            raise ConfigurationError(
                f"host is {shown(host)}; an address such as '127.0.0.1' is needed"
            )
        self.host = host
        self._owned = owned
        self._server = _open_server(port, host, app)
        self.port = int(self._server.server_address[1])
        self._thread = OwnThread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="rmm_uvm metrics",
            daemon=True,
        )
        try:
            with starting_thread("a server of metrics", "go without it"):
                self._thread.start()
        except BaseException:
            self._server.server_close()
            raise
        self._process = os.getpid()
        atexit.register(self._close_at_exit)

    @property
    def url(self) -> str:
        """The address of the figures."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """End all threads and close all sockets; idempotent. It happens at exit, too."""
        atexit.unregister(self._close_at_exit)
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.stop()

    def _close_at_exit(self) -> None:
        if os.getpid() == self._process:  # a forked child has the parent's sockets, and no thread
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MetricsServer {self.url}{'' if self._thread.is_alive() else ', closed'}>"


class _Handler(WSGIRequestHandler):
    timeout = _IDLE_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: scrapes come every few seconds."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._requests: dict[threading.Thread, socket.socket] = {}
        super().__init__(*arguments)

    def server_bind(self) -> None:
        # HTTPServer looks the host's name up, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        this = threading.current_thread()
        this.name = "rmm_uvm metrics"  # as the server's; Python 3.14 tells the system
        self._requests[this] = request
        try:
            super().process_request_thread(request, client_address)
        finally:
            del self._requests[this]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that went away is no error here."""

    def server_close(self) -> None:
        super().server_close()
        for thread, request in list(self._requests.items()):
            with contextlib.suppress(OSError):  # it ended by itself
                request.shutdown(socket.SHUT_RDWR)
            thread.join()


def _open_server(port: int, host: str, app: Any) -> _Server:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        kind = type("_ServerOfFamily", (_Server,), {"address_family": family})
        server: _Server = kind((host, port), _Handler)
    except (OSError, UnicodeError) as error:
        raise AvailabilityError(_reason(port, host, error)) from None
    server.set_app(app)
    return server


def _reason(port: int, host: str, error: OSError | UnicodeError) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return f"port {port} of {host} is taken: choose another, or 0 for any that is free"
    if code == errno.EACCES:
        return f"port {port} needs more rights than this process has: choose one above 1023"
    return f"cannot listen on {host}: {getattr(error, 'strerror', None) or error}"
