"""How many of the rows that a search finds share a tag with the query: the index beside exact cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from foh_pg.demo.packages import Packages
from foh_pg.index import Index
from foh_pg.index.vectors import QueryVectors, register

TAGS = "SELECT id, name, tags FROM package WHERE id = ANY (%s)"
EXACT = """
SELECT q.at, r.id FROM unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (query, at)
CROSS JOIN LATERAL (SELECT p.id FROM package p ORDER BY p.embedding <=> q.query LIMIT %(k)s) r
"""


def exact(connection: psycopg.Connection[Any], index: Index, queries: Packages, k: int) -> list[list[int]]:
    """The k nearest by cosine, from a scan of the table."""
    found: list[list[int]] = [[] for _ in queries.names]
    with connection.cursor() as cursor:
        register(cursor)
        parameters = {"queries": QueryVectors(queries.vectors, index.about.vector_type), "k": k}
        for number, key in cursor.execute(EXACT, parameters):
            found[number - 1].append(key)
    return found


def learned(index: Index, queries: Packages, k: int) -> list[list[int]]:
    return [[match.key for match in answer] for answer in index.search_many(queries.vectors, k)]


def precision(
    connection: psycopg.Connection[Any], queries: Packages, found: Sequence[Sequence[int]]
) -> float:
    """The share of the rows found that have a tag of their query."""
    tags = rows(connection, [key for keys in found for key in keys])
    hits = [
        bool(set(wanted) & set(tags[key][1]))
        for wanted, keys in zip(queries.tags, found, strict=True)
        for key in keys
    ]
    return sum(hits) / max(1, len(hits))


def rows(connection: psycopg.Connection[Any], keys: Sequence[int]) -> dict[int, tuple[str, list[str]]]:
    """Name and tags of packages, by key."""
    return {key: (name, tags) for key, name, tags in connection.execute(TAGS, [list(keys)])}
