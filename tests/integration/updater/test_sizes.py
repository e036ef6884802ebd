"""What many small updates leave behind."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foh_pg.updater import update
from tests.support.digits import create_index, create_table, insert, violations

Connection = psycopg.Connection[Any]


def size(connection: Connection) -> int:
    (found,) = connection.execute(
        """SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
           WHERE c.relnamespace = 'foh'::regnamespace AND c.relname IN ('digits_list', 'digits_sample', 'digits_center', 'digits_stream', 'digits_item', 'model_state')"""
    ).fetchone() or (0,)
    return int(found)


def test_many_small_updates(connection: Connection, superuser: Connection) -> None:
    """Autovacuum alone would let the lists grow tenfold before it comes; here it never comes."""
    if connection.info.server_version < 170000:
        pytest.skip("before PostgreSQL 17 only the owner of a table may vacuum it")
    create_table(connection)
    create_index(connection, options='{"learn_rows": 100000}')
    for table in ("list", "sample", "center", "stream", "item"):
        superuser.execute(f"ALTER TABLE foh.digits_{table} SET (autovacuum_enabled = off)".encode())
    superuser.execute(
        "ALTER TABLE foh.model_state SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)"
    )
    insert(connection, range(1500))
    update(connection, "digits")
    connection.execute("UPDATE digit SET embedding = (SELECT embedding FROM digit WHERE id = 1) WHERE id = 2")
    update(connection, "digits")
    before = size(connection)
    for n in range(80):
        connection.execute(
            "UPDATE digit d SET embedding = (SELECT embedding FROM digit o WHERE o.id = (d.id * 7 + %s) %% 1500) WHERE d.id %% 50 = %s",
            [n, n % 50],
        )
        update(connection, "digits")
    assert size(connection) < 2.5 * before
    assert violations(connection) == []


def test_vacuum_keeps_the_end_of_the_stream(connection: Connection) -> None:
    """To give it back to the system VACUUM would lock the stream, and writers would wait."""
    create_table(connection)
    create_index(connection)
    options = connection.execute(
        """SELECT c.reloptions, t.reloptions FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
           WHERE c.oid = 'foh.digits_stream'::regclass"""
    ).fetchone()
    assert options is not None
    assert all("vacuum_truncate=off" in each for each in options if each is not None)
    assert options[0] is not None
