"""A dictionary of very many labels that no ANALYZE has seen: each label of a row is one lookup."""

from __future__ import annotations

import pytest

from foh_pg.updater import update
from tests.support.postgres import Database
from tests.support.recorded import Connection, create_index, create_table, insert, text, vectors

X = vectors(4)
LABELS, ROWS = 20_000, 200

# What this session has read of the dictionary.
READ = """SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int FROM pg_stat_xact_user_tables
          WHERE schemaname = 'foh' AND relname = 'label'"""

FILL = "INSERT INTO items SELECT i, %s::extensions.vector, ARRAY['l' || i, 'l' || i * 7, 'l' || i] FROM generate_series(1, %s) i"


def read(connection: Connection, statement: str, values: list[object]) -> int:
    """How many labels a statement reads."""
    with connection.transaction():
        (before,) = connection.execute(READ).fetchone() or (0,)
        connection.execute(statement, values)
        (after,) = connection.execute(READ).fetchone() or (0,)
    return int(after - before)


@pytest.fixture(params=["never analyzed", "analyzed when empty", "analyzed with one label", "analyzed"])
def many_labels(connection: Connection, superuser: Connection, request: pytest.FixtureRequest) -> Connection:
    """A session whose plans are older than the labels."""
    create_table(connection)
    create_index(connection, labels="tags")
    superuser.execute("ALTER TABLE foh.label SET (autovacuum_enabled = off)")
    add = "INSERT INTO foh.label (index, label, name, projection) SELECT id, n, 'l' || n, %s FROM foh.index, generate_series(%s::int, %s) n"
    projection = str([0.5] * 32)
    if request.param == "analyzed when empty":
        superuser.execute("VACUUM ANALYZE foh.label")
    elif request.param == "analyzed with one label":
        superuser.execute(add.encode(), [projection, -1, -1])
        superuser.execute("VACUUM ANALYZE foh.label")
    for n in range(6):
        insert(connection, -1 - n, X[0])
    superuser.execute(add.encode(), [projection, 0, LABELS])
    if request.param == "analyzed":
        superuser.execute("VACUUM ANALYZE foh.label")
    return connection


@pytest.mark.one_version(but={"many_labels": ["never analyzed", "analyzed"]})
def test_a_write_looks_up_the_labels_of_its_rows(many_labels: Connection) -> None:
    connection = many_labels
    assert read(connection, FILL, [text(X[1]), ROWS]) <= 2 * ROWS
    assert read(connection, "UPDATE items SET tags = tags || '{l5}' WHERE id > 0", []) <= 3 * ROWS


@pytest.mark.one_version(but={"many_labels": ["never analyzed", "analyzed"]})
def test_check_and_repair_look_up_the_labels_of_their_rows(
    many_labels: Connection, database: Database
) -> None:
    connection = many_labels
    connection.execute(FILL, [text(X[1]), ROWS])
    update(database.dsn(), "idx")
    for call in ("foh.check('idx')", "foh.repair('idx')"):
        assert 0 < read(connection, f"SELECT * FROM {call}", []) <= 2 * ROWS
