"""A schema `evil` full of traps: whatever in it is called raises an error."""

from __future__ import annotations

from typing import Any

import psycopg

OPERATORS = {
    "integer": ("=", "<>", "<", ">", "+", "*", "-", "/", "%"),
    "bigint": ("=", "<>", "<", ">", "+", "*", "-", "/"),
    "double precision": ("=", "<>", "<", ">", "+", "*", "-", "/"),
    "text": ("=", "<>", "<", ">", "||"),
    "name": ("=", "||"),
    "oid": ("=", "<>"),
    "extensions.vector": ("<=>", "<->", "<#>", "="),
    "extensions.halfvec": ("<#>",),
    "bit": ("<~>", "=", "#"),
    "anyarray": ("||", "="),
}
FUNCTIONS = {
    "unnest": "anyarray", "array_agg": "anynonarray", "cardinality": "anyarray", "length": "bit",
    "vector_dims": "extensions.vector", "l2_normalize": "extensions.vector", "format": "text", "count": "integer",
    "quote_literal": "text", "abs": "double precision", "array_ndims": "anyarray", "bit_or": "bit",
    "to_regclass": "text", "sum": "integer", "trunc": "double precision", "to_regprocedure": "text",
}  # fmt: skip
TYPES = (
    "float8",
    "text",
    "jsonb",
    "record",
    "name",
    "vector",
    "bool",
    "int4",
    "int8",
    "regclass",
    "uuid",
    "date",
)


def set_traps(superuser: psycopg.Connection[Any]) -> None:
    """Operators, functions and types that have the names of those of PostgreSQL and pgvector."""
    superuser.execute("CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO PUBLIC")
    body = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a trap was called'; END $$"
    for number, (type_name, symbols) in enumerate(OPERATORS.items()):
        for at, symbol in enumerate(symbols):
            returns = "boolean" if symbol in ("=", "<>", "<", ">") else type_name
            superuser.execute(
                f"CREATE FUNCTION evil.o{number}_{at}({type_name}, {type_name}) RETURNS {returns} {body}".encode()
            )
            superuser.execute(
                f"CREATE OPERATOR evil.{symbol} "
                f"(LEFTARG = {type_name}, RIGHTARG = {type_name}, FUNCTION = evil.o{number}_{at})".encode()
            )
    for name, argument in FUNCTIONS.items():
        superuser.execute(f"CREATE FUNCTION evil.{name}({argument}) RETURNS int {body}".encode())
    for name in TYPES:
        superuser.execute(f"CREATE DOMAIN evil.{name} AS char(1) CHECK (false)".encode())
