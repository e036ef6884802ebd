"""One database for all tests of a process: making one costs more than most of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres import Database, Server


@pytest.fixture(scope="session")
def shared(server: Server) -> Iterator[list[Database]]:
    databases: list[Database] = []
    yield databases
    for database in databases:
        database.drop()


@pytest.fixture
def database(server: Server, shared: list[Database]) -> Iterator[Database]:
    """A database with our schema and nothing else in it; emptied, not dropped, after the test."""
    if not shared or shared[-1].server is not server:
        shared.append(server.create_database(template=server.template))
    database = shared[-1]
    yield database
    database.disconnect()
    try:
        with psycopg.connect(database.dsn(None), autocommit=True) as superuser:
            superuser.execute("SET lock_timeout = '5s'")
            superuser.execute("SET ROLE app_owner; SELECT foh.drop_index(name) FROM foh.index; RESET ROLE")
            superuser.execute("DROP OWNED BY app_writer, app_reader CASCADE")
            superuser.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            superuser.execute(
                "GRANT USAGE ON SCHEMA public TO PUBLIC; GRANT CREATE ON SCHEMA public TO app_owner"
            )
            [(left,)] = superuser.execute(
                "SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname NOT IN "
                "('foh', 'public', 'extensions', 'information_schema')"
            ).fetchall()
            if left:
                raise psycopg.Error("schemas are left")
    except psycopg.Error:
        # A test may leave behind what only a new database is without.
        shared.remove(database)
        database.drop()
