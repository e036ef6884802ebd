"""A publication FOR ALL TABLES takes our tables along: it is said, and nothing of ours fails for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from foh_pg.schema.migrations import migrate
from foh_pg.updater import rebuild, update
from tests.support.postgres import Database, install_pgvector

Connection = psycopg.Connection[Any]


def heard(connection: Connection) -> list[str]:
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    return said


def test_migrate_says_so(new_database: Callable[..., Database]) -> None:
    database = new_database()
    superuser, installer = database.connect(None), database.connect("installer")
    install_pgvector(superuser)
    said = heard(installer)
    migrate(installer)
    assert said == []
    migrate(installer, "base")
    superuser.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    said.clear()
    migrate(installer)
    assert any("publication everything is FOR ALL TABLES" in message for message in said)


@pytest.mark.parametrize("published", [False, True])
def test_an_index(connection: Connection, database: Database, published: bool) -> None:
    if published:
        # Without a key for each table, its updates and deletes are refused.
        database.connect(None).execute("CREATE PUBLICATION everything FOR ALL TABLES")
    said = heard(connection)
    connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(3), tags text[])")
    connection.execute("SELECT foh.create_index('idx', 'items', 'embedding', labels => 'tags', bits => 16)")
    assert any("publishes the tables of index 'idx'" in message for message in said) == published
    connection.execute(
        "INSERT INTO items SELECT n, ARRAY[n, 1, 2]::extensions.vector, ARRAY['a'] FROM generate_series(1, 100) n"
    )
    update(database.dsn(), "idx")
    connection.execute("UPDATE items SET embedding = '[1,1,1]' WHERE id < 20")
    connection.execute("DELETE FROM items WHERE id > 90")
    update(database.dsn(), "idx")
    rebuild(database.dsn(), "idx")
    connection.execute("SELECT foh.refresh('idx')")
    connection.execute("""SELECT foh.alter_index('idx', '{"probes": 2}')""")
    connection.execute("SELECT foh.grant('idx', reader => 'app_reader')")
    assert connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
    connection.execute("SELECT foh.drop_index('idx')")
