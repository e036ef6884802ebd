"""Small real data: scikit-learn's handwritten digits, 1797 x 64, in tables of an application."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import psycopg
from sklearn.datasets import load_digits

from foh_pg.arrays.codes import hamming
from foh_pg.learners import RandomHyperplanes

# Rows that tests leave out of their tables: by other writers than the first 1500.
HELD_OUT = range(1500, 1797)


@cache
def digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    found = load_digits()
    return found.data.astype(np.float32), found.target


def vector(row: np.ndarray[Any, Any]) -> str:
    return "[" + ",".join(map(str, row.tolist())) + "]"


def create_table(connection: psycopg.Connection[Any], *, key: str = "int", labels: str = "text") -> None:
    connection.execute(
        f"CREATE TABLE digit (id {key} PRIMARY KEY, embedding extensions.vector(64), label {labels})"
    )


def insert(connection: psycopg.Connection[Any], rows: range | list[int], *, defer: bool = False) -> None:
    data, target = digits()
    with connection.transaction():
        if defer:
            connection.execute("SET LOCAL foh.defer = on")
        with connection.cursor().copy("COPY digit (id, embedding, label) FROM STDIN") as copy:
            for i in rows:
                copy.write_row((str(i), vector(data[i]), str(target[i])))


def create_index(connection: psycopg.Connection[Any], **arguments: Any) -> None:
    given = {"labels": "label", "bits": 32, **arguments}
    text = ", ".join(f"{name} => %({name})s" for name in given)
    connection.execute(
        f"SELECT foh.create_index('digits', source => 'digit', embedding => 'embedding', {text})", given
    )


def violations(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT * FROM foh.check('digits')").fetchall()


def waiting(connection: psycopg.Connection[Any]) -> int:
    """How many entries are in the stream."""
    row = connection.execute("SELECT count(*) FROM foh.digits_stream").fetchone()
    assert row is not None
    return int(row[0])


def precision(connection: psycopg.Connection[Any], queries: range, k: int = 10) -> float:
    """P@k by label of rows that are not in the table."""
    return float(precisions(connection, queries, k).mean())


def precisions(
    connection: psycopg.Connection[Any], queries: range, k: int = 10, shortlist: int | None = None
) -> np.ndarray[Any, Any]:
    """P@k of each query; with a shortlist of 0, of the codes alone."""
    data, target = digits()
    hits = []
    for i in queries:
        found = connection.execute(
            "SELECT d.label FROM foh.digits_search(%s::extensions.vector, %s, shortlist => %s) s JOIN digit d USING (id)",
            [vector(data[i]), k, shortlist],
        ).fetchall()
        assert len(found) == k
        hits.append(np.mean([label == str(target[i]) for (label,) in found]))
    return np.array(hits)


def unlearned_precisions(rows: range, queries: range, k: int = 10, bits: int = 32) -> np.ndarray[Any, Any]:
    """P@k of each query by the codes of random hyperplanes: what there is to surpass for one that learns."""
    data, target = digits()
    planes = RandomHyperplanes(bits, seed=0).partial_fit(data[rows])
    distances = hamming(planes.encode(data[queries]), planes.encode(data[rows]))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.asarray((target[rows][nearest] == target[queries][:, None]).mean(axis=1))


def gain(found: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The mean difference over the same queries, and its standard error."""
    difference = found - other
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
