"""A sample of a table, read without writing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from foh_pg.arrays.ragged import Ragged
from foh_pg.clustering import Metric
from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy import FLOAT4, TEXT, Array, copy_out
from foh_pg.schema.indexed import READABLE

# Rows of a sample, unless another number is asked for: so large a share of the table, within these limits.
SAMPLE_SHARE = 1 / 4
SMALLEST_SAMPLE = 5000
# They are held in memory.
LARGEST_SAMPLE = 20_000

EMBEDDINGS = ("vector", "halfvec", "_float4", "_float8")
LABELS = ("text", "varchar", "bpchar", "char", "name", "bool", "uuid", "int2", "int4", "int8")
# The labels of a row as an array; an empty text is none, as in foh._names.
ONE = "ARRAY[nullif({}::text, '')]"
MANY = "pg_catalog.array_replace({}::text[], '', NULL)"
JSON = (
    "CASE pg_catalog.jsonb_typeof({0}) WHEN 'array' THEN ARRAY(SELECT nullif(e.value #>> '{{}}', '')"
    " FROM pg_catalog.jsonb_array_elements({0}) e WHERE pg_catalog.jsonb_typeof(e.value) = 'string')"
    " WHEN 'string' THEN ARRAY[nullif({0} #>> '{{}}', '')] END"
)


@dataclass(frozen=True)
class Table:
    """The table as the catalog describes it."""

    # schema, name, key: its name, and the columns of its primary key.
    schema: str
    name: str
    key: tuple[str, ...]
    # embedding, embedding_type, labels, labels_type: the columns; the labels may be None.
    embedding: str
    embedding_type: str
    labels: str | None
    labels_type: str | None

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, the same ones each time."""

    table: Table
    # rows, labelled: rows of the whole table that have an embedding; those among them that have a label, too.
    rows: int
    labelled: int
    # Shape (n, d) of float32. Embeddings of the sample, in an order that is random.
    X: npt.NDArray[np.float32]
    # Their labels by name.
    labels: Ragged

    @property
    def share(self) -> float:
        """Share of rows with a label."""
        return self.labelled / self.rows if self.rows else 0.0

    def describe(self) -> dict[str, Any]:
        """Give what the figures stand on."""
        _, used = np.unique(self.labels.values.astype(np.str_), return_counts=True)
        return {
            "table": str(self.table),
            "rows": self.rows,
            "dimensions": self.X.shape[1],
            "sampled": len(self.X),
            "labelled_share": round(self.share, 4),
            "labels_in_sample": len(used),
            "sampled_rows_per_label_median": float(np.median(used)) if len(used) else 0.0,
            "sampled_rows_per_label_most": int(used.max(initial=0)),
        }


DESCRIBE = """
SELECT n.nspname, c.relname, c.relkind::text,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i
             JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
             WHERE i.indrelid = c.oid AND i.indisprimary) AS keys
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(%s)
"""
# A domain is what it is a domain over, and an enum is as good as text.
COLUMNS = """
WITH RECURSIVE base AS (
    SELECT t.oid, t.oid AS type FROM pg_catalog.pg_type t
    UNION ALL
    SELECT b.oid, t.typbasetype FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.type WHERE t.typtype = 'd')
SELECT a.attname::text, CASE WHEN e.typtype = 'e' AND t.typcategory = 'A' THEN '_text'
                             WHEN e.typtype = 'e' THEN 'text' ELSE t.typname::text END
FROM pg_catalog.pg_attribute a JOIN base b ON b.oid = a.atttypid
JOIN pg_catalog.pg_type t ON t.oid = b.type AND t.typtype <> 'd'
JOIN pg_catalog.pg_type e
     ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
WHERE a.attrelid = pg_catalog.to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
COUNT = """
SELECT count(*), count(*) FILTER (WHERE EXISTS (SELECT FROM unnest({labels}) l WHERE l IS NOT NULL))
FROM {table} s WHERE {embedding} IS NOT NULL
"""
# By a hash of the key: at random, the same rows each time, and only as many rows as asked for are ever held.
SAMPLE = """
SELECT {embedding}::real[], {labels} FROM (
    SELECT {columns} FROM {table} s WHERE {embedding} IS NOT NULL
    ORDER BY pg_catalog.hashtextextended(({key})::text, 0) LIMIT {limit}) s
"""


INDEX = """
SELECT i.name, i.bits, i.distance FROM foh.index i
WHERE i.source = pg_catalog.format('%%I.%%I', %(schema)s::text, %(name)s::text)::pg_catalog.regclass
  AND i.embedding = %(embedding)s AND i.labels IS NOT DISTINCT FROM %(labels)s
