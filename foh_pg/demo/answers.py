"""What searches find, and how good that is in both senses: tags shared with the query, and nearness to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from foh_pg.arrays.metrics import judge, mean_of
from foh_pg.demo.packages import Packages
from foh_pg.index import Index
from foh_pg.postgres.vectors import PackedVectors, register

Answers = list[list[int]]

TAGS = "SELECT id, name, tags FROM package WHERE id = ANY (%s)"
EXACT = """
SELECT q.at, r.id FROM unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (query, at)
CROSS JOIN LATERAL (SELECT p.id FROM package p ORDER BY p.embedding <=> q.query LIMIT %(k)s) r
"""
# In a table of its own, so that nothing else in the demo is answered by this index.
MAKE_HNSW = """
CREATE TABLE package_hnsw AS SELECT id, embedding FROM package;
CREATE INDEX ON package_hnsw USING hnsw (embedding vector_cosine_ops);
ANALYZE package_hnsw
"""
HNSW = EXACT.replace("FROM package p", "FROM package_hnsw p")
ALIKE = """
SELECT q.at, r.id FROM unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (query, at)
CROSS JOIN LATERAL (
    SELECT p.id FROM package p
    WHERE p.tags && ARRAY(SELECT jsonb_array_elements_text(%(tags)s::jsonb -> (q.at - 1)::int))
    ORDER BY p.embedding <=> q.query LIMIT %(k)s) r
"""
FOUND = """
SELECT f.at, p.tags, p.embedding <=> q.query
FROM unnest(%(at)s::int[], %(keys)s::int[]) AS f (at, key) JOIN package p ON p.id = f.key
JOIN unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (query, at) USING (at)
"""


class Quality(NamedTuple):
    """Means over the queries; see `foh_pg.arrays.metrics.judge`."""

    tags: float
    recall: float
    both: float
    distance: float


class Best(NamedTuple):
    """The nearest rows of each query by cosine: of all, and of those that share a tag with it."""

    nearest: Answers
    alike: Answers


def exact(connection: psycopg.Connection[Any], index: Index, queries: Packages, k: int) -> Best:
    """The k nearest by cosine, from scans of the table."""
    made = Best([[] for _ in queries.names], [[] for _ in queries.names])
    parameters = {
        "queries": PackedVectors(queries.vectors, index.about.vector_type),
        "tags": Jsonb([list(tags) for tags in queries.tags]),
        "k": k,
    }
    with connection.cursor() as cursor:
        register(cursor)
        for statement, found in zip((EXACT, ALIKE), made, strict=True):
            for number, key in cursor.execute(statement, parameters):
                found[number - 1].append(key)
    return made


def by_hnsw(connection: psycopg.Connection[Any], index: Index, queries: Packages, k: int) -> Answers:
    """The k rows that pgvector's HNSW finds with its defaults."""
    found: Answers = [[] for _ in queries.names]
    parameters = {"queries": PackedVectors(queries.vectors, index.about.vector_type), "k": k}
    with connection.cursor() as cursor, connection.transaction():
        register(cursor)
        # A few thousand rows are scanned as quickly, and the planner knows it.
        cursor.execute("SET LOCAL enable_seqscan = off")
        for number, key in cursor.execute(HNSW, parameters):
            found[number - 1].append(key)
    return found


def searched(index: Index, queries: Packages, k: int, labels: float | None = None) -> Answers:
    """The k rows that the index finds; `labels` is the dial of a search."""
    answers = index.search_many(queries.vectors, k, labels=labels)
    return [[match.key for match in answer] for answer in answers]


def quality(
    connection: psycopg.Connection[Any], index: Index, queries: Packages, found: Answers, best: Best
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
    shared = [0] * len(found)
    for at, tags, _ in rows:
        shared[at - 1] += bool(set(queries.tags[at - 1]) & set(tags))
    judged = [
        judge(keys, shared[i], max(1, len(keys)), best.nearest[i], best.alike[i])
        for i, keys in enumerate(found)
    ]
    precision, recall, both = (mean_of([one[measure] for one in judged]) for measure in range(3))
    return Quality(precision, recall, both, float(np.mean([distance for _, _, distance in rows])))


def packages(connection: psycopg.Connection[Any], keys: Sequence[int]) -> dict[int, tuple[str, list[str]]]:
    """Name and tags of packages, by key."""
    return {key: (name, tags) for key, name, tags in connection.execute(TAGS, [list(keys)])}
