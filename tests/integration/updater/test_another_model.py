"""The embedding model changes: updates and doctor notice, and say what to run; a replaced column is learned anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.doctor import examine
from foh_pg.updater import build, rebuild, update
from tests.support.digits import create_index, create_table, digits, insert, vector
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

ROWS = range(1200)


def learn(database: Database) -> None:
    connection = database.connect()
    create_table(connection)
    insert(connection, ROWS)
    create_index(connection, options='{"held_out": 0.2}')
    build(database.dsn(), "digits")


pytestmark = pytest.mark.prepared(by=learn)


@pytest.fixture
def learned(connection: Connection) -> Connection:
    return connection


def turned() -> np.ndarray[Any, Any]:
    """The digits as another model would embed them: the same neighbors, in other directions."""
    rows = digits()[0]
    centered = rows - rows.mean(axis=0)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(64, 64)))[0]
    return np.asarray(centered @ turn, dtype=np.float32)


def embed_anew(connection: Connection, column: str, rows: range) -> None:
    new = turned()
    connection.cursor().executemany(
        f"UPDATE digit SET {column} = %s WHERE id = %s", [(vector(new[i]), i) for i in rows]
    )


def found_by_doctor(database: Database) -> list[str]:
    with database.connect("app_owner") as connection:
        connection.row_factory = psycopg.rows.dict_row
        return [f.cure for f in examine(connection).findings if "quite another embedding" in f.found]


def precision(connection: Connection) -> float:
    new, target = turned(), digits()[1]
    hits = []
    for i in range(1500, 1600):
        rows = connection.execute(
            "SELECT d.label FROM foh.digits_search(%s::extensions.vector, 10, shortlist => 0, labels => 1) s JOIN digit d USING (id)",
            [vector(new[i])],
        ).fetchall()
        hits.append(np.mean([label == str(target[i]) for (label,) in rows]))
    return float(np.mean(hits))


def test_in_place(learned: Connection, database: Database) -> None:
    # Labels, and vectors that change a little, say nothing about the model.
    learned.execute("UPDATE digit SET label = label || ' ' WHERE id < 600")
    learned.execute(
        "UPDATE digit SET embedding = embedding OPERATOR(extensions.+) (SELECT array_fill(0.01::real, ARRAY[64])::extensions.vector)"
    )
    assert not [note for note in update(database.dsn(), "digits").notes if "another embedding" in note]
    assert found_by_doctor(database) == []
    embed_anew(learned, "embedding", ROWS)
    run = update(database.dsn(), "digits")
    [note] = [note for note in run.notes if "another embedding" in note]
    assert "1200 of 1200 rows have got quite another embedding" in note
    assert "foh-pg build digits --again" in note
    assert found_by_doctor(database) == ["foh-pg build digits --again"]
    rebuild(database.dsn(), "digits")
    assert found_by_doctor(database) == []


def test_another_column_is_learned_anew(learned: Connection, database: Database) -> None:
    learned.execute("ALTER TABLE digit ADD COLUMN newer extensions.vector(64)")
    embed_anew(learned, "newer", ROWS)
    learned.execute("SELECT foh.refresh('digits', embedding => 'newer')")
    run = update(database.dsn(), "digits")
    assert any("the index has learned again" in note for note in run.notes)
    after = precision(learned)
    rebuild(database.dsn(), "digits")
    assert after > precision(learned) - 0.03


def test_a_full_update_without_a_change_keeps_what_was_learned(
    learned: Connection, database: Database
) -> None:
    run = update(database.dsn(), "digits", full=True)
    assert not [note for note in run.notes if "learned again" in note]
