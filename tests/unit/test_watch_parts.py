from __future__ import annotations

import http.client
from types import SimpleNamespace

import pytest
from prometheus_client import generate_latest

from foh_pg.errors import InputError
from foh_pg.runs.run import Run
from foh_pg.watcher import watch
from foh_pg.watcher.counters import Counters
from foh_pg.watcher.exposition import serving
from foh_pg.watcher.watch import pause


def text_of(counters: Counters) -> str:
    return generate_latest(counters.registry).decode()


def test_waits_double_up_to_the_longest_and_never_agree() -> None:
    waits = [[pause(failures, 60) for failures in range(1, 2000)] for _ in range(2)]
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
    text = text_of(counters)
    assert 'foh_rows_total{index="a"} 10.0\n' in text
    assert 'foh_phase_seconds_total{index="a",phase="encode again"} 3.0\n' in text
    assert 'foh_models_refused_total{index="a"} 2.0\n' in text
    assert 'foh_run_errors_total{index="a"} 0.0\n' in text


def test_an_index_that_is_gone_is_counted_no_longer() -> None:
    counters = Counters()
    counters.start("a")
    counters.start("b")
    counters.add("foh_connection_errors_total")
    counters.forget("a")
    assert 'index="a"' not in text_of(counters)
    assert 'index="b"' in text_of(counters)
    assert "foh_connection_errors_total 1" in text_of(counters)


def ask(port: int, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_metrics_and_health_over_http() -> None:
    counters = Counters()
    counters.add("foh_rows_total", 7, index="a")
    well = [True]
    with serving("127.0.0.1", 0, counters, lambda: (well[0], {"status": "so"})) as port:
        assert ask(port, "/metrics")[:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert 'foh_rows_total{index="a"} 7' in ask(port, "/metrics?x=1")[2]
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
    text = text_of(counters)
    assert 'foh_evaluated_p10{index="a",way="index"} 0.5\n' in text
    assert 'foh_evaluated_recall10{index="a",way="exact"} 1.0\n' in text
    assert 'foh_evaluated_timestamp_seconds{index="a"} 1e+09\n' in text


def test_a_fault_of_ours_in_one_index_does_not_end_the_watcher(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def update(connection: object, name: str, **settings: object) -> Run:
        if name == "a":
            raise ZeroDivisionError("division by zero")
        return Run(name, "update", 1, 2)

    monkeypatch.setattr(watch, "update", update)
    watcher = watch.Watcher(lambda: SimpleNamespace(closed=False), watch.Settings())  # type: ignore[arg-type, return-value]
    found = {"status": "ready", "waits": True, "problem": None, "show": lambda counters: None}
    streams = [SimpleNamespace(name=name, **found) for name in ("a", "b")]
    monkeypatch.setattr(watch, "poll", lambda connection, names: streams)
    watcher._round()
    assert watcher.counters.get("foh_run_errors_total", index="a") == 1
    assert watcher.counters.get("foh_runs_total", index="b") == 1
    assert watcher.health()[1]["indexes"] == {"a": "division by zero", "b": "ok"}
    assert "in update" in caplog.text
