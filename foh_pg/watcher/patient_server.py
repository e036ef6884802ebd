"""An HTTP server that neither slow nor many clients can use up."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

log = logging.getLogger(__name__)

# Connections at one time, and the seconds that each may take from the first byte to the last.
MOST = 64
PATIENCE = 20.0


class PatientServer(ThreadingHTTPServer):
    """A thread for each connection, and an end to each: by time, and by number, the oldest first.

    An honest request takes milliseconds, so the oldest connection of many is one that only holds a thread. A
    newcomer is never refused: those who probe and scrape get their answer among any number of others.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: Callable[..., BaseHTTPRequestHandler],
        most: int = MOST,
        patience: float = PATIENCE,
    ) -> None:
        self.most = most
        self.patience = patience
        self._open: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_bind(self) -> None:
        # HTTPServer would look up the name of the address, which takes seconds where no name server answers.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            # Dictionaries keep the order in which connections came.
            excess = [] if len(self._open) < self.most else [next(iter(self._open))]
            for old in excess:
                del self._open[old]
            self._open[request] = time.monotonic()
        for old in excess:
            hang_up(old)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End connections that took too long; called twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [request for request, began in self._open.items() if now - began > self.patience]
            for request in late:
                del self._open[request]
        for request in late:
            hang_up(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or was sent away, is no news. Anything else is an error of ours."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            log.exception("a request of %s failed", client_address[0])


def hang_up(request: socket.socket) -> None:
    """Wake the thread that reads from or writes to a connection; it then closes it."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
