"""register_foh: values both ways, in every way that psycopg runs a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector, Vector
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from foh_pg.errors import SchemaError
from foh_pg.psycopg import register_foh, register_foh_async
from tests.support.postgres import Database, Server

SEARCH = "SELECT id FROM foh.things_search(%s, 3)"


@pytest.fixture(scope="module")
def things(server: Server) -> Iterator[Database]:
    database = server.create_database(template=server.template)
    with psycopg.connect(database.dsn()) as connection:
        connection.execute("CREATE TABLE things (id int PRIMARY KEY, embedding extensions.vector(3))")
        connection.execute("SELECT foh.create_index('things', 'things', 'embedding', bits => 16)")
        connection.execute("INSERT INTO things SELECT i, ARRAY[i, 1, 0]::real[] FROM generate_series(1, 9) i")
    yield database
    database.drop()


def query(i: int) -> Any:
    return np.asarray([i, 1, 0], dtype=np.float32)


@pytest.mark.parametrize("binary", [False, True])
def test_values_both_ways(things: Database, binary: bool) -> None:
    with psycopg.connect(things.dsn()) as connection:
        register_foh(connection)
        cursor = connection.cursor(binary=binary)
        [(vector,)] = cursor.execute("SELECT embedding FROM things WHERE id = 4").fetchall()
        assert vector == Vector([4, 1, 0])
        sent = cursor.execute("SELECT %s::extensions.halfvec(2)", [HalfVector([1, 2])])
        assert sent.fetchone() == (HalfVector([1, 2]),)
        [(vectors,)] = cursor.execute(
            "SELECT array_agg(embedding ORDER BY id) FROM things WHERE id < 3"
        ).fetchall()
        assert vectors == [Vector([1, 1, 0]), Vector([2, 1, 0])]


def test_search(things: Database) -> None:
    with psycopg.connect(things.dsn(), row_factory=dict_row) as connection:
        register_foh(connection)
        found = connection.execute("SELECT * FROM foh.things_search(%s, 1)", [query(7)]).fetchone()
        assert found["id"] == 7
        assert set(found) == {"id", "distance", "score"}


def test_a_server_side_cursor(things: Database) -> None:
    with psycopg.connect(things.dsn()) as connection:
        register_foh(connection)
        with connection.cursor("named") as cursor:
            cursor.itersize = 1
            cursor.execute(SEARCH, [query(5)])
            assert next(iter(cursor))[0] == 5
            assert len(cursor.fetchall()) == 2


def test_a_pipeline(things: Database) -> None:
    with psycopg.connect(things.dsn(), autocommit=True) as connection:
        with connection.pipeline():
            register_foh(connection)
            cursors = [connection.cursor() for _ in range(5)]
            for i, cursor in enumerate(cursors, 1):
                cursor.execute(SEARCH, [query(i)])
            assert [cursor.fetchone()[0] for cursor in cursors] == [1, 2, 3, 4, 5]
        connection.execute("PREPARE nothing AS SELECT 1")


@pytest.mark.parametrize("autocommit", [False, True])
def test_leaves_the_connection_as_it_was(things: Database, autocommit: bool) -> None:
    with psycopg.connect(things.dsn(), autocommit=autocommit) as connection:
        register_foh(connection)
        assert connection.info.transaction_status.name == "IDLE"
        with connection.transaction():
            connection.execute("CREATE TEMP TABLE mine (x int)")
            register_foh(connection)
            assert connection.info.transaction_status.name == "INTRANS"
        connection.execute("SELECT * FROM mine")


def test_a_pool(things: Database) -> None:
    with ConnectionPool(things.dsn(), configure=register_foh, min_size=1) as pool:
        pool.wait(30)
        with pool.connection() as connection:
            assert connection.execute(SEARCH, [query(2)]).fetchone() == (2,)


async def test_async(things: Database) -> None:
    connection = await psycopg.AsyncConnection.connect(things.dsn(), autocommit=True)
    async with connection:
        await register_foh_async(connection)
        assert await (await connection.execute(SEARCH, [query(6)])).fetchone() == (6,)
        async with connection.pipeline():
            cursors = [await connection.execute(SEARCH, [query(i)]) for i in (3, 4)]
            assert [(await cursor.fetchone())[0] for cursor in cursors] == [3, 4]
        async with connection.transaction(), connection.cursor("named") as cursor:
            await cursor.execute(SEARCH, [query(8)])
            assert await cursor.fetchone() == (8,)


async def test_an_async_pool(things: Database) -> None:
    pool = AsyncConnectionPool(things.dsn(), configure=register_foh_async, min_size=1, open=False)
    async with pool, pool.connection() as connection:
        assert await (await connection.execute(SEARCH, [query(2)])).fetchone() == (2,)


def test_without_pgvector(new_database: Callable[..., Database]) -> None:
    with (
        psycopg.connect(new_database().dsn("installer")) as connection,
        pytest.raises(SchemaError, match="CREATE EXTENSION vector"),
    ):
        register_foh(connection)
