"""An index so large that lists and areas do not become longer, but more: here, one whose lists are short."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg import clustering
from foh_pg.clustering import levels
from foh_pg.geometry import Geometry
from foh_pg.runs.session import open_session
from foh_pg.tables.centers import Centers, read_centers
from foh_pg.tables.index_row import IndexRow, find_index
from foh_pg.updater import build, maintain, plan, rebuild, refill, update
from foh_pg.updater.served_model import read_served
from tests.support.digits import create_index, create_table, digits, insert, vector, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]
PROBES, K = 6, 10


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a table of a million rows reaches, a small one reaches here."""
    monkeypatch.setattr(levels, "LIST_ROWS", 5)
    monkeypatch.setattr(levels, "AREA_CENTERS", 5)
    monkeypatch.setattr(maintain, "SHORT_LIST", 5)
    monkeypatch.setattr(maintain, "LONG_LIST", 1.5)
    monkeypatch.setattr(maintain, "SHORT_AREA", 5)
    # A young index would be filled again as it grows; this one is to grow by splits.
    monkeypatch.setattr(refill, "YOUNG_ROWS", 0)


@pytest.fixture(params=["cosine", "l2"])
def table(request: pytest.FixtureRequest, connection: Connection, database: Database) -> Connection:
    create_table(connection)
    insert(connection, range(400))
    create_index(connection, distance=request.param, options='{"exact_rows": 0}')
    build(database.dsn(), "digits")
    return connection


def read(database: Database) -> tuple[IndexRow, Centers, Geometry]:
    with open_session(database.dsn()) as session:
        index = find_index(session, "digits")
        with session.snapshot():
            geometry = read_served(session, index).model.geometry
            assert geometry is not None
            return index, read_centers(session, index), geometry


def scaled(index: IndexRow, rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if index.distance == "cosine" else rows


def distances(index: IndexRow, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return 1 - rows @ query if index.distance == "cosine" else np.linalg.norm(rows - query, axis=1)


def packed(bits: str) -> np.ndarray:
    return np.packbits(np.frombuffer(bits.encode(), dtype=np.uint8)[None] - ord("0"), axis=1)


def look(connection: Connection, database: Database) -> Centers:
    """Searches read what they should, and rows get the home that the updater would give them."""
    index, centers, geometry = read(database)
    data = scaled(index, digits()[0])
    levels = (centers.areas, centers.bits, centers.area)
    for query in data[1700:1720]:
        (lists,) = connection.execute(
            "SELECT ARRAY(SELECT n.center FROM foh.digits_readby(%s::extensions.vector, %s) n)",
            [vector(query), PROBES],
        ).fetchone() or ([],)
        read_too = clustering.ListsRead(geometry.query_looks(query[None]), levels).by(PROBES)[0]
        assert sorted(lists) == centers.ids[read_too].tolist()
        listed = connection.execute(
            """SELECT id FROM foh.digits_list, unnest(ids) id WHERE center = ANY (%(lists)s)
               UNION SELECT key FROM foh.digits_stream WHERE center = ANY (%(lists)s)""",
            {"lists": lists},
        )
        expected = np.sort(distances(index, query, data[[key for (key,) in listed]]))[:K]
        answer = connection.execute(
            "SELECT id FROM foh.digits_search(%s::extensions.vector, %s, probes => %s, shortlist => 1000, labels => 0)",
            [vector(query), K, PROBES],
        ).fetchall()
        ranked = distances(index, query, data[[key for (key,) in answer]])
        np.testing.assert_allclose(ranked, expected, rtol=1e-4)
    placed = connection.execute(
        "SELECT p.geometry::text, p.center FROM digit d, foh.digits_place(d.embedding, ARRAY[d.label]) p"
    ).fetchall()
    bits = np.concatenate([packed(geometry) for geometry, _ in placed])
    assert centers.ids[centers.homes(bits, index.layout)].tolist() == [center for _, center in placed]
    assert violations(connection) == []
    return centers


def test_it_grows(table: Connection, database: Database) -> None:
    built = look(table, database)
    assert (len(built), len(built.areas)) == (80, 16)
    insert(table, range(400, 1400))
    # Rows that wait are found at the home that the updater would give them.
    look(table, database)
    update(database.dsn(), "digits", batch_size=250)
    grown = look(table, database)
    assert len(grown) > 2 * len(built)
    assert len(grown.areas) > 2 * len(built.areas)


def test_made_anew(table: Connection, database: Database) -> None:
    insert(table, range(400, 1000))
    rebuild(database.dsn(), "digits")
    made = look(table, database)
    assert len(made) == 200
    # The power 2/3 of the centers, which is less than one for every five; an area that no center is nearest to is left out.
    assert clustering.target_areas(200) == 34
    assert 31 <= len(made.areas) <= 34


def test_no_more_centers_than_a_sample_can_tell(
    connection: Connection, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(connection)
    insert(connection, range(400))
    create_index(connection)
    monkeypatch.setattr(plan, "SAMPLE_BYTES", 4 * 64 * 100)
    build(database.dsn(), "digits")
    _, centers, _ = read(database)
    assert 30 <= len(centers) <= 65
    assert violations(connection) == []
