"""Plans cached for one row of a small table serve many rows of a large one."""

from __future__ import annotations

import pytest

from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    create_table,
    entries,
    insert,
    problems,
    text,
    vectors,
)

X = vectors(10)
ROWS = 2000

# What this transaction has read so far, its own statements included.
READ = """SELECT coalesce(sum(seq_tup_read), 0)::int FROM pg_stat_xact_user_tables
          WHERE relname LIKE 'items%' OR relname IN ('tags', 'idx_stream', 'label', 'model', 'index')"""


@pytest.mark.parametrize("form", ["statement", "row"])
def test_nothing_is_scanned_for_each_row(connection: Connection, form: str) -> None:
    create_table(connection, more=", price int DEFAULT 0")
    connection.execute("CREATE TABLE tags (item int, tag text)")
    connection.execute("CREATE INDEX ON tags (item)")
    labels = {"labels": "tag", "labels_from": "tags", "labels_key": "item"}
    create_index(connection, **labels, include=["price"], options={"triggers": form})
    insert(connection, -1, X[1])
    connection.execute("INSERT INTO tags VALUES (-1, 'a')")
    # One page each, and the planner knows: a sequential scan looks best now.
    connection.execute("VACUUM ANALYZE items")
    connection.execute("VACUUM ANALYZE tags")
    statements = [
        "INSERT INTO items SELECT i, %(x)s::extensions.vector FROM generate_series(0, %(n)s) i",
        "INSERT INTO tags SELECT i, 'a' FROM generate_series(0, %(n)s) i",
        "UPDATE tags SET tag = 'b' WHERE item >= 0",
        "UPDATE items SET embedding = %(y)s WHERE id >= 0",
        "UPDATE items SET note = note + 1 WHERE id >= 0",
        "UPDATE items SET price = price + 1 WHERE id >= 0",
        "DELETE FROM tags WHERE item >= 0",
        "DELETE FROM items WHERE id >= 0",
    ]
    values = {"x": text(X[2]), "y": text(X[3])}
    for statement in statements * 2:
        connection.execute(statement, {**values, "n": 0})
    for statement in statements:
        with connection.transaction():
            connection.execute(statement, {**values, "n": ROWS})
            read = connection.execute(READ).fetchone()
        assert read is not None
        # The statement itself reads the table once, and dead rows with it; a scan a row would be millions.
        assert read[0] < 10 * ROWS, statement
    assert codes(connection).keys() == {-1}
    assert problems(connection) == []


@pytest.mark.parametrize(("kind", "deferred"), [("int", "off"), ("uuid", "on"), ("text", "off")])
def test_an_update_of_many_rows_after_one(connection: Connection, kind: str, deferred: str) -> None:
    """Old and new rows meet in a hash or a merge join: compared each with each, they would take minutes."""
    connection.execute(
        f"CREATE TABLE items (id {kind} PRIMARY KEY, embedding extensions.vector(8), tags text[], note int)"
    )
    create_index(connection, labels="tags")
    key = {"int": "i", "uuid": "gen_random_uuid()", "text": "'k' || i"}[kind]
    fill = f"INSERT INTO items SELECT {key}, %s::extensions.vector, '{{a}}', i FROM generate_series(%s::int, %s) i"
    connection.execute(fill, [text(X[1]), -1, -1])
    connection.execute("SELECT set_config('foh.defer', %s, false)", [deferred])
    for _ in range(3):
        connection.execute("UPDATE items SET note = note - 1")
        connection.execute("UPDATE items SET embedding = embedding OPERATOR(extensions.+) embedding")
    connection.execute("SET foh.defer = on")
    connection.execute(fill, [text(X[2]), 1, 40_000])
    connection.execute("SELECT set_config('foh.defer', %s, false)", [deferred])
    before = entries(connection)
    # A loop in a loop, which would take many minutes, is ended here; a join takes a second on an idle machine.
    connection.execute("SET statement_timeout = '120s'")
    connection.execute("UPDATE items SET note = note + 1")
    assert entries(connection) == before
    connection.execute("UPDATE items SET embedding = %s WHERE note %% 8000 = 1", [text(X[3])])
    connection.execute("UPDATE items SET note = note + 1, embedding = %s WHERE note < 0", [text(X[3])])
    assert len(entries(connection)) == len(before) + 5 + 1


def test_compiling_is_off(connection: Connection) -> None:
    """Before PostgreSQL 18 a disabled scan costs 10^10, far beyond what makes it compile every call."""
    create_table(connection)
    create_index(connection)
    settings = connection.execute("SELECT proconfig FROM pg_proc WHERE proname = 'idx_capture'").fetchone()
    assert settings is not None
    assert {"jit=off", "enable_seqscan=off", "plan_cache_mode=force_generic_plan"} <= set(settings[0])
