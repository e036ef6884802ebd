"""What a search returns: keys under their own name and type, ranked by each distance, of each type of embedding."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import psycopg
import pytest
from psycopg import sql

from foh_pg.arrays.codes import unpack
from foh_pg.updater import build, update
from tests.support.shop import GEOMETRY, Shop, exact_distance, text, vectors

KEYS = {
    "int": range(-5, 55),
    "bigint": [n * 2**40 - 2**62 for n in range(60)],
    "uuid": [UUID(int=n * 2**100 + 7) for n in range(60)],
    "text": [f"key {n} 'ü\\" for n in range(60)],
    "varchar": [f"V{n}" for n in range(60)],
}


def test_keys_keep_their_type(new_shop) -> None:
    for number, key_type in enumerate(KEYS):
        check_key_type(new_shop(key_type=key_type, source=f"public.item{number}", index=f"items{number}"))


def check_key_type(shop: Shop) -> None:
    key_type = shop.key_type
    keys, base = list(KEYS[key_type]), vectors(60)
    shop.fill(keys, base)
    shop.install()
    shop.run("UPDATE {source} SET price = 1 WHERE {key} = %s", [keys[3]])
    order = np.argsort(exact_distance(base, base[7]))
    assert shop.found(base[7], 60, shortlist=0, probes=4) != []
    assert set(shop.found(base[7], 60)) == set(keys)
    assert shop.found(base[7], 1) == [keys[order[0]]] == [keys[7]]


COLUMNS = ["k", "distance", "score", "query", "key", "probes", "code", "near", "filter", "params", "vector", "n", "e", "s",
           "keys", "Id", "with space", 'quo"te', "ünï", "{source}", "select", "reach"]  # fmt: skip


@pytest.mark.one_version
def test_keys_keep_their_name(new_shop) -> None:
    for number, key in enumerate(COLUMNS):
        check_key_name(new_shop(key=key, source=f"public.item{number}", index=f"items{number}"))


def check_key_name(shop: Shop) -> None:
    key = shop.key
    base = vectors(40)
    shop.fill(range(40), base)
    shop.install()
    shop.fill([40], vectors(1, seed=2))
    names = sql.SQL("SELECT * FROM {}(%s, 3, {})")
    for call in ("filter => 'tenant IS NULL'", "shortlist => 0", "probes => 100"):
        cursor = shop.execute(
            names.format(shop.names()["search"], sql.SQL(call.replace("%", "%%"))), [text(base[5])]
        )
        assert cursor.description[0].name == key
        assert len({column.name for column in cursor.description}) == 3
        assert len(cursor.fetchall()) == 3
    assert shop.found(base[5], 1, filter=sql.SQL("s.{} = 5").format(sql.Identifier(key)).as_string()) == [5]
    shop.run("SELECT {key} FROM {candidates}(%s, 100)", [text(base[5])])
    assert set(shop.found(base[5], 50)) == set(range(41))
    shop.run("UPDATE foh.index SET status = 'building'")
    assert shop.found(base[5], 1) == [5]
    assert set(shop.found(base[5], 50)) == set(range(41))


@pytest.mark.one_version(but={"distance": ["cosine"]})
@pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
def test_distances_and_types(new_shop, distance: str) -> None:
    types = (
        "extensions.vector(8)",
        "extensions.vector",
        "extensions.halfvec(8)",
        "real[]",
        "double precision[]",
    )
    for number, embedding_type in enumerate(types):
        shop = new_shop(
            distance=distance,
            embedding_type=embedding_type,
            source=f"public.item{number}",
            index=f"items{number}",
            **({"dimensions": 8} if embedding_type == "extensions.vector" else {}),
        )
        check_distances(shop, distance, embedding_type)


def check_distances(shop: Shop, distance: str, embedding_type: str) -> None:
    # Halves of small whole numbers: a halfvec holds them exactly.
    base = np.round(vectors(120) * 4) / 2
    shop.fill(
        range(120), base if "[]" not in embedding_type else [text(row).translate(BRACES) for row in base]
    )
    shop.install()
    query = np.round(vectors(1, seed=9)[0] * 4) / 2
    expected = exact_distance(base, query, distance)

    # What comes back is what pgvector's operator gives; without labels nothing else ranks.
    operator = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}[distance]
    given = shop.run(
        f"SELECT {{key}}, {{usable}} OPERATOR(extensions.{operator}) %s::extensions.vector FROM {{source}} s",
        [text(query)],
    )
    assert dict(given.fetchall()) == pytest.approx(dict(enumerate(expected)), abs=1e-5)
    rows = shop.search(query, 120, probes=100, shortlist=1000)
    assert {row[0] for row in rows} == set(range(120))
    for key, far, score in rows:
        assert far == score == pytest.approx(expected[key], abs=1e-5)
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)

    # The fallback says the same.
    shop.run("UPDATE foh.index SET status = 'building'")
    rows = shop.search(query, 20)
    assert [row[1] for row in rows] == pytest.approx(np.sort(expected)[:20], abs=1e-5)
    assert all(row[1] == row[2] for row in rows)


BRACES = str.maketrans("[]", "{}")


def estimates(shop: Shop, query) -> dict[int, int]:
    """How far the rows of the lists are from a query, by its bits and by those of its numbers moved up and down."""
    looks = [unpack(bits, shop.geometry.bits)[0] for bits in shop.geometry.query_looks(query[None])]
    stored = shop.run("SELECT unnest(ids), unnest(geometry)::text FROM {list}").fetchall()
    rows = {key: np.array([digit == "1" for digit in bits]) for key, bits in stored}
    apart = int((looks[1] != looks[2]).sum())
    return {key: sum(int((look != bits).sum()) for look in looks) - apart for key, bits in rows.items()}


def test_the_code_is_that_of_the_hash_functions(shop: Shop) -> None:
    weights = np.array(
        [
            np.fromstring(row[0].strip("[]"), sep=",")
            for row in shop.run("SELECT weights::text FROM {projection} ORDER BY bit")
        ]
    )
    query = vectors(1, seed=5)[0]
    expected = "".join("1" if value >= 0 else "0" for value in weights @ query)
    assert shop.code(query)[GEOMETRY:] == expected


def test_bits_alone(shop: Shop) -> None:
    query = vectors(1, seed=5)[0]
    shop.install(centers=8)
    far = estimates(shop, query)
    assert min(far.values()) >= 0
    rows = shop.search(query, 50, probes=100, shortlist=0)
    expected = [bits / GEOMETRY for bits in sorted(far.values())[:50]]
    assert [row[2] for row in rows] == pytest.approx(expected, rel=0.05)
    assert all(score == pytest.approx(far[key] / GEOMETRY) for key, _, score in rows)
    # No row was read, so nobody knows how far it is.
    assert {row[1] for row in rows} == {None}


def test_thousands_of_dimensions(database) -> None:
    connection = database.connect("app_owner")
    connection.execute("CREATE TABLE wide (id int PRIMARY KEY, embedding extensions.vector(4096))")
    connection.execute(
        """SELECT foh.create_index('wide', 'wide', 'embedding', bits => 128, options => '{"exact_rows": 0}')"""
    )
    base = vectors(40, dimensions=4096)
    connection.cursor().executemany(
        "INSERT INTO wide VALUES (%s, %s)", [(key, text(row)) for key, row in enumerate(base)]
    )
    for _ in range(2):
        # Before there are centers rows are read from the table; four dimensions share a bit.
        [row] = connection.execute("SELECT * FROM foh.wide_search(%s, 1)", [text(base[7])]).fetchall()
        assert row == (7, pytest.approx(0, abs=1e-6), pytest.approx(0, abs=1e-6))
        update(connection, "wide")


def test_few_probes_read_the_nearest_lists(shop: Shop) -> None:
    query = vectors(1, seed=5)[0]
    everything = {row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 100)", [text(query)])}
    some = {row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 2)", [text(query)])}
    assert everything == set(range(200))
    assert 0 < len(some) < 200
    lists = {center: set(ids) for center, ids in shop.run("SELECT center, ids FROM {list}")}
    assert some in [lists[a] | lists[b] for a in lists for b in lists if a < b]


def test_options_of_the_index_are_the_defaults(shop: Shop) -> None:
    query = vectors(1, seed=5)[0]
    shop.execute(sql.SQL("SELECT foh.alter_index('items', {})").format('{"probes": 1, "shortlist": 0}'))
    assert shop.explain(query)["centers probed"] == "1"
    assert {distance for _, distance, _ in shop.search(query)} == {None}


def test_many_queries_in_one_statement(shop: Shop) -> None:
    base = vectors(200)
    queries = [3, 141, 77]
    rows = shop.run(
        """SELECT q.at, r.{key}, r.score FROM unnest(%s::text[]) WITH ORDINALITY AS q (query, at)
           CROSS JOIN LATERAL {search}(q.query::extensions.vector, 4) r""",
        [[text(base[number]) for number in queries]],
    ).fetchall()
    for at, number in enumerate(queries, 1):
        assert [row[1:] for row in rows if row[0] == at] == [
            (key, score) for key, _, score in shop.search(base[number], 4)
        ]
        assert next(row[1] for row in rows if row[0] == at) == number


@pytest.mark.one_version
class TestBadArguments:
    @pytest.mark.parametrize(
        ("call", "message"),
        [
            ("'[1,2]', 5", "index 'items' has 8 dimensions, the query has 2"),
            ("NULL, 5", "the query is NULL"),
            ("{zero}, 0", "k is 0, it must be 1 or more"),
            ("{zero}, -3", "k is -3"),
            ("{zero}, NULL", "k is NULL"),
            ("{zero}, 5, probes => 0", "probes is 0, it must be 1 or more"),
            ("{zero}, 5, shortlist => -1", "shortlist is -1"),
            ("{zero}, 5, recall => 0", "recall is 0, it must be above 0 and at most 1"),
            ("{zero}, 5, recall => 1.1", "recall is 1.1"),
            ("{zero}, 5, recall => 'NaN'", "recall is NaN"),
        ],
    )
    def test_are_named(self, shop: Shop, call: str, message: str) -> None:
        call = call.format(zero=f"'{text([0] * 8)}'")
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
            shop.execute(sql.SQL(f"SELECT * FROM foh.items_search({call})"))

    def test_not_a_number(self, shop: Shop) -> None:
        with pytest.raises(psycopg.DataError, match="NaN not allowed"):
            shop.search("[nan,0,0,0,0,0,0,0]")


def test_zero_vectors(new_shop) -> None:
    for number, distance in enumerate(["cosine", "l2", "ip"]):
        shop = new_shop(index=f"zero{number}", source=f"public.zero{number}", distance=distance)
        base = np.vstack([vectors(30), np.zeros((3, 8))])
        shop.fill(range(33), base)
        shop.install()
        for query in (np.zeros(8), base[4]):
            for shortlist in (0, 1000):
                assert set(shop.found(query, 33, shortlist=shortlist)) == set(range(33))
                assert not any(np.isnan(row[2]) for row in shop.search(query, 33, shortlist=shortlist))
        assert shop.found(base[4], 1)[0] == 4 or distance == "ip"
        shop.run("UPDATE foh.index SET status = 'building'")
        assert set(shop.found(np.zeros(8), 33)) == set(range(33))


def test_rows_without_an_embedding(shop: Shop) -> None:
    shop.fill([500, 501], [None, vectors(1, seed=3)[0]])
    assert set(shop.found(vectors(1)[0], 1000)) == {*range(200), 501}
    shop.run("UPDATE {source} SET embedding = NULL WHERE {key} IN (501, 3)")
    assert set(shop.found(vectors(1)[0], 1000)) == set(range(200)) - {3}
    assert set(shop.found(vectors(1)[0], 1000, shortlist=0)) == set(range(200)) - {3}
    shop.run("UPDATE foh.index SET status = 'building'")
    assert set(shop.found(vectors(1)[0], 1000)) == set(range(200)) - {3}


def test_arrays_that_are_no_vectors_are_not_found(new_shop) -> None:
    shop = new_shop(embedding_type="double precision[]")
    good = [text(row).translate(BRACES) for row in vectors(20)]
    bad = [
        "{1,2}",
        "{1,2,3,4,5,6,7,NULL}",
        "{NaN,1,1,1,1,1,1,1}",
        "{1e300,1,1,1,1,1,1,1}",
        "{}",
        "{Infinity,1,1,1,1,1,1,1}",
    ]
    shop.fill(range(26), good + bad)
    assert set(shop.found(vectors(1)[0], 100)) == set(range(20))
    shop.install()
    assert set(shop.found(vectors(1)[0], 100)) == set(range(20))
    assert set(shop.found(vectors(1)[0], 100, shortlist=0)) == set(range(20))
    shop.run("UPDATE foh.index SET status = 'building'")
    assert set(shop.found(vectors(1)[0], 100)) == set(range(20))


@pytest.mark.one_version
@pytest.mark.parametrize(
    ("dimensions", "bits", "distance"),
    [
        (1272, 1024, "cosine"),
        (1273, 1024, "cosine"),
        (1296, 64, "cosine"),
        (618, 1024, "l2"),
        (2000, 8, "ip"),
        (1900, 1024, "cosine"),
    ],
)
def test_centers_of_any_size(connection, dimensions: int, bits: int, distance: str) -> None:
    """An entry of an index takes a third of a page: embeddings beyond that stay in their table."""
    rows = np.random.default_rng(0).normal(size=(20, dimensions)).round(3)
    connection.execute(f"CREATE TABLE wide (id int PRIMARY KEY, embedding extensions.vector({dimensions}))")
    connection.cursor().executemany(
        "INSERT INTO wide VALUES (%s, %s)", [(key, text(row)) for key, row in enumerate(rows)]
    )
    connection.execute(
        "SELECT foh.create_index('wide', 'wide', 'embedding', bits => %s, distance => %s)", [bits, distance]
    )
    build(connection, "wide")
    assert connection.execute("SELECT count(*) FROM foh.wide_center").fetchone() > (0,)
    for arguments in ("5", "20, shortlist => 0"):
        found = connection.execute(
            f"SELECT id FROM foh.wide_search(%s, {arguments})", [text(rows[7])]
        ).fetchall()
        assert (7,) in found
