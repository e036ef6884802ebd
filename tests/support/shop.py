"""A table with an index on it, and what a search of it ought to return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.geometry import Geometry

DIMENSIONS = 8
BITS = 32
# Each of 32 numbers has 40 thresholds.
GEOMETRY = 1280

# What the updater does in one transaction: a version, hash functions, centers, lists, the stream consumed.
# Without a number of centers the version keeps those that there are.
VERSION = """
WITH i AS (UPDATE foh.index SET version = version + 1, status = 'ready', next_center = next_center + coalesce(%(centers)s, 0)
           WHERE name = %(name)s RETURNING id, version, next_center - %(centers)s::int AS first_center)
INSERT INTO foh.model (index, version, trained, mean, scale, weight_code, weight_votes, placed, first_center, small)
SELECT i.id, i.version, %(trained)s, m.mean, m.scale, m.weight_code, m.weight_votes, CASE WHEN i.first_center IS NULL THEN m.placed ELSE i.version END,
       coalesce(i.first_center, m.first_center), %(small)s
FROM i JOIN foh.model m ON m.index = i.id AND m.version = i.version - 1
"""
# One area: every center lies in it.
CENTERS = """
WITH given AS (
    SELECT m.first_center - 1 + row_number() OVER (ORDER BY s.{key}) AS center, p.geometry, i.version
    FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version, {source} s
    CROSS JOIN LATERAL {place}(s.embedding::extensions.vector, {labels}) p
    WHERE i.name = %(name)s AND s.{key} = ANY (%(keys)s::{key_type}[])
), centers AS (
    INSERT INTO {center} (center, version) SELECT center, version FROM given
)
INSERT INTO {area} (area, part, ids, geometry)
SELECT 0, 0, '{{1}}', (array_agg(geometry))[:1] FROM given HAVING count(*) > 0
UNION ALL SELECT 1, 0, array_agg(center ORDER BY center), array_agg(geometry ORDER BY center) FROM given HAVING count(*) > 0
"""
LISTS = """
WITH placed AS (
    SELECT s.{key} AS key, p.geometry, p.marks, p.center
    FROM (SELECT s.*, {usable} AS x FROM {source} s OFFSET 0) s
    CROSS JOIN LATERAL {place}(s.x, {labels}) p WHERE s.x IS NOT NULL
), listed AS (
    INSERT INTO {list} (center, part, ids, geometry, marks)
    SELECT center, 0, array_agg(key), array_agg(geometry), array_agg(marks) FROM placed GROUP BY center
    RETURNING center, cardinality(ids) AS length
), items AS (
    INSERT INTO {item} (key, home) SELECT key, center FROM placed
)
UPDATE {center} c SET length = listed.length FROM listed WHERE listed.center = c.center
"""


class Shop:
    """The table `item` with index `items` on it, seen through one connection."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        *,
        index: str = "items",
        source: str = "public.item",
        key: str = "id",
        key_type: str = "int",
        embedding_type: str = f"extensions.vector({DIMENSIONS})",
        distance: str = "cosine",
        options: Mapping[str, Any] | None = None,
        create: bool = True,
        **arguments: Any,
    ) -> None:
        """Make the table and its index; without `create`, both are there already."""
        self.connection = connection
        self.index, self.source, self.key, self.key_type = index, source, key, key_type
        self.distance = distance
        self.labels = "ARRAY[s.label]" if arguments.get("labels") == "label" else "NULL"
        # A vector of another length, or with what no vector may hold, is not indexed.
        self.usable = "s.embedding::extensions.vector"
        if "[]" in embedding_type:
            self.usable = (
                f"CASE WHEN cardinality(s.embedding) = {DIMENSIONS} AND array_position(s.embedding, NULL) IS NULL"
                " AND NOT EXISTS (SELECT FROM unnest(s.embedding) u WHERE NOT abs(u) < 3.4e38)"
                " THEN s.embedding::extensions.vector END"
            )
        self.options = {"exact_rows": 0, **(options or {})}
        if not create:
            return
        self.run(
            """CREATE TABLE {source} ({key} {key_type} PRIMARY KEY, embedding {embedding_type},
               label text, tenant int, price float8)""",
            embedding_type=sql.SQL(embedding_type),
        )
        given = {"dimensions": DIMENSIONS} if "[]" in embedding_type else {}
        arguments = {"bits": BITS, "distance": distance, **given, **arguments}
        self.execute(
            sql.SQL("SELECT foh.create_index({}, {}::regclass, 'embedding', options => {}, {})").format(
                sql.Literal(index),
                sql.Literal(source),
                sql.Literal(Jsonb(self.options)),
                sql.SQL(", ").join(
                    sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
                    for name, value in arguments.items()
                ),
            )
        )

    def names(self) -> dict[str, sql.Composable]:
        schema, _, table = self.source.rpartition(".")
        own = {
            suffix: sql.Identifier("foh", f"{self.index}_{suffix}")
            for suffix in ("area", "center", "list", "item", "stream", "projection", "quantizer", "quantize", "place", "search",
                           "candidates", "explain", "near")
        }  # fmt: skip
        return {
            **own,
            "source": sql.Identifier(schema, table),
            "key": sql.Identifier(self.key),
            "key_type": sql.SQL(self.key_type),
            "labels": sql.SQL(self.labels),
            "usable": sql.SQL(self.usable),
        }

    def execute(self, statement: sql.Composable, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.connection.execute(statement, parameters)

    def execute_text(self, statement: str) -> psycopg.Cursor[Any]:
        return self.connection.execute(statement.encode())

    def run(self, statement: str, parameters: Any = None, **names: sql.Composable) -> psycopg.Cursor[Any]:
        """Run SQL in which {source}, {key}, {stream} and so on stand for this shop's names."""
        return self.execute(sql.SQL(statement).format(**{**self.names(), **names}), parameters)

    def fill(self, keys: Iterable[Any], vectors: Any, **columns: Sequence[Any]) -> None:
        rows = [
            (key, text(vector), *values)
            for key, vector, *values in zip(keys, vectors, *columns.values(), strict=True)
        ]
        self.connection.cursor().executemany(
            sql.SQL("INSERT INTO {source} ({key}, embedding{more}) VALUES (%s, %s{marks})").format(
                **self.names(),
                more=sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(name)) for name in columns),
                marks=sql.SQL(", %s" * len(columns)),
            ),
            rows,
        )

    def install(
        self, centers: int = 4, *, seed: int | None = None, trained: bool = True, consume: bool = True
    ) -> None:
        """A new version with all rows in lists, as the updater leaves them; `seed` makes new hash functions."""
        with self.connection.transaction():
            rows = self.run(
                """SELECT s.{key}, s.x::real[] FROM (SELECT s.{key}, {usable} AS x FROM {source} s OFFSET 0) s
                   WHERE s.x IS NOT NULL ORDER BY 1"""
            ).fetchall()
            keys = [row[0] for row in rows]
            chosen = keys[:: max(1, len(keys) // centers)][:centers]
            given = {"name": self.index, "keys": chosen}
            small = not trained and len(keys) <= int(self.options["exact_rows"])
            self.new_version(centers=len(chosen), trained=trained, small=small)
            self.quantize([row[1] for row in rows])
            if seed is not None:
                weights = np.random.default_rng(seed).normal(size=(BITS, DIMENSIONS))
                for bit, row in enumerate(weights):
                    self.run("UPDATE {projection} SET weights = %s WHERE bit = %s", [text(row), bit])
            self.run("DELETE FROM {list}; DELETE FROM {item}; DELETE FROM {center}; DELETE FROM {area}")
            self.run(CENTERS, given)
            self.run(LISTS)
            if consume:
                self.run("DELETE FROM {stream}")

    def weigh(self, code: float, votes: float) -> None:
        """How much codes and votes count from now on, as a build would have learned it."""
        self.run("UPDATE foh.model SET weight_code = %s, weight_votes = %s", [code, votes])

    def new_version(self, *, centers: int | None = None, trained: bool = True, small: bool = False) -> None:
        """With so many new centers to come; without a number, one that only merged rows."""
        self.run(VERSION, {"name": self.index, "centers": centers, "trained": trained, "small": small})

    def quantize(self, rows: Sequence[Sequence[float]]) -> None:
        """Geometry bits as an updater makes them for these rows."""
        if not rows:
            return
        bits = self.run("SELECT geometry FROM foh.index WHERE name = %s", [self.index]).fetchone()[0]
        made = Geometry.fit(np.asarray(rows), bits, self.distance, seed=0)
        self.geometry = made
        values = [text(made.signs), text(made.threshold), made.reach]
        self.run("UPDATE {quantizer} SET signs = %s, threshold = %s, reach = %s", values)

    def code(self, query: Any) -> str:
        """The bits of a query: its geometry bits, then its learned code, which ends the marks."""
        bits = (
            "SELECT p.geometry::text || right(p.marks::text, %s) FROM {place}(%s::extensions.vector, NULL) p"
        )
        return str(self.run(bits, [BITS, text(query)]).fetchone()[0])

    def looks(self, query: Any) -> list[str]:
        """The geometry bits of a query by cosine, and those of its numbers moved up and down."""
        bits = (
            "SELECT {quantize}(extensions.l2_normalize(%s::extensions.vector), g.signs::extensions.vector,"
            " g.threshold, true)::text[] FROM {quantizer} g"
        )
        return list(self.run(bits, [text(query)]).fetchone()[0])

    def search(self, query: Any, k: int = 10, **arguments: Any) -> list[tuple[Any, ...]]:
        """The rows that a search returns, in its order; of a key of several columns, the last one."""
        passed = sql.SQL("").join(
            sql.SQL(", {} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in arguments
        )
        values = {
            name: Jsonb(value) if isinstance(value, dict) else value for name, value in arguments.items()
        }
        rows = self.run(
            "SELECT * FROM {search}(%(query)s, %(k)s{passed})",
            {"query": text(query), "k": k, **values},
            passed=passed,
        ).fetchall()
        return [row[-3:] for row in rows]

    def found(self, query: Any, k: int = 10, **arguments: Any) -> list[Any]:
        return [row[0] for row in self.search(query, k, **arguments)]

    def explain(self, query: Any, labels: float | None = None) -> dict[str, str]:
        given = {"query": text(query), "labels": labels}
        return dict(self.run("SELECT * FROM {explain}(%(query)s, labels => %(labels)s)", given).fetchall())

    def seen_by(self, connection: psycopg.Connection[Any]) -> Shop:
        """The same shop through another connection."""
        other = copy(self)
        other.connection = connection
        return other

    def violations(self) -> list[tuple[Any, ...]]:
        return self.execute(sql.SQL("SELECT * FROM foh.check(%s)"), [self.index]).fetchall()


def text(vector: Any) -> str | None:
    """A vector as its literal; anything else, None or broken text included, as it is."""
    if vector is None or isinstance(vector, str):
        return vector
    return "[" + ",".join(map(repr, map(float, vector))) + "]"


def vectors(count: int, seed: int = 0, dimensions: int = DIMENSIONS) -> np.ndarray[Any, Any]:
    """Random rows; float32, so that the database holds exactly these."""
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)


def exact_distance(rows: Any, query: Any, distance: str = "cosine") -> np.ndarray[Any, Any]:
    base, point = np.asarray(rows, dtype=np.float64), np.asarray(query, dtype=np.float64)
    if distance == "l2":
        return np.linalg.norm(base - point, axis=1)
    if distance == "ip":
        return -(base @ point)
    return 1 - base @ point / (np.linalg.norm(base, axis=1) * np.linalg.norm(point))
