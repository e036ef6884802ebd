"""What searches find, and how good that is in both senses: tags shared with the query, and nearness to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import psycopg

from foh_pg.demo.packages import Packages
from foh_pg.index import Index
from foh_pg.postgres.vectors import PackedVectors, register

Answers = list[list[int]]

TAGS = "SELECT id, name, tags FROM package WHERE id = ANY (%s)"
EXACT = """
SELECT q.at, r.id FROM unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (query, at)
CROSS JOIN LATERAL (SELECT p.id FROM package p ORDER BY p.embedding <=> q.query LIMIT %(k)s) r
"""
FOUND = """
SELECT f.at, p.tags, p.embedding <=> q.query
FROM unnest(%(at)s::int[], %(keys)s::int[]) AS f (at, key) JOIN package p ON p.id = f.key
JOIN unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (query, at) USING (at)
"""


class Quality(NamedTuple):
    """Of all rows found: the share with a tag of their query, the exact neighbors, the mean distance."""

    tags: float
    recall: float
    distance: float


def exact(connection: psycopg.Connection[Any], index: Index, queries: Packages, k: int) -> Answers:
    """The k nearest by cosine, from a scan of the table."""
    found: Answers = [[] for _ in queries.names]
    with connection.cursor() as cursor:
        register(cursor)
        parameters = {"queries": PackedVectors(queries.vectors, index.about.vector_type), "k": k}
        for number, key in cursor.execute(EXACT, parameters):
            found[number - 1].append(key)
    return found


def searched(index: Index, queries: Packages, k: int, labels: float | None = None) -> Answers:
    """The k rows that the index finds; `labels` is the dial of a search."""
    answers = index.search_many(queries.vectors, k, labels=labels)
    return [[match.key for match in answer] for answer in answers]


def quality(
    connection: psycopg.Connection[Any], index: Index, queries: Packages, found: Answers, nearest: Answers
) -> Quality:
    """How good answers are, beside those of exact cosine."""
    parameters = {
        "at": [at for at, keys in enumerate(found, 1) for _ in keys],
        "keys": [key for keys in found for key in keys],
        "queries": PackedVectors(queries.vectors, index.about.vector_type),
    }
    with connection.cursor() as cursor:
        register(cursor)
        rows = cursor.execute(FOUND, parameters).fetchall()
    shared = [bool(set(queries.tags[at - 1]) & set(tags)) for at, tags, _ in rows]
    exact_hits = sum(len(set(keys) & set(best)) for keys, best in zip(found, nearest, strict=True))
    return Quality(
        float(np.mean(shared)),
        exact_hits / max(1, sum(map(len, nearest))),
        float(np.mean([distance for _, _, distance in rows])),
    )


def packages(connection: psycopg.Connection[Any], keys: Sequence[int]) -> dict[int, tuple[str, list[str]]]:
    """Name and tags of packages, by key."""
    return {key: (name, tags) for key, name, tags in connection.execute(TAGS, [list(keys)])}
