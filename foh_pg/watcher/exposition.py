"""What a watcher serves: /metrics for Prometheus, and /healthz for its supervisor."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from foh_pg.errors import InputError
from foh_pg.watcher.counters import Counters

log = logging.getLogger(__name__)

TEXT = "text/plain; version=0.0.4; charset=utf-8"

# Whether the watcher is well, and what it says of itself.
Health = Callable[[], tuple[bool, dict[str, Any]]]


class Server(ThreadingTCPServer):
    """A thread for each request. HTTPServer would look up its own name, which may take seconds."""

    allow_reuse_address = daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news. Anything else is an error of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            log.exception("a request of %s failed", client_address[0])


@contextmanager
def serving(host: str, port: int, counters: Counters, health: Health) -> Iterator[int]:
    """Serve as long as the block lasts; gives the port, which the system chooses where it is 0."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "foh-pg", ""
        # A client that connects and says nothing must not keep a thread for ever.
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, TEXT, counters.text())
            elif path == "/healthz":
                well, told = health()
                self._answer(200 if well else 503, "application/json", json.dumps(told) + "\n")
            else:
                self._answer(404, TEXT, "there are /metrics and /healthz\n")

        do_HEAD = do_GET

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are no news."""

    class Bound(Server):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        server = Bound((host, port), Handler)
    except OSError as error:
        raise InputError(f"cannot serve on {host}:{port}: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
