"""The search in SQL and the trial in Python, which chooses how to rank, give the same answers to random queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.model.ranking import LOOKED, LOOKED_TIMES, VOTERS, Ranking
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.runs.session import open_session
from foh_pg.tables.centers import read_centers
from foh_pg.tables.index_row import find_index
from foh_pg.tables.source import Rows, read_sample
from foh_pg.updater import build
from foh_pg.updater.gathering import K
from foh_pg.updater.served_model import read_served
from foh_pg.updater.trial import Answers, Ints, Trial

Connection = psycopg.Connection[Any]

ROWS, QUERIES, DIMENSIONS, LABELS = 1500, 40, 40, 8
MODEL = "UPDATE foh.model SET weight_code = %s, weight_votes = %s"
SEARCH = "SELECT id FROM foh.items_search(%s, 10, probes => %s, shortlist => %s)"


class Answering(Trial):
    """A trial that keeps its last answers, and says which of them ties leave open."""

    answered: Ints

    def _judge(self, kept: Ints) -> Answers:
        self.answered = np.take_along_axis(self.near["row"], kept, axis=1)
        return super()._judge(kept)

    def tied(self, ranking: Ranking) -> np.ndarray[Any, Any]:
        """Whether the last row that is looked at, votes or is read is as good as the next one."""
        assert ranking.probes is not None
        assert ranking.shortlist is not None
        looked = max(LOOKED, LOOKED_TIMES * ranking.shortlist)
        there, near = self.listed(ranking.probes), self.near["far"]
        found = self.looked(ranking.probes, looked)
        labelled = found.labels > 0
        cuts = [
            (np.where(there, near, np.inf), looked),
            (np.where(labelled, found.estimates + ranking.code * found.codes, np.inf), VOTERS),
            (found.estimates * (1 + found.lean(ranking)), ranking.shortlist),
        ]
        return np.any([_tied(values, count) for values, count in cuts], axis=0)


def _tied(values: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    ordered = np.sort(values, axis=1)
    last, following = ordered[:, count - 1], ordered[:, count]
    return np.isclose(last, following, rtol=0, atol=1e-9) & np.isfinite(last)


def texts(vectors: np.ndarray[Any, Any]) -> list[str]:
    return ["[" + ",".join(f"{number:.6g}" for number in row) + "]" for row in vectors]


def rows_of(rng: np.random.Generator, count: int, means: np.ndarray[Any, Any]) -> tuple[Any, Sequence[Any]]:
    """Vectors around the mean of a first label; some rows have further labels, and some none."""
    kinds = rng.integers(len(means), size=count)
    vectors = (means[kinds] + rng.normal(size=(count, means.shape[1]))).astype(np.float32)
    extra = rng.integers(len(means), size=(count, 2))
    numbers = rng.integers(4, size=count)
    labels = [
        [f"l{n}" for n in {kind, *more[: few - 1]}] if few else []
        for kind, more, few in zip(kinds, extra, numbers, strict=True)
    ]
    return vectors, labels


@pytest.mark.one_version(but={"distance": ["cosine"]})
@pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
def test_whole_answers_are_those_of_sql(connection: Connection, distance: str) -> None:
    """Areas, centers, lists, bits, votes, shortlist and distances: whatever is read, and whatever labels count."""
    rng = np.random.default_rng(5)
    means = 0.5 * rng.normal(size=(LABELS, DIMENSIONS))
    vectors, labels = rows_of(rng, ROWS, means)
    connection.execute(
        f"CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector({DIMENSIONS}), labels text[])"
    )
    with connection.cursor().copy("COPY item FROM STDIN") as copy:
        for row in zip(range(ROWS), texts(vectors), labels, strict=True):
            copy.write_row(row)
    options = json.dumps({"learn_rows": 1000, "exact_rows": 0, "centers": 100, "geometry": 10240})
    connection.execute(
        "SELECT foh.create_index('items', 'item', 'embedding', 'labels', bits => 32, distance => %s, options => %s)",
        [distance, options],
    )
    build(connection, "items")
    with open_session(connection) as session:
        index = find_index(session, "items")
        with session.snapshot():
            rows, levels = read_sample(session, index, 1.0), read_centers(session, index).levels
            model = read_served(session, index).model
    assert len(rows) == ROWS
    assert len(levels.areas) > 1
    asked = texts(rows_of(rng, QUERIES, means)[0])
    queries = np.array([json.loads(text) for text in asked], dtype=np.float32)
    asking = Rows(-1 - np.arange(QUERIES), queries, Ragged.of([["l0"]] * QUERIES, object))
    trial = Answering.of(index, model, rows, asking, levels)
    compared = 0
    for code, votes in ((0.2, 1.0), (0.1, 0.05), (0.4, 3.0), (0.0, 0.0)):
        connection.execute(MODEL, [code, votes])
        for probes, shortlist in zip(
            rng.integers(4, 100, size=3).tolist(), rng.integers(K, 60, size=3).tolist(), strict=True
        ):
            ranking = replace(Ranking(), code=code, votes=votes, probes=probes, shortlist=shortlist)
            trial.ask(ranking)
            for query, rows_there, tied in zip(asked, trial.answered, trial.tied(ranking), strict=True):
                if not tied:
                    found = [key for (key,) in connection.execute(SEARCH, [query, probes, shortlist])]
                    assert found == rows.keys[rows_there].tolist()
                    compared += 1
    # Ties leave the others open.
    assert compared > 0.5 * 12 * QUERIES
