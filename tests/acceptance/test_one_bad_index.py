"""An index that somebody broke is one line of every tool, and the others are shown as ever."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.types.json import Jsonb

from foh_pg.cli import app
from tests.support.postgres import Database
from tests.support.watching import Watch

Connection = psycopg.Connection[Any]

# What a role that may write in foh can do to one index, and what the tools say of it.
BROKEN = {
    "a function": ("DROP FUNCTION foh.bad_rows", "functions of the index were dropped"),
    "the centers": ("DROP TABLE foh.bad_center CASCADE", "tables of the index in foh were dropped"),
    "the stream": ("DROP TABLE foh.bad_stream CASCADE", "tables of the index in foh were dropped"),
    "a column": ("ALTER TABLE foh.bad_stream DROP COLUMN written_at", "it cannot be read"),
}
STRANGE = {
    "a text": {"index": "boo", "map": "boo", "notes": 3},
    "a list": {
        "index": [1],
        "exact": 2,
        "kept": {"lists": "x"},
        "map": [1],
        "flipped": {},
        "lag_seconds": "x",
    },
    "numbers": {"index": {"p10": 10**400, "map100": True}, "map": 10**400, "notes": [1]},
}


@pytest.fixture
def two(connection: Connection) -> Connection:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, e extensions.vector(3), l text)")
    for name in ("bad", "good"):
        connection.execute("SELECT foh.create_index(%s, 't', 'e', labels => 'l', bits => 16)", [name])
    connection.execute(
        "INSERT INTO t SELECT i, ARRAY[i, 1, 2]::real[]::extensions.vector, i % 2 FROM generate_series(1, 20) i"
    )
    return connection


@pytest.fixture
def run(database: Database) -> Callable[..., Any]:
    def invoke(*arguments: str, role: str = "app_owner") -> Any:
        result = CliRunner().invoke(app, [*arguments, "--json", f"--dsn={database.dsn(role)}"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def watch(database: Database) -> Iterator[Callable[..., Watch]]:
    started: list[Watch] = []

    def start() -> Watch:
        started.append(Watch(database.dsn(), "--all"))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.mark.parametrize("what", BROKEN)
class TestBroken:
    def test_commands(
        self, two: Connection, superuser: Connection, run: Callable[..., Any], what: str
    ) -> None:
        statement, said = BROKEN[what]
        superuser.execute(statement)
        bad, good = run("status")
        assert said in bad["status"]
        assert (good["name"], good["stream"]) == ("good", 20)
        assert said in bad["problems"][0]
        assert good["problems"] == []
        found = [finding for finding in run("doctor")["findings"] if finding["index"] == "bad"]
        assert any(said in finding["found"] for finding in found), found

    def test_watch(
        self, two: Connection, superuser: Connection, watch: Callable[..., Watch], what: str
    ) -> None:
        superuser.execute(BROKEN[what][0])
        watcher = watch()
        watcher.wait(lambda: watcher.metric('foh_index_rows{index="good"}') == 20)

        def told(index: str) -> str:
            return str(json.loads(watcher.get("/healthz")[1])["indexes"][index])

        watcher.wait(lambda: told("bad") != "ok")
        assert "bad" in told("bad") or BROKEN[what][1] in told("bad")
        assert told("good") == "ok"
        assert watcher.end() == 0
        assert "Traceback" not in watcher.said


@pytest.mark.parametrize("what", STRANGE)
def test_strange_metrics(
    two: Connection,
    run: Callable[..., Any],
    watch: Callable[..., Watch],
    database: Database,
    what: str,
) -> None:
    """Who may update an index may write any metrics, and constraints cannot tell all of them."""
    for kind in ("evaluate", "update"):
        two.execute(
            """INSERT INTO foh.run (index, kind, from_version, finished_at, phases, metrics)
               SELECT id, %s, 1, now(), '{"read": 1}', %s FROM foh.index WHERE name = 'bad'""",
            [kind, Jsonb(STRANGE[what])],
        )
    [bad] = run("status", "bad")
    assert all(point["map"] is None for point in bad["quality"])
    watcher = watch()
    watcher.wait(lambda: watcher.metric('foh_index_rows{index="good"}') == 20)
    assert watcher.end() == 0
    assert not re.search("Traceback|ERROR", watcher.said)
    status = CliRunner().invoke(app, ["status", "bad", f"--dsn={database.dsn()}"])
    assert status.exit_code == 0, status.stderr


@pytest.mark.parametrize(
    "values",
    [
        "started_at = 'infinity'",
        "started_at = '12000-01-01'",
        "finished_at = '-infinity'",
        "stale = 'NaN'",
        "rows = -1",
        "kind = 'boo'",
        "metrics = '\"boo\"'",
        "phases = '[1]'",
        'phases = \'{"read": "boo"}\'',
        "phases = '{\"read\": 1e400}'",
    ],
)
def test_what_a_run_cannot_be(two: Connection, values: str) -> None:
    two.execute("INSERT INTO foh.run (index, kind) SELECT id, 'update' FROM foh.index")
    with pytest.raises(psycopg.errors.CheckViolation):
        two.execute(f"UPDATE foh.run SET {values}".encode())


def test_an_entry_is_written_at_some_time(two: Connection) -> None:
    """PostgreSQL 16 cannot tell how long ago infinity is."""
    with pytest.raises(psycopg.errors.CheckViolation):
        two.execute("UPDATE foh.bad_stream SET written_at = '-infinity'")
