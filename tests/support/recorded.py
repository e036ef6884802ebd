"""What an index has recorded of its source, and what it should have recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg import sql

Connection = psycopg.Connection[Any]

DIMENSIONS = 8
BITS = 32


class Entry(NamedTuple):
    seq: int
    key: Any
    op: str
    version: int
    center: int
    code: str | None


def vectors(n: int, dimensions: int = DIMENSIONS, seed: int = 0) -> np.ndarray:
    # Eighths are exact in every type an embedding can have, half precision included.
    return np.random.default_rng(seed).integers(-16, 17, (n, dimensions)).astype(np.float32) / 8


def text(vector: Iterable[float] | None) -> str | None:
    """The vector as pgvector reads it."""
    return None if vector is None else "[" + ",".join(f"{x:.9g}" for x in vector) + "]"


def create_table(
    connection: Connection, name: str = "items", more: str = "", partitioned: bool = False
) -> None:
    parts = "PARTITION BY RANGE (id)" if partitioned else ""
    connection.execute(
        f"""CREATE TABLE {name} (id int PRIMARY KEY, embedding extensions.vector({DIMENSIONS}),
                                 tags text[], note int DEFAULT 0 {more}) {parts}"""
    )
    if partitioned:
        connection.execute(f"CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO (100)")
        # Attached, with its columns in another order and one that is gone.
        connection.execute(
            f"""CREATE TABLE {name}_high (note int DEFAULT 0, gone text, tags text[], id int NOT NULL,
                                          embedding extensions.vector({DIMENSIONS}) {more})"""
        )
        connection.execute(f"ALTER TABLE {name}_high DROP COLUMN gone")
        connection.execute(
            f"ALTER TABLE {name} ATTACH PARTITION {name}_high FOR VALUES FROM (100) TO (MAXVALUE)"
        )


def create_index(connection: Connection, name: str = "idx", source: str = "items", **arguments: Any) -> None:
    given = {"name": name, "source": source, "embedding": "embedding", "bits": BITS, **arguments}
    call = sql.SQL(", ").join(sql.SQL("{} => %s").format(sql.Identifier(argument)) for argument in given)
    connection.execute(
        sql.SQL("SELECT foh.create_index({})").format(call), [adapted(value) for value in given.values()]
    )


def adapted(value: Any) -> Any:
    return psycopg.types.json.Jsonb(value) if isinstance(value, dict) else value


def insert(
    connection: Connection, key: Any, vector: Iterable[float] | None, table: str = "items", **columns: Any
) -> None:
    names = ["id", "embedding", *columns]
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, names)),
            sql.SQL(", ").join([sql.SQL("%s")] * len(names)),
        ),
        [key, text(vector), *columns.values()],
    )


def entries(connection: Connection, index: str = "idx") -> list[Entry]:
    # The code is at the end of the marks, after the signature of the labels where there are any.
    query = sql.SQL(
        "SELECT seq, key, op::text, version, center, right(marks::text, (SELECT bits FROM foh.index WHERE name = {}))"
        " FROM foh.{} ORDER BY seq"
    )
    named = query.format(sql.Literal(index), sql.Identifier(f"{index}_stream"))
    return [Entry(*row) for row in connection.execute(named)]


def newest(connection: Connection, index: str = "idx") -> dict[Any, Entry]:
    """The entry that counts for each key: the last one, unless the table was truncated after it.

    One that says that labels changed replaces none.
    """
    found: dict[Any, Entry] = {}
    for entry in entries(connection, index):
        if entry.op == "t":
            found.clear()
        elif entry.key is not None and entry.op != "l":
            found[entry.key] = entry
    return found


def codes(connection: Connection, index: str = "idx") -> dict[Any, str | None]:
    """The code of each key that the index takes to be there."""
    return {key: entry.code for key, entry in newest(connection, index).items() if entry.op == "u"}


def projection(connection: Connection, index: str = "idx") -> tuple[np.ndarray, np.ndarray]:
    query = sql.SQL("SELECT weights::text, bias FROM foh.{} ORDER BY bit").format(
        sql.Identifier(f"{index}_projection")
    )
    rows = connection.execute(query).fetchall()
    return np.array([np.fromstring(w.strip("[]"), sep=",", dtype=np.float32) for w, _ in rows]), np.array(
        [b for _, b in rows]
    )


def expected_code(hash_functions: tuple[np.ndarray, np.ndarray], vector: Sequence[float] | np.ndarray) -> str:
    weights, bias = hash_functions
    values = weights.astype(np.float64) @ np.asarray(vector, dtype=np.float64) - bias
    return "".join("1" if value >= 0 else "0" for value in values)


def expected_codes(
    connection: Connection, rows: dict[Any, Sequence[float]], index: str = "idx"
) -> dict[Any, str]:
    hash_functions = projection(connection, index)
    return {key: expected_code(hash_functions, vector) for key, vector in rows.items()}


def problems(connection: Connection, index: str = "idx") -> list[tuple[Any, ...]]:
    return connection.execute("SELECT problem, key, detail FROM foh.check(%s)", [index]).fetchall()


def add_centers(
    connection: Connection,
    embeddings: Sequence[Sequence[float]] | np.ndarray,
    index: str = "idx",
    version: int = 1,
    first: int = 1,
) -> None:
    """Centers as an updater leaves them, all in one area."""
    names = {name: sql.Identifier("foh", f"{index}_{name}") for name in ("area", "center", "place")}
    connection.execute(sql.SQL("DELETE FROM {area}").format(**names))
    connection.execute(
        sql.SQL(
            "INSERT INTO {center} (center, version) SELECT %s + n, %s FROM generate_series(0, %s) n"
        ).format(**names),
        [first, version, len(embeddings) - 1],
    )
    connection.execute(
        sql.SQL(
            """WITH given AS (SELECT %s - 1 + u.place AS center, p.geometry
                              FROM unnest(%s::text[]) WITH ORDINALITY AS u (embedding, place), {place}(u.embedding::extensions.vector, NULL) p)
               INSERT INTO {area} SELECT 0, 0, '{{1}}', ARRAY[(SELECT geometry FROM given LIMIT 1)]
               UNION ALL SELECT 1, 0, array_agg(center ORDER BY center), array_agg(geometry ORDER BY center) FROM given"""
        ).format(**names),
        [first, [text(embedding) for embedding in embeddings]],
    )
