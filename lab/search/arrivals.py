"""Rows that arrive in order in a real table, and how good searches are meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foh_pg.arrays.metrics import mean_of
from foh_pg.errors import InputError
from lab.dataset import Dataset
from lab.search import table
from lab.search.measure import judge_by

Places = npt.NDArray[np.int64]
FIRST, RANKS = 10, 100


@dataclass(frozen=True)
class Arrivals:
    """The rows of a data set in the order of the file, without those that only ask."""

    # Base and queries; a row's key in the table is its place in the base.
    rows: table.Rows
    # `random`: the queries were drawn once from everywhere; `next`: rows that arrive next ask, before they
    # are in the table, which shows how a model does on what is new.
    ask: str

    @classmethod
    def of(cls, data: Dataset, rows: int | None, queries: int, ask: str, seed: int) -> Arrivals:
        if ask not in ("random", "next"):
            raise InputError(f"ask is {ask!r}, it must be random or next")
        if ask == "random":
            return cls(table.draw(data, queries, rows, seed), ask)
        chosen = np.random.default_rng(seed).integers(0, 1 << 62, queries)
        return cls(table.Rows(data, np.arange(min(len(data.X), rows or len(data.X))), chosen), ask)

    def __len__(self) -> int:
        return len(self.rows.base)

    def asking(self, arrived: int, batch: int) -> table.Rows:
        """The base with the queries of this moment."""
        if self.ask == "random":
            return self.rows
        coming = self.rows.base[arrived : arrived + batch]
        chosen = coming[np.unique(self.rows.queries % len(coming))]
        return table.Rows(self.rows.data, self.rows.base, chosen)


def quality(
    connection: psycopg.Connection[Any], index: str, rows: table.Rows, arrived: int
) -> dict[str, float]:
    """By label and by nearness what the SQL search finds among the rows there are, by default options."""
    present = table.Rows(rows.data, rows.base[:arrived], rows.queries)
    found = [_ask(connection, index, rows, k) for k in (FIRST, RANKS)]
    return judge(present, *found)


def _ask(connection: psycopg.Connection[Any], index: str, rows: table.Rows, k: int) -> list[Places]:
    statement = sql.SQL("SELECT r.id FROM {}(%b, {}) r").format(
        sql.Identifier("foh", f"{index}_search"), sql.Literal(k)
    )
    with connection.cursor(binary=True) as cursor:
        return [
            np.array([row[0] for row in cursor.execute(statement, (query,), prepare=True)], dtype=np.int64)
            for query in rows.data.X[rows.queries]
        ]


def exact_quality(rows: table.Rows, arrived: int) -> dict[str, float]:
    """The same by exact cosine over the rows that have arrived."""
    present = table.Rows(rows.data, rows.base[:arrived], rows.queries)
    nearest = present.truth(RANKS).nearest
    return judge(present, [keys[:FIRST] for keys in nearest], nearest)


def judge(rows: table.Rows, first: list[Places], found: list[Places]) -> dict[str, float]:
    """Of the first hundred P, both and mAP; of the first ten P, recall, both, and the mean distance."""
    judged = judge_by(rows, rows.truth(RANKS))
    ten = [judged(query, keys.tolist(), FIRST) for query, keys in enumerate(first)]
    hundred = [judged(query, keys.tolist(), RANKS) for query, keys in enumerate(found)]

    def mean(figures: list[dict[str, float]], name: str) -> float:
        return round(mean_of([figure[name] for figure in figures]), 5)

    return {
        "precision": mean(hundred, "precision"),
        "both": mean(hundred, "both"),
        "map": mean(hundred, "average_precision"),
        "precision10": mean(ten, "precision"),
        "recall10": mean(ten, "recall"),
        "both10": mean(ten, "both"),
        "distance10": mean(ten, "distance"),
    }


def clone(dsn: str, name: str) -> str:
    """Copy the whole database, so that a trial does not change the one that is measured."""
    source = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(make_conninfo(dsn, dbname="template1"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(str(source))
            )
        )
    return make_conninfo(dsn, dbname=name)


def drop_clone(dsn: str) -> None:
    name = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(make_conninfo(dsn, dbname="template1"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(str(name))))
