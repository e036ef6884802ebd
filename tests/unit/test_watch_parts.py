from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest

from foh_pg.errors import InputError
from foh_pg.runs.run import Run
from foh_pg.watcher import watch
from foh_pg.watcher.backoff import Backoff
from foh_pg.watcher.counters import Counters
from foh_pg.watcher.exposition import Answer, serving
from foh_pg.watcher.hosts import answers_to
from foh_pg.watcher.patient_server import PatientServer


def test_waits_double_up_to_the_cap_and_never_agree() -> None:
    two = [Backoff(1, 60, random.Random(seed)) for seed in (1, 2)]
    waits = [[backoff.fail() for _ in range(2000)] for backoff in two]
    for i, wait in enumerate(waits[0]):
        whole = min(60, 2 ** min(i, 10))
        assert whole / 2 <= wait <= whole
    assert waits[0][:5] != waits[1][:5]


def test_a_run_is_counted_by_index_and_phase() -> None:
    counters = Counters()
    counters.start("a")
    run = Run("a", "update", 1, 2, rows=5, lists=2, rows_encoded=9, phases={"read": 0.5, "encode again": 1.5})
    run.metrics["refused"] = True
    counters.count(run)
    counters.count(run)
    text = counters.text()
    assert 'foh_rows_total{index="a"} 10.0\n' in text
    assert 'foh_phase_seconds_total{index="a",phase="encode again"} 3.0\n' in text
    assert 'foh_models_refused_total{index="a"} 2.0\n' in text
    assert 'foh_run_errors_total{index="a"} 0.0\n' in text


def test_an_index_that_is_gone_is_counted_no_longer() -> None:
    counters = Counters()
    counters.start("a")
    counters.start("b")
    counters.add("foh_connection_errors_total")
    counters.keep(["b"])
    assert 'index="a"' not in counters.text()
    assert 'index="b"' in counters.text()
    assert "foh_connection_errors_total 1" in counters.text()


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_metrics_and_health_over_http() -> None:
    counters = Counters()
    counters.add("foh_rows_total", 7, index="a")
    well = [True]
    with serving("127.0.0.1", 0, counters, lambda: (well[0], {"status": "so"})) as port:
        assert ask(port, "/metrics")[:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert 'foh_rows_total{index="a"} 7' in ask(port, "/metrics?x=1")[2]
        assert ask(port, "/metrics", "HEAD")[2] == ""
        assert ask(port, "/healthz")[0] == 200
        well[0] = False
        assert ask(port, "/healthz")[0] == 503
        assert ask(port, "/")[0] == 404
        with (
            pytest.raises(InputError, match=f"127.0.0.1:{port}"),
            serving("127.0.0.1", port, counters, lambda: (True, {})),
        ):
            pass
    with pytest.raises(OSError, match="refused"):
        ask(port, "/metrics")


def test_what_an_evaluation_found_is_shown_as_far_as_it_goes() -> None:
    counters = Counters()
    # As versions before 0.2 measured: no recall.
    counters.show("a", 3, 1e9, {"queries": 5, "index": {"p10": 0.5}, "exact": {"p10": 0.4, "recall10": 1}})
    text = counters.text()
    assert 'foh_evaluated_p10{index="a",way="index"} 0.5\n' in text
    assert 'foh_evaluated_recall10{index="a",way="exact"} 1.0\n' in text
    assert 'foh_evaluated_timestamp_seconds{index="a"} 1e+09\n' in text
    assert "random" not in text.replace("random hyperplanes", "")


@pytest.mark.parametrize(
    ("host", "well"),
    [
        *(
            (host, True)
            for host in ("127.0.0.1", "10.1.2.3:80", "[::1]:9187", "LOCALHOST:1", "a.localhost.", "w")
        ),
        *((host, True) for host in ("foh.example.com", "FOH.example.com:9187")),
        *((host, False) for host in ("evil.com", "127.0.0.1.evil.com", "1.2.3.4.5:80", "x.foh.example.com")),
        *(
            (host, False)
            for host in ("", " ", "a b", "evil.com@127.0.0.1", "evil.com/", "[::1", "127.0.0.1:x")
        ),
        ("evil%2ecom", False),
        ("evil%2Ecom:9187", False),
        ("[e%2eb]", False),
        ("[abc]", False),
        ("evil\u3002com", False),
        ("evil,com", False),
    ],
)
def test_hosts(host: str, well: bool) -> None:
    assert answers_to(host, ["foh.example.com"]) is well


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def patient(**limits: float) -> Iterator[int]:
    server = PatientServer(("127.0.0.1", 0), Hello, **limits)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def greet(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    return connection.getresponse().status


def test_those_who_connect_and_say_nothing_keep_nobody_out() -> None:
    with patient(most=4, patience=600) as port:
        silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(12)]
        assert greet(port) == 200
        # Of twelve that say nothing four stay at the most, and the one that was answered took a place.
        for one in silent[:8]:
            assert one.recv(1) == b""
        for one in silent:
            one.close()


def drip(slow: socket.socket) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        slow.sendall(b"G")
        time.sleep(0.02)


def test_a_client_that_sends_a_letter_now_and_then_is_sent_away() -> None:
    with patient(most=4, patience=0.3) as port:
        slow = socket.create_connection(("127.0.0.1", port), timeout=30)
        with pytest.raises(ConnectionError):
            drip(slow)
        assert greet(port) == 200


def test_an_error_of_a_page_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def pages(path: str) -> Answer:
        raise ZeroDivisionError("secret")

    with serving("127.0.0.1", 0, Counters(), lambda: (True, {}), pages) as port:
        status, _, text = ask(port, "/")
    assert (status, "secret" in text) == (500, False)
    assert "secret" in caplog.text


def test_a_fault_of_ours_in_one_index_does_not_end_the_watcher(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def update(connection: object, name: str, **settings: object) -> Run:
        if name == "a":
            raise ZeroDivisionError("division by zero")
        return Run(name, "update", 1, 2)

    monkeypatch.setattr(watch, "update", update)
    watcher = watch.Watcher(lambda: SimpleNamespace(closed=False), watch.Settings())  # type: ignore[arg-type, return-value]
    streams = [SimpleNamespace(name=name, status="ready", waits=True) for name in ("a", "b")]
    monkeypatch.setattr(watcher, "_poll", lambda: streams)
    watcher._round()
    assert watcher.counters.get("foh_run_errors_total", index="a") == 1
    assert watcher.counters.get("foh_runs_total", index="b") == 1
    assert watcher.health()[1]["indexes"] == {"a": "division by zero", "b": "ok"}
    assert "in update" in caplog.text
