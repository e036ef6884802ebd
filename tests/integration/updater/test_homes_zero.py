"""The paper's pool: a list has the rows nearest to its center, and a row may be in none."""

from __future__ import annotations

from typing import Any

import psycopg

from foh_pg.updater import update
from tests.support.postgres import Database


def test_is_said_and_searches_are_complete(connection: psycopg.Connection[Any], database: Database) -> None:
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(3))")
    connection.execute(
        """SELECT foh.create_index('idx', 'items', 'embedding', bits => 16, homes => 0, neighbors => 5,
                                   options => '{"exact_rows": 0}')"""
    )
    assert any("a row may be in none" in message for message in said)
    connection.execute(
        """INSERT INTO items SELECT n, ARRAY[cos(n), sin(n), n % 17 / 10.0]::extensions.vector
           FROM generate_series(1, 600) n"""
    )
    update(database.dsn(), "idx")
    listed = connection.execute("SELECT count(DISTINCT u) FROM foh.idx_list l, unnest(l.ids) u").fetchone()
    assert listed is not None
    assert listed[0] < 600
    for k in (1, 10, 200, 600):
        found = connection.execute("SELECT id FROM foh.idx_search('[1,0,1]', %s)", [k]).fetchall()
        assert len(set(found)) == k
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []


def test_a_home_for_each_row_needs_no_word(connection: psycopg.Connection[Any]) -> None:
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(3))")
    connection.execute("SELECT foh.create_index('idx', 'items', 'embedding', bits => 16, neighbors => 5)")
    assert said == []
