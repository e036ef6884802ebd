"""The contenders of `bench search` in a server: that they answer what they say."""

from __future__ import annotations

import numpy as np
import pytest
from psycopg import sql

from lab import data as datasets
from lab.search import (
    arrivals,
    ours,
    pgvector,
    stages,
    supervised,
    table,
)
from lab.search.measure import Backend, built, judge_by

BITS = 32


@pytest.fixture(scope="module")
def rows():
    return table.draw(datasets.load("digits"), 30, 900, 0)


@pytest.fixture(scope="module")
def servers():
    """A server with a database for the contenders and an empty one for the stages."""
    with table.database() as dsn:
        yield dsn, arrivals.clone(dsn, "stages")


@pytest.fixture(scope="module")
def contenders(servers, rows):
    dsn, _ = servers
    line_up = [
        ours.ours("anchored", "foh", BITS),
        pgvector.graph("pgvector HNSW", "items_graph", sql.SQL(""), "vector_cosine_ops", (40,)),
        pgvector.exact(),
        pgvector.quantized("items_signs", rows.dimensions, (40,)),
        supervised.projected(rows, (40,)),
        supervised.classified(rows),
    ]
    with table.open_connection(dsn) as connection:
        table.load(connection, rows)
        records = [built(dsn, connection, contender, rows) for contender in line_up]
    return {contender.name: (contender, record) for contender, record in zip(line_up, records, strict=True)}


@pytest.fixture
def connection(servers):
    with table.open_connection(servers[0]) as connection:
        yield connection


def test_rivals_that_know_the_labels(connection, contenders, rows):
    """A projection finds rows that are alike by label, a filter rows of one label, the nearest of them first."""
    backend, judge = Backend(connection), judge_by(rows, rows.truth(10))
    found = {}
    for name in ("exact", "supervised projection", "classify and filter"):
        contender, _ = next(found for title, found in contenders.items() if title.startswith(name))
        for form in contender.forms:
            if form.k == 10:
                answers = [backend.ask(form, query) for query in rows.data.X[rows.queries]]
                judged = [judge(i, answer, 10) for i, answer in enumerate(answers)]
                found[form.name] = {key: np.mean([one[key] for one in judged]) for key in judged[0]}
    assert found["all rows"]["recall"] == 1
    assert found["ef_search 40"]["precision"] > 0.8
    some, nearest = found["any of the label"], found["nearest of the label, ef_search 40"]
    assert some["precision"] == pytest.approx(nearest["precision"])
    assert some["recall"] < 0.3 < nearest["recall"]
    assert found["all rows"]["distance"] < nearest["distance"] < some["distance"]


def test_every_row_is_on_a_list_of_ours(contenders):
    assert contenders["foh"][1]["reached"] == 1
    assert "reached" not in contenders["pgvector HNSW"][1]


def test_stages(servers, rows):
    _, empty = servers
    plan = stages.Plan.of(len(rows.base), stages=2, queries=10, bits=BITS)
    found = list(stages.measure(empty, rows, plan, lambda _: None))
    assert [(r["method"], r["stage"]) for r in found] == [
        (method, stage) for stage in (1, 2) for method in (stages.LISTS, stages.ALL)
    ]
    assert [r["rows"] for r in found[::2]] == [len(rows.base) - plan.batch, len(rows.base)]
    for r in found:
        assert r["asked"] == 10
        assert r["returned"] == 1
        assert r["precision"] > 0.5
        assert r["update_wall"] > 0
        # Only who has an updater of its own learns.
        assert (r["learn_wall"] > 0) == (r["method"] != stages.ALL)
        assert r["rows_encoded"] == r["rows"] or r["method"] == stages.LISTS
        assert r["rows_encoded"] <= r["rows"]
