from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from foh_pg.cli import update
from foh_pg.runs.session import Session
from tests.acceptance.test_cli import CommandLine
from tests.support.digits import create_index, create_table, insert, violations
from tests.support.postgres import Database


@pytest.fixture
def cli(database: Database) -> CommandLine:
    return CommandLine(database)


@pytest.fixture
def built(cli: CommandLine, connection: psycopg.Connection[Any]) -> CommandLine:
    create_table(connection)
    insert(connection, range(400))
    create_index(connection)
    assert "400 rows" in cli("build", "digits").stderr
    return cli


def test_the_commands_of_an_updater(built: CommandLine, connection: psycopg.Connection[Any]) -> None:
    assert "nothing to do" in built("update", "digits").stderr
    insert(connection, range(400, 500))
    (run,) = json.loads(built("update", "--all", "--json").stdout)
    assert (run["index"], run["rows"], run["error"]) == ("digits", 100, None)
    assert "rebuild to version 4" in built("build", "digits", "--again").stderr
    assert "pass one of them" in built("build", "digits", "--again", "--version=2", code=2).stderr
    assert "rollback to version 5" in built("build", "digits", "--version=2").stderr
    insert(connection, range(500, 510))
    assert "510 encoded" in built("update", "digits", "--full").stderr
    assert violations(connection) == []


def test_a_busy_index_is_skipped(built: CommandLine, database: Database) -> None:
    other = Session(database.connect())
    other.lock(*other.one("SELECT id, name FROM foh.index"))
    assert "another updater" in built("update", "digits", code=4).stderr
    assert "another updater" in built("build", "digits", code=1).stderr


def test_usage(built: CommandLine) -> None:
    assert "--all" in built("update", code=2).stderr
    assert "--all" in built("update", "digits", "--all", code=2).stderr
    assert "no index" in built("update", "nothing", code=1).stderr


def test_an_index_that_is_not_built_is_no_failure_of_all(
    built: CommandLine, connection: psycopg.Connection[Any]
) -> None:
    connection.execute(
        "SELECT foh.create_index('second', source => 'digit', embedding => 'embedding', bits => 16)"
    )
    assert "'second' is not built yet" in built("update", "--all").stderr


def test_a_fault_of_ours_leaves_the_other_indexes_their_turn(
    built: CommandLine, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute("CREATE TABLE other (id int PRIMARY KEY, embedding extensions.vector(64))")
    connection.execute("SELECT foh.create_index('zz', source => 'other', embedding => 'embedding')")
    work = update.run_update

    def fail(target: Any, name: str, **settings: Any) -> Any:
        if name == "digits":
            raise ZeroDivisionError("division by zero")
        return work(target, name, **settings)

    monkeypatch.setattr(update, "run_update", fail)
    result = built("update", "--all", code=1)
    assert isinstance(result.exception, ZeroDivisionError)
    assert "index 'zz': nothing to do" in result.stderr
