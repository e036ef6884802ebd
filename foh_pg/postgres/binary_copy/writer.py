from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy.buffer import NDArray, as_bytes, scatter, scatter_pieces
from foh_pg.postgres.binary_copy.column import Column
from foh_pg.postgres.binary_copy.fixed import Fixed
from foh_pg.postgres.binary_copy.reader import SIGNATURE, TRAILER, row_dtype, row_width

# Rows that are made and sent at a time: so many that the cost of a call does not matter.
CHUNK_ROWS = 8192


def copy_in(
    connection: psycopg.Connection[Any],
    table: sql.Composable,
    names: Sequence[str],
    columns: Sequence[Column],
    values: Sequence[Any],
) -> int:
    """Append rows to `table`: column `names[i]` of type `columns[i]` takes the array `values[i]`.

    Returns the number of rows. All of them or none are written, as with any statement.
    """
    count = row_count(columns, values)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
        table, sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for piece in payload(columns, values):
            copy.write(piece)
    return count


def row_count(columns: Sequence[Column], values: Sequence[Any]) -> int:
    counts = [column.rows(array) for column, array in zip(columns, values, strict=True)]
    if len(set(counts)) != 1:
        raise InputError(f"the columns have different numbers of rows: {counts}")
    return counts[0]


def payload(columns: Sequence[Column], values: Sequence[Any]) -> Iterator[bytes]:
    """All that COPY FROM reads, piece by piece: header, rows, trailer."""
    build = varying_rows if row_width(columns) is None else fixed_rows
    count = row_count(columns, values)
    yield SIGNATURE + bytes(8)
    for start in range(0, count, CHUNK_ROWS):
        end = min(start + CHUNK_ROWS, count)
        parts = [column.part(array, start, end) for column, array in zip(columns, values, strict=True)]
        yield build(columns, parts).tobytes()
    yield TRAILER


def fixed_rows(columns: Sequence[Column], values: Sequence[Any]) -> NDArray:
    count = columns[0].rows(values[0])
    rows = np.zeros(count, dtype=row_dtype(columns))
    rows["fields"] = len(columns)
    for number, (column, array) in enumerate(zip(columns, values, strict=True)):
        assert isinstance(column, Fixed)
        rows[f"length{number}"] = column.width
        rows[f"item{number}"] = column.encode(array)
    return rows


def varying_rows(columns: Sequence[Column], values: Sequence[Any]) -> NDArray:
    fields = [column.fields(array) for column, array in zip(columns, values, strict=True)]
    count = len(fields[0][0])
    sizes = np.full(count, 2 + 4 * len(fields), dtype=np.int64)
    for lengths, _ in fields:
        sizes += np.maximum(lengths, 0)
    out = np.empty(int(sizes.sum()), dtype=np.uint8)
    cursor = np.cumsum(sizes) - sizes
    scatter(out, cursor, as_bytes(np.full(count, len(fields), dtype=">i2")))
    cursor += 2
    for lengths, data in fields:
        scatter(out, cursor, as_bytes(lengths.astype(">i4")))
        present = np.maximum(lengths, 0)
        scatter_pieces(out, cursor + 4, present, data)
        cursor += 4 + present
    return out