ORDER BY i.version > 1 DESC, i.id DESC LIMIT 1
"""


def find_index(connection: psycopg.Connection[Any], table: Table) -> tuple[str, int, Metric] | None:
    """Name, bits and distance of the newest index on these columns, a built one first, if known."""
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        # Without the right nothing is known, which is no error: advise needs no schema foh.
        if cursor.execute(READABLE).fetchone() != (True,):
            return None
        columns = {"schema": table.schema, "name": table.name, "embedding": table.embedding}
        return cursor.execute(INDEX, {**columns, "labels": table.labels}).fetchone()


def read(
    connection: psycopg.Connection[Any], name: str, embedding: str, labels: str | None, limit: int | None
) -> Sample:
    """Sample a table in a read-only transaction; rows hidden from this role are an error.

    Reads the table twice from end to end: once to count, once to sample. Embeddings are only fetched for the
    sample where they are stored out of line.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SET LOCAL row_security = off")
        table = _describe(connection, name, embedding, labels)
        with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            counted = cursor.execute(compose(COUNT, table)).fetchone()
        assert counted is not None
        limit = limit or min(LARGEST_SAMPLE, max(SMALLEST_SAMPLE, round(SAMPLE_SHARE * counted[0])))
        parts = list(
            copy_out(
                connection, compose(SAMPLE, table, limit=sql.Literal(limit)), [Array(FLOAT4), Array(TEXT)]
            )
        )
    X = _matrix(table, parts)
    return Sample(table, counted[0], counted[1], X, Ragged.join([labels for _, labels in parts]))


def _describe(connection: psycopg.Connection[Any], name: str, embedding: str, labels: str | None) -> Table:
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        found = cursor.execute(DESCRIBE, [name]).fetchone()
        types: dict[str, str] = dict(cursor.execute(COLUMNS, [name]).fetchall())
    assert found is not None
    schema, relation, kind, keys = found
    if kind not in "rp":
        raise InputError(f"{name!r} is no ordinary or partitioned table: advise on the table behind it")
    if not keys:
        raise InputError(f"{name!r} has no primary key: add one, its value is what a search returns")
    for column in (embedding, labels):
        if column is not None and column not in types:
            raise InputError(f"{name!r} has no column {column!r}, only {', '.join(types)}")
    if types[embedding] not in EMBEDDINGS:
        raise InputError(
            f"column {embedding!r} is of type {types[embedding]}: an embedding is a vector, halfvec, real[] "
            "or double precision[]"
        )
    labels_type = None if labels is None else types[labels]
    if labels_type is not None and labels_type != "jsonb" and labels_type.removeprefix("_") not in LABELS:
        raise InputError(
            f"column {labels!r} is of type {labels_type}: labels are text, integers, boolean, uuid or an "
            "enum, arrays of these or jsonb arrays of strings"
        )
    return Table(schema, relation, tuple(keys), embedding, types[embedding], labels, labels_type)


def compose(text: Any, table: Table, **more: sql.Composable) -> sql.Composed:
    """Fill in names; `labels`: the labels of row s as an array, NULL where there are none."""
    columns, labels = [table.embedding], sql.SQL("NULL::text[]").format()
    if table.labels is not None:
        columns.append(table.labels)
        of_type = str(table.labels_type)
        read = JSON if of_type == "jsonb" else MANY if of_type.startswith("_") else ONE
        labels = sql.SQL(read).format(sql.Identifier("s", table.labels))
    return sql.SQL(text).format(
        table=sql.Identifier(table.schema, table.name),
        key=sql.SQL(", ").join(sql.Identifier("s", column) for column in table.key),
        columns=sql.SQL(", ").join(sql.Identifier("s", column) for column in columns),
        embedding=sql.Identifier("s", table.embedding),
        labels=labels,
        **more,
    )


def _matrix(table: Table, parts: Sequence[tuple[Any, ...]]) -> npt.NDArray[np.float32]:
    lengths = {int(length) for found, _ in parts for length in np.unique(found.lengths)}
    if not lengths:
        raise InputError(f"{table} has no row with an embedding in {table.embedding!r}: nothing to measure")
    if len(lengths) > 1:
        raise InputError(
            f"{table} has embeddings of {', '.join(map(str, sorted(lengths)))} dimensions in "
            f"{table.embedding!r}: an index needs one length for all"
        )
    X = np.concatenate([found.values for found, _ in parts]).reshape(-1, lengths.pop())
    if not np.isfinite(X).all():
        raise InputError(f"{table} has embeddings in {table.embedding!r} that are not finite numbers")
    return np.ascontiguousarray(X, dtype=np.float32)
