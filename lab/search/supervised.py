"""What people put together from labels and pgvector: a supervised projection, and a classifier with a filter.

Both learn a ridge regression of the labels from rows of the base. The client computes with it, so that it
costs the server nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector import HalfVector as Half
from psycopg import sql

from foh_pg.postgres.binary_copy import INT8, HalfVector, copy_in
from foh_pg.quality.classifier import Classifier
from lab.classifying import fit
from lab.protocol import Split
from lab.search.contenders import Contender, Form, index_size
from lab.search.table import Rows

# Rows that the regression is fit on at the most, and labels that are scored: the most frequent ones.
FIT_ROWS = 50_000
MOST_LABELS = 1000

PROJECTED = "items_scores"
FILTERED = "items_classified"
NEAREST = sql.SQL("SELECT id FROM items_scores ORDER BY scores <=> %b LIMIT {}")
SOME = sql.SQL("SELECT id FROM items_classified WHERE labels @> ARRAY[%b::text] LIMIT {}")
NEAREST_OF_LABEL = sql.SQL(
    "SELECT id FROM items_classified WHERE labels @> ARRAY[%b::text] ORDER BY embedding <=> %b LIMIT {}"
)


class Scores:
    """Ridge scores of the labels, learned from rows of the base when they are first asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @cached_property
    def classifier(self) -> Classifier:
        data, base = self.rows.data, self.rows.base
        if len(base) > FIT_ROWS:
            base = np.sort(np.random.default_rng(0).choice(base, FIT_ROWS, replace=False))
        return fit(Split(data, 0, self.rows.queries, base, base, len(base)))

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """Which labels are scored."""
        order = np.argsort(-self.classifier.shares, kind="stable")[:MOST_LABELS]
        return np.sort(order)

    def of(self, X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.asarray(self.classifier.project(X)[:, self.labels], dtype=np.float32)

    def likeliest(self, query: npt.NDArray[np.float32]) -> str:
        """The label that a query most likely has."""
        chances = self.classifier.project(query[None])[0] + self.classifier.shares
        return str(self.rows.data.label_names[int(np.argmax(chances))])


def projected(rows: Rows, ef: Sequence[int]) -> Contender:
    """The scores of all labels as a halfvec, with HNSW on it: near is what is alike by label."""
    scores = Scores(rows)

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        count = len(scores.labels)
        connection.execute(
            sql.SQL("CREATE TABLE {} (id bigint PRIMARY KEY, scores halfvec({}))").format(
                sql.Identifier(PROJECTED), sql.Literal(count)
            )
        )
        places = np.arange(len(rows.base))
        for part in np.array_split(places, max(1, len(places) // 20_000)):
            values = (part, scores.of(rows.data.X[rows.base[part]]))
            names = ("id", "scores")
            copy_in(connection, sql.Identifier(PROJECTED), names, (INT8, HalfVector(count)), values)
        connection.execute(
            "CREATE INDEX items_scores_hnsw ON items_scores USING hnsw (scores halfvec_cosine_ops)"
        )
        connection.execute("VACUUM ANALYZE items_scores")

    def form(k: int, search: int) -> Form:
        return Form(
            f"ef_search {search}",
            k,
            NEAREST.format(sql.Literal(k)),
            {"hnsw.ef_search": search},
            parameters=lambda query: (Half(scores.of(query[None])[0]),),
        )

    forms = [form(10, search) for search in ef] + [form(100, search) for search in ef if search >= 100]
    size = sql.SQL("SELECT pg_total_relation_size({})").format(sql.Literal(PROJECTED))
    return Contender("supervised projection, HNSW on halfvec", "items", build, size, forms)


def classified(rows: Rows) -> Contender:
    """The likeliest label of the query as a filter: any rows that have it, or the nearest of them."""
    scores = Scores(rows)

    def build(_dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        _ = scores.classifier
        connection.execute("CREATE INDEX items_classified_labels ON items_classified USING gin (labels)")
        connection.execute(
            "CREATE INDEX items_classified_hnsw ON items_classified USING hnsw (embedding vector_cosine_ops)"
        )

    def some(k: int) -> Form:
        return Form(
            "any of the label",
            k,
            SOME.format(sql.Literal(k)),
            curve="any",
            parameters=lambda query: (scores.likeliest(query),),
        )

    def nearest(k: int) -> Form:
        search = max(40, k)
        return Form(
            f"nearest of the label, ef_search {search}",
            k,
            NEAREST_OF_LABEL.format(sql.Literal(k)),
            {"hnsw.ef_search": search, "hnsw.iterative_scan": "relaxed_order"},
            curve="nearest",
            parameters=lambda query: (scores.likeliest(query), query),
        )

    forms = [make(k) for k in (10, 100) for make in (some, nearest)]
    both = (index_size("items_classified_hnsw"), index_size("items_classified_labels"))
    size = sql.SQL("SELECT ({}) + ({})").format(*both)
    return Contender("classify and filter", FILTERED, build, size, forms)
