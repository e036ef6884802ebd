"""psycopg 3: vectors as Python values, wherever pgvector is installed.

>>> register_foh(connection)
>>> connection.execute("SELECT * FROM foh.products_search(%s, 10)", [numpy.asarray(query)])

`register_foh` is also what a pool wants: ``ConnectionPool(configure=register_foh)``, and
``AsyncConnectionPool(configure=register_foh_async)``.
"""

from __future__ import annotations

from typing import Any

from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.sparsevec import register_sparsevec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import AsyncConnection, BaseConnection, Connection
from psycopg.rows import tuple_row
from psycopg.types import TypeInfo

from foh_pg.errors import SchemaError

__all__ = ["register_foh", "register_foh_async"]

REGISTER = {
    "vector": register_vector_info,
    "halfvec": register_halfvec_info,
    "sparsevec": register_sparsevec_info,
}

# By the extension and not by the search_path, which need not name its schema.
TYPES = """
SELECT t.typname, t.oid, t.typarray
FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_type t ON t.typnamespace OPERATOR(pg_catalog.=) e.extnamespace
WHERE e.extname OPERATOR(pg_catalog.=) 'vector'
  AND t.typname OPERATOR(pg_catalog.=) ANY (ARRAY['vector', 'halfvec', 'sparsevec']::pg_catalog.name[])
"""


def register_foh(connection: Connection[Any]) -> None:
    """Let this connection send and return `vector`, `halfvec` and `sparsevec`.

    Leaves the connection as it found it, in a transaction or not.
    """
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        found = cursor.execute(TYPES).fetchall()
    _register(connection, found)


async def register_foh_async(connection: AsyncConnection[Any]) -> None:
    """`register_foh` for an AsyncConnection."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(TYPES)
        found = await cursor.fetchall()
    _register(connection, found)


def _register(connection: BaseConnection[Any], found: list[Any]) -> None:
    if not found:
        raise SchemaError(
            f"database {connection.info.dbname!r} has no pgvector: run CREATE EXTENSION vector in it first"
        )
    for name, oid, array_oid in found:
        REGISTER[name](connection, TypeInfo(name, oid, array_oid))
