"""The application's table of the demo: Debian packages, their tags, a vector for each."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from foh_pg.demo.packages import Packages
from foh_pg.errors import FohError
from foh_pg.postgres.binary_copy import TEXT, Array, Ragged, Vector, copy_in
from foh_pg.postgres.connect import own_path

PIECE = 250
VECTOR = """
SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""
TABLE = """
CREATE TABLE {package} (
    id        int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text NOT NULL,
    tags      text[] NOT NULL,
    embedding {vector}.vector({dimensions}) NOT NULL
)
"""


def load_table(connection: psycopg.Connection[Any], packages: Packages) -> str:
    """Make the table where the user's own search_path puts it, and fill it, in one transaction."""
    with connection.cursor(row_factory=tuple_row) as cursor, own_path(connection):
        [schema] = cursor.execute("SELECT pg_catalog.current_schema()").fetchone() or (None,)
    if schema is None:
        raise FohError("the search_path names no schema where a table could be made: set one, such as public")
    with connection.transaction():
        make_table(connection, packages.vectors.shape[1], str(schema))
        write(connection, packages, str(schema))
    return f"{schema}.package"


def make_table(connection: psycopg.Connection[Any], dimensions: int, schema: str = "public") -> None:
    with connection.cursor(row_factory=tuple_row) as cursor:
        found = cursor.execute(VECTOR).fetchone()
        if found is None:
            raise FohError("pgvector is not installed in this database: CREATE EXTENSION vector")
        cursor.execute(
            sql.SQL(TABLE).format(
                package=sql.Identifier(schema, "package"),
                vector=sql.Identifier(found[0]),
                dimensions=sql.Literal(dimensions),
            )
        )


def write(connection: psycopg.Connection[Any], packages: Packages, schema: str = "public") -> None:
    """COPY, a piece at a time: each row is searchable when its transaction commits."""
    for start in range(0, len(packages.names), PIECE):
        piece = packages.part(start, start + PIECE)
        copy_in(
            connection,
            sql.Identifier(schema, "package"),
            ("name", "tags", "embedding"),
            (TEXT, Array(TEXT), Vector(piece.vectors.shape[1])),
            (piece.names, Ragged.of(piece.tags, object), piece.vectors),
        )
