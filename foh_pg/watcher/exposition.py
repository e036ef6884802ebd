"""The HTTP server of a watcher: /metrics for Prometheus, /healthz for whoever restarts it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from foh_pg.errors import InputError
from foh_pg.watcher.counters import Counters

TEXT = "text/plain; version=0.0.4; charset=utf-8"

# Whether the watcher is well, and what it says of itself.
Health = Callable[[], tuple[bool, dict[str, Any]]]


@contextmanager
def serving(host: str, port: int, counters: Counters, health: Health) -> Iterator[int]:
    """Serve as long as the block lasts; gives the port, which the system chooses where it is 0."""

    class Handler(BaseHTTPRequestHandler):
        server_version = "foh-pg"
        # Somebody who connects and says nothing must not keep a thread for ever.
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self.answer(200, TEXT, counters.text())
            elif path == "/healthz":
                well, said = health()
                self.answer(200 if well else 503, "application/json", json.dumps(said) + "\n")
            else:
                self.answer(404, TEXT, "there are /metrics and /healthz\n")

        do_HEAD = do_GET

        def answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are no news."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise InputError(f"cannot serve metrics on {host}:{port}: {error.strerror or error}") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
