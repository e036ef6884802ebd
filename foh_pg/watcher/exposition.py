"""What a watcher serves: /metrics for Prometheus, and /healthz for its supervisor."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import TCPServer
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from foh_pg.errors import InputError
from foh_pg.watcher.counters import Counters

log = logging.getLogger(__name__)

# Whether the watcher is well, and what it says of itself.
Health = Callable[[], tuple[bool, dict[str, Any]]]


class Handler(WSGIRequestHandler):
    # A client that connects and says nothing must not keep a thread for ever.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are no news."""


@contextmanager
def serving(host: str, port: int, counters: Counters, health: Health) -> Iterator[int]:
    """Serve as long as the block lasts; gives the port, which the system chooses where it is 0."""

    class Server(ThreadingWSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            # HTTPServer would look up its own name, which may take seconds.
            TCPServer.server_bind(self)
            self.server_name, self.server_port = host, self.server_address[1]
            self.setup_environ()

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away is no news. Anything else is an error of ours."""
            if not isinstance(sys.exc_info()[1], ConnectionError):
                log.exception("a request of %s failed", client_address[0])

    metrics = make_wsgi_app(counters.registry)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            return metrics(environ, start)  # type: ignore[no-any-return]
        if environ["PATH_INFO"] == "/healthz":
            well, told = health()
            start("200 OK" if well else "503 Service Unavailable", [("Content-Type", "application/json")])
            return [f"{json.dumps(told)}\n".encode()]
        start("404 Not Found", [("Content-Type", "text/plain")])
        return [b"there are /metrics and /healthz\n"]

    try:
        server = make_server(host, port, answer, Server, Handler)
    except OSError as error:
        raise InputError(f"cannot serve on {host}:{port}: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
