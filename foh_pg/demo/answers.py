"""What searches find, and how good that is in both senses: tags shared with the query, and nearness to it.

Answers are positions of packages. The table has the packages in their order, with keys from 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import psycopg

from foh_pg.arrays.metrics import judge, mean_of
from foh_pg.clustering import unit
from foh_pg.demo.packages import Packages
from foh_pg.index import Index
from foh_pg.postgres.vectors import PackedVector, register

Answers = list[list[int]]

# In a table of its own, so that nothing else in the demo is answered by this index.
MAKE_HNSW = """
CREATE TABLE package_hnsw AS SELECT id, embedding FROM package;
CREATE INDEX ON package_hnsw USING hnsw (embedding vector_cosine_ops);
ANALYZE package_hnsw
"""
HNSW = "SELECT id FROM package_hnsw ORDER BY embedding <=> %s::vector LIMIT %s"


class Quality(NamedTuple):
    """Means over the queries; see `foh_pg.arrays.metrics.judge`."""

    tags: float
    recall: float
    both: float
    distance: float


class Truth:
    """How far packages are from the queries by exact cosine, and which of them share a tag with these."""

    def __init__(self, queries: Packages, packages: Packages) -> None:
        self.distances = 1 - unit(queries.vectors) @ unit(packages.vectors).T
        wanted, there = [set(tags) for tags in queries.tags], [set(tags) for tags in packages.tags]
        self.alike = np.array([[bool(one & other) for other in there] for one in wanted])

    def nearest(self, rows: int, k: int) -> Answers:
        """The k nearest of the packages that were written first."""
        order = np.argsort(self.distances[:, :rows], axis=1, kind="stable")
        return [found.tolist() for found in order[:, :k]]

    def judge(self, answers: Answers, rows: int) -> Quality:
        """How good answers are, beside those of exact cosine."""
        judged, distances = [], []
        for found, nearest, alike, far in zip(
            answers, self.nearest(rows, rows), self.alike, self.distances, strict=True
        ):
            k = max(1, len(found))
            both = [at for at in nearest if alike[at]][:k]
            judged.append(judge(found, int(alike[found].sum()), k, nearest[:k], both))
            distances += far[found].tolist()
        precision, recall, both10 = (mean_of([one[measure] for one in judged]) for measure in range(3))
        return Quality(precision, recall, both10, float(np.mean(distances)))


def by_hnsw(connection: psycopg.Connection[Any], query: Packages, k: int) -> list[int]:
    """The k rows that pgvector's HNSW finds with its defaults."""
    with connection.cursor() as cursor, connection.transaction():
        register(cursor)
        # A few thousand rows are scanned as quickly, and the planner knows it.
        cursor.execute("SET LOCAL enable_seqscan = off")
        return [key - 1 for (key,) in cursor.execute(HNSW, [PackedVector(query.vectors[0]), k])]


def searched(index: Index, queries: Packages, k: int, labels: float | None = None) -> Answers:
    """The k rows that the index finds; `labels` is the dial of a search."""
    answers = index.search_many(queries.vectors, k, labels=labels)
    return [[match.key - 1 for match in answer] for answer in answers]
