"""Searches among the rows that pass a condition on columns or labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.updater import update
from lab.search import table
from lab.search.contenders import Form
from lab.search.measure import Backend, Record, interleave, judge_by
from lab.search.ours import table_of

TABLE = table_of("anchored")
OURS = sql.SQL("SELECT r.id FROM foh.anchored_search(%b, 10, labels => 0, {} => {}) r")
# The same rows with pgvector's graph, and without: there the planner has the indexes on columns alone.
PLAIN = sql.SQL("SELECT id FROM {} WHERE {} ORDER BY embedding <=> %b LIMIT 10")
QUERIES = 200
# What reads all rows takes long.
MOST_PLANNED = 40
# Per cent of the rows, for the columns price and kin.
UNRELATED, RELATED = (100, 50, 20, 10, 5, 2, 1, 0.5, 0.1, 0.01), (50, 10, 2)


@dataclass(frozen=True)
class Condition:
    """What rows must fulfil, for a table, in SQL and as data, and which rows of the base do."""

    title: str
    where: sql.Composed
    match: dict[str, Any]
    passing: npt.NDArray[np.int64]


def measure(
    connection: psycopg.Connection[Any], rows: table.Rows, unrelated: tuple[float, ...] = UNRELATED
) -> Iterator[Record]:
    """Our two kinds of conditions beside pgvector's iterative scans and the plan without a graph."""
    asking = table.Rows(rows.data, rows.base, rows.queries[:QUERIES])
    for name in (TABLE, "items_graph"):
        for definition in ("(price)", "(kin)", "USING gin (labels)"):
            create = sql.SQL("CREATE INDEX ON {} " + definition)
            connection.execute(create.format(sql.Identifier(name)))
        connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(name)))
    # From here on the lists have the columns beside the bits.
    connection.execute("SELECT foh.alter_index('anchored', include => '{price, kin}')")
    update(connection, "anchored")
    for condition in conditions(rows, unrelated):
        judge = judge_by(asking, asking.truth(10, condition.passing))
        found = interleave(Backend(connection), _forms(condition), asking.data.X[asking.queries], judge)
        for record in found:
            yield {"experiment": "filter", "keeps": condition.title, **record}


def conditions(rows: table.Rows, unrelated: tuple[float, ...] = UNRELATED) -> Iterator[Condition]:
    """The conditions of the table: a range of price, a range of kin, the commonest label."""
    places = np.arange(len(rows.base))
    for column, values, shares in (
        ("price", table.price_of(places), unrelated),
        ("kin", table.kin_of(rows, places), RELATED),
    ):
        for share in shares:
            bound = int(np.quantile(values, share / 100)) + 1
            where = sql.SQL("{} < {}").format(sql.Identifier(column), sql.Literal(bound))
            passing = np.flatnonzero(values < bound)
            yield Condition(f"{column}, {share:g} %", where, {column: {"<": bound}}, passing)
    sets = rows.data.sets.take(rows.base)
    common = int(np.bincount(sets.ids).argmax())
    label = rows.data.label_names[common]
    where = sql.SQL("labels @> ARRAY[{}]").format(sql.Literal(label))
    passing = np.unique(np.repeat(places, sets.counts)[sets.ids == common])
    yield Condition(f"label, {len(passing) / len(places):.0%}", where, {"labels": [label]}, passing)


def _forms(condition: Condition) -> list[tuple[str, Form]]:
    match = OURS.format(sql.SQL("match"), sql.Literal(Jsonb(condition.match)))
    filter_ = OURS.format(sql.SQL("filter"), sql.Literal(condition.where.as_string(None)))
    graph = PLAIN.format(sql.Identifier("items_graph"), condition.where)
    planned = PLAIN.format(sql.Identifier(TABLE), condition.where)
    return [
        ("foh", Form("match", 10, match)),
        ("foh", Form("filter", 10, filter_)),
        ("pgvector HNSW", Form("iterative scan", 10, graph, _iterative("relaxed_order"))),
        ("pgvector HNSW", Form("iterative scan, strict order", 10, graph, _iterative("strict_order"))),
        ("no vector index", Form("what the planner takes", 10, planned, most=MOST_PLANNED)),
    ]


def _iterative(order: str) -> dict[str, str | int]:
    # pgvector goes on searching until the condition has let enough rows through, up to hnsw.max_scan_tuples.
    return {"hnsw.ef_search": 40, "hnsw.iterative_scan": order}
