"""A new version of our SQL gives a function of an index other arguments: the old one goes, or says why it cannot."""

from __future__ import annotations

import pytest
from psycopg import errors

from tests.support.postgres import Database
from tests.support.recorded import Connection, create_index, create_table, text, vectors

QUERY = text(vectors(1)[0])
CALL = "SELECT * FROM foh.idx_candidates(%s::extensions.vector)"
VIEW = "CREATE VIEW {name} AS SELECT c.id FROM items, foh.idx_candidates(embedding) c"
SIGNATURES = "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'idx_candidates'"
# As a migration would, with the rights of whom schema foh belongs to.
CHANGE = """
UPDATE foh.template SET body = replace(body, 'probes int DEFAULT NULL)', 'probes int DEFAULT NULL, salt int DEFAULT 0)')
WHERE name = 'candidates'
"""
REGENERATE = "SELECT foh._make_functions(i) FROM foh.index i"


@pytest.fixture
def migrator(database: Database) -> Connection:
    """Who runs migrations, as the owner of schema foh."""
    return database.connect("app_owner")


@pytest.fixture
def changed(connection: Connection, migrator: Connection) -> Connection:
    create_table(connection)
    create_index(connection)
    connection.execute("GRANT SELECT ON items TO app_reader, app_writer")
    connection.execute("SELECT foh.grant('idx', reader => 'app_reader')")
    migrator.execute(CHANGE)
    return connection


def test_one_function_of_a_name_is_left(
    changed: Connection, migrator: Connection, database: Database
) -> None:
    migrator.execute(REGENERATE)
    assert changed.execute(SIGNATURES).fetchall() == [
        ("foh.idx_candidates(extensions.vector,integer,integer)",)
    ]
    changed.execute(CALL, [QUERY])
    # Nobody else may, and who could before still can.
    database.connect("app_reader").execute(CALL, [QUERY])
    with pytest.raises(errors.InsufficientPrivilege):
        database.connect("app_writer").execute(CALL, [QUERY])


def test_made_again_unchanged_all_stay(connection: Connection, migrator: Connection) -> None:
    create_table(connection)
    create_index(connection)
    all_of_it = "SELECT oid FROM pg_proc WHERE proname LIKE 'idx%' ORDER BY oid"
    before = connection.execute(all_of_it).fetchall()
    migrator.execute(REGENERATE)
    assert connection.execute(all_of_it).fetchall() == before


def test_a_view_on_it_is_named_and_kept(changed: Connection, migrator: Connection) -> None:
    changed.execute(VIEW.format(name="nearby"))
    with pytest.raises(errors.DependentObjectsStillExist) as caught:
        migrator.execute(REGENERATE)
    diagnosis = caught.value.diag
    assert diagnosis.message_primary is not None
    assert "foh.idx_candidates(extensions.vector,integer) is replaced by" in diagnosis.message_primary
    assert "view nearby depends on" in (diagnosis.message_detail or "").replace("public.", "")
    assert "CASCADE" not in (diagnosis.message_hint or "")
    assert changed.execute(SIGNATURES).fetchall() == [("foh.idx_candidates(extensions.vector,integer)",)]
    changed.execute("DROP VIEW nearby")
    migrator.execute(REGENERATE)
    changed.execute(VIEW.format(name="nearby"))
