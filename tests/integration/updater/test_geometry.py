"""What lists hold: geometry bits, signatures and codes, the same in Python and in triggers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.arrays.codes import unpack
from foh_pg.geometry import copies_of, default_bits, padded_numbers, turned_numbers
from foh_pg.runs.session import open_session
from foh_pg.tables.index_row import find_index
from foh_pg.updater import build, update
from foh_pg.updater.served_model import read_served
from tests.support.digits import create_index, create_table, insert, violations, waiting

Connection = psycopg.Connection[Any]

LISTED = """
SELECT array_agg((e.key, e.geometry, e.marks) ORDER BY e.key)
FROM foh.digits_list l, unnest(l.ids, l.geometry, l.marks) AS e (key, geometry, marks) WHERE e.key >= %s
"""
STREAMED = """
SELECT array_agg((key, geometry, marks) ORDER BY key), array_agg((key, center) ORDER BY key)
FROM foh.digits_stream
"""


MARKS = """
SELECT array_agg((e.key, e.marks) ORDER BY e.key)
FROM foh.digits_list l, unnest(l.ids, l.marks) AS e (key, marks) WHERE e.key < 900
"""


def entries(connection: Connection) -> Any:
    """Keys of the first rows with their lists and geometry bits."""
    return rows_of(
        connection,
        "SELECT array_agg((e.key, l.center, e.geometry) ORDER BY e.key)"
        " FROM foh.digits_list l, unnest(l.ids, l.geometry) AS e (key, geometry) WHERE e.key < 900",
    )


def rows_of(connection: Connection, query: str, *values: Any) -> Any:
    found = connection.execute(query, values).fetchone()
    assert found is not None
    return found


@pytest.mark.one_version
@pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("geometry", [24, 64, 192])
def test_triggers_and_updater_agree(connection: Connection, distance: str, geometry: int) -> None:
    create_table(connection)
    insert(connection, range(600))
    options = json.dumps({"geometry": geometry, "learn_rows": 10_000})
    create_index(connection, distance=distance, options=options)
    build(connection, "digits")
    insert(connection, range(600, 800))
    written, homes = rows_of(connection, STREAMED)
    update(connection, "digits")
    assert waiting(connection) == 0
    (listed,) = rows_of(connection, LISTED, 600)
    # Learned codes are products, added up in another order: one that is nearly zero may fall on either side.
    assert sum(a == b for a, b in zip(written, listed, strict=True)) >= 195
    (items,) = rows_of(
        connection, "SELECT array_agg((key, home) ORDER BY key) FROM foh.digits_item WHERE key >= 600"
    )
    assert sum(a == b for a, b in zip(homes, items, strict=True)) >= 195
    assert violations(connection) == []


def test_encoding_again_moves_nothing(connection: Connection) -> None:
    create_table(connection)
    insert(connection, range(900))
    create_index(connection, options=json.dumps({"learn_rows": 300, "max_stale": 0}))
    build(connection, "digits")
    before = entries(connection)
    marks = rows_of(connection, MARKS)
    insert(connection, range(900, 1200))
    run = update(connection, "digits")
    assert run.rows_encoded > 0
    assert "moved" not in run.metrics
    assert entries(connection) == before
    assert rows_of(connection, MARKS) != marks
    assert violations(connection) == []


def test_long_keys(connection: Connection) -> None:
    """One key of a megabyte costs a megabyte, not one for each of the keys that are remembered."""
    create_table(connection, key="text")
    insert(connection, range(600))
    connection.execute("UPDATE digit SET id = repeat(md5(id), 60) WHERE id = '7'")
    create_index(connection)
    build(connection, "digits")
    (size,) = rows_of(connection, "SELECT coalesce(max(length(data)), 0) FROM foh.model_state")
    assert size < 1 << 20
    assert violations(connection) == []


def query_looks(connection: Connection, distance: str, query: Any) -> list[str]:
    """The bits of a query, and those of its numbers moved up and down, as the database makes them."""
    compared = {
        "cosine": "extensions.l2_normalize(v.x)",
        "l2": "v.x",
        "ip": f"extensions.l2_normalize(extensions.subvector(v.x, 1, {min(len(query), 15_999)})"
        " OPERATOR(extensions.||) '[0]'::extensions.vector)",
    }
    (looks,) = rows_of(
        connection,
        f"SELECT foh.wide_quantize({compared[distance]}, g.signs::extensions.vector, g.threshold, true)::text[]"
        " FROM foh.wide_quantizer g, (SELECT %s::real[]::extensions.vector AS x) v",
        query.tolist(),
    )
    return list(looks)


@pytest.mark.one_version
@pytest.mark.parametrize(
    ("dimensions", "column", "distance", "geometry"),
    [
        (2, "vector(2)", "cosine", None),
        (3, "double precision[]", "ip", None),
        (7, "real[]", "l2", 40),
        (64, "halfvec(64)", "cosine", 130),
        (100, "vector(100)", "l2", None),
        (384, "vector(384)", "cosine", None),
        (770, "halfvec(770)", "ip", 1000),
        (1001, "vector(1001)", "l2", None),
        (16_000, "vector(16000)", "cosine", None),
        (16_000, "vector(16000)", "ip", None),
    ],
)
def test_bits_are_equal_bit_for_bit(
    connection: Connection, dimensions: int, column: str, distance: str, geometry: int | None
) -> None:
    """The database and Python turn, quantize and pack the same way, whatever the type of the column."""
    kind = column if column.endswith("[]") else f"extensions.{column}"
    connection.execute(f"CREATE TABLE wide (id int PRIMARY KEY, embedding {kind})")
    rows = np.random.default_rng(0).normal(1, 3, size=(120, dimensions)).astype(np.float16).astype(np.float32)
    # Rows that come later are longer than those that the model has seen.
    rows[100:] *= 2
    arguments = {"options": json.dumps({"geometry": geometry, "exact_rows": 0}), "distance": distance}
    connection.execute(
        "SELECT foh.create_index('wide', 'wide', 'embedding', dimensions => %(dimensions)s,"
        " distance => %(distance)s, options => %(options)s)",
        arguments | {"dimensions": dimensions},
    )
    write = "INSERT INTO wide SELECT n.n, n.x::real[] FROM ROWS FROM (unnest(%s::int[]), unnest(%s::text[])) n (n, x)"
    texts = ["{" + ",".join(map(str, row)) + "}" for row in rows.tolist()]
    connection.execute(write, (list(range(80)), texts[:80]))
    build(connection, "wide")
    connection.execute(write, (list(range(80, 120)), texts[80:]))
    with open_session(connection) as session:
        index = find_index(session, "wide")
        model = read_served(session, index).model
    streamed = connection.execute("SELECT geometry::text FROM foh.wide_stream ORDER BY key").fetchall()
    expected = unpack(model.geometry_bits(rows[80:]), index.geometry).astype(int)
    assert [text for (text,) in streamed] == ["".join(map(str, bits)) for bits in expected.tolist()]
    looks = [unpack(bits, index.geometry).astype(int) for bits in model.geometry.query_looks(rows[:1])]
    assert query_looks(connection, distance, rows[0]) == ["".join(map(str, bits[0])) for bits in looks]
    assert connection.execute("SELECT count(*) FROM foh.check('wide')").fetchone() == (0,)


@pytest.mark.one_version
def test_as_many_bits_as_python_shares_out(connection: Connection) -> None:
    """By default, and whatever number is asked for."""
    rng = np.random.default_rng(0)
    dimensions = np.unique((16000 ** rng.random(300)).astype(int)).tolist()
    for given in dimensions:
        for metric in ("cosine", "ip"):
            turned, padded, default, asked = rows_of(
                connection,
                """SELECT t.turned, foh._padded_numbers(t.turned), foh._geometry_bits(t.turned, NULL), foh._geometry_bits(t.turned, %s)
                   FROM (SELECT foh._turned_numbers(%s, %s) AS turned) t""",
                *(int(rng.integers(2, 16001)), given, metric),
            )
            assert (turned, padded) == (turned_numbers(given, metric), padded_numbers(turned))
            assert default == default_bits(turned)
            # An error if these bits cannot be shared out.
            copies_of(asked, turned)


@pytest.mark.one_version
@pytest.mark.parametrize("dimensions", [2, 3, 1001])
def test_few_and_many_dimensions(connection: Connection, dimensions: int) -> None:
    """From the fewest that say anything to more than have a bit of their own: built, written and found."""
    connection.execute(
        f"CREATE TABLE wide (id int PRIMARY KEY, embedding extensions.vector({dimensions}), tags text[])"
    )
    rows = np.random.default_rng(0).normal(size=(90, dimensions)).round(3)
    for number, row in enumerate(rows[:80].tolist()):
        connection.execute("INSERT INTO wide VALUES (%s, %s, ARRAY['t'])", (number, str(row)))
    options = json.dumps({"exact_rows": 0, "learn_rows": 20})
    connection.execute(
        "SELECT foh.create_index('wide', 'wide', 'embedding', 'tags', options => %s)", [options]
    )
    build(connection, "wide")
    for number, row in enumerate(rows[80:].tolist(), start=80):
        connection.execute("INSERT INTO wide VALUES (%s, %s, ARRAY['t'])", (number, str(row)))
    search = "SELECT r.id FROM foh.wide_search(%s::extensions.vector, 1, probes => 1000, labels => 0) r"
    for step in ("stream", "lists"):
        found = [connection.execute(search, [str(row)]).fetchone() for row in rows.tolist()]
        assert found == [(number,) for number in range(90)], step
        update(connection, "wide")
    assert connection.execute("SELECT count(*) FROM foh.check('wide')").fetchone() == (0,)
