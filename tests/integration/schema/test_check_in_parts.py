"""foh.check part by part, as the command line runs it."""

from __future__ import annotations

import importlib
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from foh_pg.updater import build
from tests.support.digits import create_index, create_table, insert
from tests.support.postgres import Database


def break_index(database: Database) -> None:
    """An index with violations of several kinds."""
    connection = database.connect()
    create_table(connection)
    insert(connection, range(400))
    create_index(connection)
    build(database.dsn(), "digits")
    connection.execute("DELETE FROM foh.digits_item WHERE key % 50 = 0")
    connection.execute(
        "UPDATE foh.digits_center SET length = length + 1 WHERE center = (SELECT min(center) FROM foh.digits_center)"
    )
    connection.execute("ALTER TABLE digit DISABLE TRIGGER foh_digits_delete")
    connection.execute("DELETE FROM digit WHERE id % 40 = 1")
    connection.execute("ALTER TABLE digit ENABLE TRIGGER foh_digits_delete")


pytestmark = pytest.mark.prepared(by=break_index)


def test_parts_together_find_what_the_whole_finds(connection: psycopg.Connection[Any]) -> None:
    whole = connection.execute("SELECT * FROM foh.check('digits')").fetchall()
    assert len({problem for _, problem, *_ in whole}) >= 3
    parts = [
        row
        for part in range(5)
        for row in connection.execute("SELECT * FROM foh.check('digits', %s, 5)", [part])
    ]
    assert sorted(parts, key=repr) == sorted(whole, key=repr)


@pytest.mark.one_version
def test_the_command_line_shows_how_far_it_is(
    connection: psycopg.Connection[Any], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("foh_pg.cli.check")
    monkeypatch.setattr(module, "ROWS_PER_PART", 100)
    seen: list[tuple[str, int, int]] = []
    with psycopg.connect(database.dsn(), autocommit=True, row_factory=dict_row) as other:
        found = module.violations(other, "digits", lambda *step: seen.append(step))
    assert seen == [("check", part, 5) for part in range(5)]
    whole = connection.execute("SELECT count(*) FROM foh.check('digits')").fetchone()
    assert whole == (len(found),)


@pytest.mark.one_version
@pytest.mark.parametrize("part", ["-1, 2", "2, 2", "0, 0", "NULL, 1"])
def test_a_part_that_there_is_not(connection: psycopg.Connection[Any], part: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="numbered from 0"):
        connection.execute(f"SELECT * FROM foh.check('digits', {part})")
