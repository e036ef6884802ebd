"""Keys of several columns, from the table to the client."""

from __future__ import annotations

from typing import Any

import psycopg

from foh_pg.updater import rebuild, update
from tests.support.postgres import Database

ROWS = """
INSERT INTO items SELECT n %% 5, n / 5, ARRAY[cos(n), sin(n), cos(2 * n)]::extensions.vector, ARRAY['t' || n %% 3]
FROM generate_series(%(first)s::int, %(last)s) n
"""


def new_table(connection: psycopg.Connection[Any], **arguments: Any) -> None:
    connection.execute(
        """CREATE TABLE items (tenant_id int, id bigint, embedding extensions.vector(3), tags text[],
                               PRIMARY KEY (tenant_id, id))"""
    )
    connection.execute(
        """SELECT foh.create_index('idx', 'items', 'embedding', labels => 'tags', bits => 16,
                                   options => '{"exact_rows": 0}')"""
    )


def test_smoke(connection: psycopg.Connection[Any], database: Database) -> None:
    new_table(connection)
    connection.execute(ROWS, {"first": 1, "last": 300})
    nearest = """SELECT tenant_id, id FROM items ORDER BY embedding OPERATOR(extensions.<=>) '[1,0,1]', 1, 2 LIMIT 10"""
    search = "SELECT tenant_id, id FROM foh.idx_search('[1,0,1]', 10, labels => 0, recall => %s)"
    exact = connection.execute(nearest).fetchall()
    assert connection.execute(search, [1]).fetchall() == exact
    assert len(connection.execute(search, [0.9]).fetchall()) == 10
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    update(database.dsn(), "idx")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    assert len(connection.execute(search, [0.9]).fetchall()) == 10
    connection.execute(ROWS, {"first": 301, "last": 400})
    connection.execute("UPDATE items SET tenant_id = tenant_id + 10 WHERE id < 20")
    connection.execute("DELETE FROM items WHERE tenant_id = 3")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    update(database.dsn(), "idx")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    rebuild(database.dsn(), "idx")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
