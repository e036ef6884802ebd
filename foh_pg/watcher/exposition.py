"""What a watcher serves: /metrics for Prometheus, /healthz for its supervisor, and pages for people."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from foh_pg.errors import InputError
from foh_pg.watcher.counters import Counters
from foh_pg.watcher.hosts import answers_to
from foh_pg.watcher.patient_server import PatientServer

log = logging.getLogger(__name__)

TEXT = "text/plain; version=0.0.4; charset=utf-8"

# Whether the watcher is well, and what it says of itself.
Health = Callable[[], tuple[bool, dict[str, Any]]]


@dataclass(frozen=True)
class Answer:
    """What a path is answered with."""

    status: int
    kind: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


# The pages, by path; None for a path that has none.
Pages = Callable[[str], Answer | None]

# No cache keeps an answer, no other site reads it, and no browser takes it for another type.
EVERY = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


@contextmanager
def serving(
    host: str,
    port: int,
    counters: Counters,
    health: Health,
    pages: Pages | None = None,
    names: Collection[str] = (),
) -> Iterator[int]:
    """Serve as long as the block lasts; gives the port, which the system chooses where it is 0.

    `pages`: answers all other paths. `names`: names of this service besides addresses and names without a
    dot; see `answers_to`.
    """

    def respond(path: str, given: str | None) -> Answer:
        if not answers_to(given, names):
            said = f"this is not {given}; foh-pg watch --metrics-allow-host makes it answer to a name\n"
            return Answer(421, TEXT, said)
        if path == "/metrics":
            return Answer(200, TEXT, counters.text())
        if path == "/healthz":
            well, told = health()
            return Answer(200 if well else 503, "application/json", json.dumps(told) + "\n")
        found = None if pages is None else pages(path)
        return found or Answer(404, TEXT, "there are /metrics and /healthz" + (" and /\n" if pages else "\n"))

    class Handler(BaseHTTPRequestHandler):
        server_version = "foh-pg"
        sys_version = ""
        # Somebody who connects and says nothing must not keep a thread for ever.
        timeout = 10

        def do_GET(self) -> None:
            try:
                answer = respond(self.path.partition("?")[0], self.headers.get("Host"))
            except Exception:
                log.exception("%s could not be answered", self.path)
                answer = Answer(500, TEXT, "this failed; the log of the watcher says why\n")
            body = answer.text.encode()
            self.send_response(answer.status)
            headers = {"Content-Type": answer.kind, "Content-Length": str(len(body)), **EVERY}
            for name, value in {**headers, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are no news."""

    try:
        server = PatientServer((host, port), Handler)
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
