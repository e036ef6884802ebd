"""Keys that are long, and keys that are no text in any encoding."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.arrays.flat import flatten, unflatten
from foh_pg.quality.evaluate import evaluate
from foh_pg.schema.migrations import migrate
from foh_pg.tables.keys import Keys
from foh_pg.updater import rebuild, update
from tests.support.postgres import Database, Server, install_pgvector


@pytest.mark.one_version
@pytest.mark.parametrize("labels", [None, "tags"])
def test_the_state_stays_small(
    connection: psycopg.Connection[Any], database: Database, labels: str | None
) -> None:
    connection.execute(
        "CREATE TABLE items (id text PRIMARY KEY, embedding extensions.vector(3), tags text[])"
    )
    connection.execute(
        "SELECT foh.create_index('idx', 'items', 'embedding', labels => %s, bits => 16)", [labels]
    )
    connection.execute(
        """INSERT INTO items SELECT 'k' || n, ARRAY[cos(n), sin(n), n % 17]::extensions.vector, ARRAY['a']
           FROM generate_series(1, 3000) n"""
    )
    update(database.dsn(), "idx")
    connection.execute("INSERT INTO items VALUES (repeat('x', 50000), '[1,2,3]', '{a}')")
    size = "SELECT sum(length(data)) FROM foh.model_state WHERE version = 0"
    for n in range(3):
        connection.execute("INSERT INTO items VALUES (%s, '[1,2,3]', '{a}')", [f"more {n}"])
        update(database.dsn(), "idx")
        stored = connection.execute(size).fetchone()
        assert stored is not None
        # 3 000 short keys, some of them twice, and the long one: in an array of one width they took 600 MB.
        assert stored[0] < 500_000
    if labels is None:
        # Nobody will learn from them: none waits.
        assert stored[0] < 100_000
    connection.execute("DELETE FROM items WHERE length(id) > 100")
    update(database.dsn(), "idx")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("text", ["", "a", "ü" * 100, "k 1"]),
        ("character varying", []),
        ("bigint", [3, -(2**62), 0]),
    ],
)
def test_come_back_as_they_were(kind: str, keys: list[Any]) -> None:
    known = Keys(kind)
    saved = flatten({"some": known.pack(known.read(keys) if keys else known.empty())})
    assert all(array.dtype != object for array in saved.values())
    assert known.unpack(unflatten(saved)["some"]).tolist() == keys


@pytest.mark.one_version(but={"kind": ["text"], "triggers": ["statement"]})
@pytest.mark.parametrize("triggers", ["statement", "row"])
@pytest.mark.parametrize("kind", ["text", "varchar"])
def test_as_long_as_a_key_can_be(
    connection: psycopg.Connection[Any], database: Database, kind: str, triggers: str
) -> None:
    """What PostgreSQL takes as a key of the table, the index takes too; nothing in these letters can be compressed."""
    connection.execute(f"CREATE TABLE items (id {kind} PRIMARY KEY, embedding extensions.vector(3))")
    connection.execute(
        "SELECT foh.create_index('idx', 'items', 'embedding', bits => 16, options => %s)",
        [Jsonb({"triggers": triggers, "exact_rows": 0})],
    )
    drawn = np.random.default_rng(0)
    keys = ["".join(map(chr, drawn.integers(33, 127, length))) for length in range(2680, 2693)]
    insert = "INSERT INTO items VALUES (%s, '[1,2,3]')"
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="items_pkey"):
        connection.execute(insert, [keys[-1] + "x"])
    for key in keys:
        connection.execute(insert, [key])
    connection.execute("UPDATE items SET embedding = '[3,2,1]' WHERE length(id) % 2 = 0")
    assert found(connection) == set(keys)
    update(database.dsn(), "idx")
    connection.execute("UPDATE items SET embedding = '[1,2,1]'")
    connection.execute("UPDATE items SET embedding = '[2,2,1]'")
    connection.execute("DELETE FROM items WHERE length(id) = 2690")
    assert found(connection) == set(keys) - {keys[10]}
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    update(database.dsn(), "idx")
    assert found(connection) == set(keys) - {keys[10]}
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []


@pytest.mark.one_version
@pytest.mark.parametrize("triggers", ["statement", "row"])
def test_as_long_as_a_part_of_a_key_can_be(
    connection: psycopg.Connection[Any], database: Database, triggers: str
) -> None:
    """PostgreSQL packs each column of a key by itself, and a row of ours as a whole: that may need more room."""
    connection.execute(
        """CREATE TABLE items (name text, id varchar, embedding extensions.vector(3), price int,
                               PRIMARY KEY (name, id))"""
    )
    connection.execute(
        "SELECT foh.create_index('idx', 'items', 'embedding', bits => 16, include => '{price}', options => %s)",
        [Jsonb({"triggers": triggers, "exact_rows": 0})],
    )
    drawn = np.random.default_rng(0)
    letters = ["".join(map(chr, drawn.integers(33, 127, length))) for length in range(2650, 2685)]
    keys = [("", each) for each in letters] + [(letters[0][:1500], "x" * 5000)]
    insert = "INSERT INTO items VALUES (%s, %s, '[1,2,3]', 1)"
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="items_pkey"):
        connection.execute(insert, ["", letters[-1] + "x" * 30])
    for key in keys:
        connection.execute(insert, key)

    def verify(gone: int = 0) -> None:
        rows = connection.execute("SELECT name, id FROM foh.idx_search('[1,2,3]', 100)").fetchall()
        assert sorted(rows) == sorted(keys[gone:])
        assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []

    verify()
    update(database.dsn(), "idx")
    verify()
    connection.execute("UPDATE items SET embedding = '[3,2,1]' WHERE length(id) % 2 = 0")
    connection.execute("UPDATE items SET price = 2")
    connection.execute("DELETE FROM items WHERE id = %s", [letters[0]])
    verify(gone=1)
    update(database.dsn(), "idx")
    verify(gone=1)
    rebuild(database.dsn(), "idx")
    verify(gone=1)


def found(connection: psycopg.Connection[Any]) -> set[Any]:
    return {key for (key,) in connection.execute("SELECT id FROM foh.idx_search('[1,2,3]', 100)")}


@pytest.mark.one_version
@pytest.mark.parametrize("given", ["dsn", "connection"])
def test_bytes_that_are_no_letters(server: Server, given: str) -> None:
    """A database in SQL_ASCII holds any bytes in keys, labels and names, and an update passes them on."""
    name = f"foh_test_{secrets.token_hex(6)}"
    server.execute(
        sql.SQL(
            "CREATE DATABASE {} OWNER installer ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ).format(sql.Identifier(name))
    )
    database = Database(server, name)
    try:
        superuser = database.connect(None)
        install_pgvector(superuser)
        superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
        migrate(superuser, owner="app_owner")
        owner = database.connect(client_encoding="utf8")
        owner.execute("CREATE TABLE items (id text PRIMARY KEY, embedding extensions.vector(8), tags text[])")
        owner.execute(
            """SELECT foh.create_index('size', 'items', 'embedding', labels => 'tags', bits => 16,
                                       options => '{"learn_rows": 20, "held_out": 0.3, "exact_rows": 0}')"""
        )
        owner.execute(
            """INSERT INTO items SELECT n || 'ü', ARRAY[cos(2 * (n % 3)), sin(2 * (n % 3)), sin(n), cos(3 * n), sin(5 * n), cos(7 * n),
                                       sin(11 * n), cos(13 * n)]::extensions.vector, ARRAY['ö' || n % 3] FROM generate_series(1, 200) n"""
        )
        raw = database.connect(client_encoding="sql_ascii")
        raw.execute(
            rb"INSERT INTO items VALUES (E'\xff\xfe', '[1,2,3,4,5,6,7,8]', ARRAY[E't\xe9']), (E'caf\xe9', '[1,2,4,4,5,6,7,8]', ARRAY[E't\xe9'])"
        )
        target: Any = database.dsn() if given == "dsn" else owner
        update(target, "size")
        rebuild(target, "size")
        evaluate(target, "size")
        raw.execute(rb"UPDATE items SET embedding = '[3,2,1,4,5,6,7,8]' WHERE id = E'caf\xe9'")
        raw.execute(rb"DELETE FROM items WHERE id = E'\xff\xfe'")
        update(target, "size")
        assert owner.info.parameter_status("client_encoding") == "UTF8"
        assert owner.execute("SELECT * FROM foh.check('size')").fetchall() == []
        assert owner.execute("SELECT count(*) FROM foh.size_item").fetchone() == (201,)
        assert owner.execute("SELECT count(*) FROM foh.size_stream").fetchone() == (0,)
        labels = raw.execute('SELECT name FROM foh.label ORDER BY name COLLATE "C"').fetchall()
        assert labels == [(b"t\xe9",), ("ö0".encode(),), ("ö1".encode(),), ("ö2".encode(),)]
        # Which rows never train, SQL and Python say alike.
        held = owner.execute(
            "SELECT count(*) FROM foh.size_rows(held_out => (0.3 * 2 ^ 32)::bigint)"
        ).fetchone()
        keys = [f"{n}ü".encode().decode("latin-1") for n in range(1, 201)] + ["caf\xe9"]
        known = Keys("text", "latin-1")
        assert held == (int((known.shares(known.read(keys)) < 0.3).sum()),)
    finally:
        database.drop()
