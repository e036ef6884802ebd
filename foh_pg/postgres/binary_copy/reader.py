from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from foh_pg.postgres.binary_copy.buffer import NDArray, gather, gather_int4
from foh_pg.postgres.binary_copy.column import Column, RowError
from foh_pg.postgres.binary_copy.fixed import Fixed

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = len(SIGNATURE) + 8
TRAILER = b"\xff\xff"
CHUNK_BYTES = 8 << 20


def copy_out(
    connection: psycopg.Connection[Any],
    query: sql.Composable,
    columns: Sequence[Column],
    *,
    parameters: Any = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[tuple[Any, ...]]:
    """The rows of `query`, in chunks of about `chunk_bytes`, as one array per column.

    A NULL where the column is not Nullable, another dimension or another type is a RowError.
    """
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(query)
    width = row_width(columns)
    for data, starts in _chunks(connection, statement, parameters, chunk_bytes):
        buffer = np.frombuffer(data, dtype=np.uint8)
        if width is not None and np.all(np.diff(starts, append=len(buffer)) == width):
            yield parse_fixed(buffer, columns)
        else:
            yield parse_varying(buffer, starts, columns)


def row_width(columns: Sequence[Column]) -> int | None:
    """The bytes of a row, its field lengths included, where all rows have the same."""
    if not all(isinstance(column, Fixed) for column in columns):
        return None
    return 2 + sum(4 + (column.width or 0) for column in columns)


def row_dtype(columns: Sequence[Column]) -> np.dtype[Any]:
    """A row of fixed columns as PostgreSQL sends it."""
    parts: list[tuple[str, Any]] = [("fields", ">i2")]
    for number, column in enumerate(columns):
        assert isinstance(column, Fixed)
        parts += [(f"length{number}", ">i4"), (f"item{number}", column.dtype)]
    return np.dtype(parts)


def parse_fixed(buffer: NDArray, columns: Sequence[Column]) -> tuple[Any, ...]:
    rows = buffer.view(row_dtype(columns))
    _check_count(rows["fields"], len(columns))
    values = []
    for number, column in enumerate(columns):
        assert isinstance(column, Fixed)
        column.check_lengths(rows[f"length{number}"])
        values.append(column.decode(rows[f"item{number}"]))
    return tuple(values)


def parse_varying(buffer: NDArray, starts: NDArray, columns: Sequence[Column]) -> tuple[Any, ...]:
    _check_count(gather(buffer, starts, 2).view(">i2").reshape(-1), len(columns))
    cursor = starts + 2
    values = []
    for column in columns:
        lengths = gather_int4(buffer, cursor)
        values.append(column.read(buffer, cursor + 4, lengths))
        cursor = cursor + 4 + np.maximum(lengths, 0)
    if not np.array_equal(cursor, np.append(starts[1:], len(buffer))):
        raise RowError("a row does not end where its fields do: the stream of COPY is damaged")
    return tuple(values)


def _check_count(found: NDArray, expected: int) -> None:
    wrong = found[found != expected]
    if len(wrong):
        raise RowError(f"the query returns {wrong[0]} columns, and {expected} were announced")


def _chunks(
    connection: psycopg.Connection[Any], statement: sql.Composed, parameters: Any, chunk_bytes: int
) -> Iterator[tuple[bytes, NDArray]]:
    """The bytes of whole rows, and where each begins. PostgreSQL sends each row as one message."""
    messages: list[bytes] = []
    size = 0
    with connection.cursor() as cursor, cursor.copy(statement, parameters) as copy:
        for message in _rows(copy):
            messages.append(message)
            size += len(message)
            if size >= chunk_bytes:
                yield _join(messages)
                messages, size = [], 0
    if messages:
        yield _join(messages)


def _rows(copy: psycopg.Copy) -> Iterator[bytes]:
    messages = iter(copy)
    first = bytes(next(messages, b""))
    if not first.startswith(SIGNATURE):
        raise RowError("the server did not answer in the binary format of COPY")
    first = first[HEADER + int.from_bytes(first[HEADER - 4 : HEADER], "big") :]
    ended = first == TRAILER
    if first and not ended:
        yield first
    for message in messages:
        ended = message == TRAILER
        if not ended:
            yield bytes(message)
    if not ended:
        raise RowError("the stream of COPY ended before its trailer")


def _join(messages: list[bytes]) -> tuple[bytes, NDArray]:
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    return b"".join(messages), np.cumsum(lengths) - lengths
