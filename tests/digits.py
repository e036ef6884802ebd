"""Small real data: scikit-learn's handwritten digits, 1797 x 64, in tables of an application."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import psycopg
from sklearn.datasets import load_digits


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


def precision(connection: psycopg.Connection[Any], queries: range, k: int = 10) -> float:
    """P@k by label of rows that are not in the table."""
    data, target = digits()
    hits = []
    for i in queries:
        found = connection.execute(
            "SELECT d.label FROM foh.digits_search(%s::extensions.vector, %s) s JOIN digit d USING (id)",
            [vector(data[i]), k],
        ).fetchall()
        assert len(found) == k
        hits.append(np.mean([label == str(target[i]) for (label,) in found]))
    return float(np.mean(hits))
