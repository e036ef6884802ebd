"""foh_pg.Index and AsyncIndex, on connections and pools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from foh_pg import AsyncIndex, Index, Match
from foh_pg.errors import IndexNotFound, InputError
from foh_pg.updater import build, rebuild
from tests.support import digits
from tests.support.postgres import Database, Server
from tests.support.shop import Shop, exact_distance, text, vectors

QUERY = vectors(1, seed=5)[0]
BASE = vectors(200)


def stock(database: Database) -> None:
    shop = Shop(database.connect("app_owner"), options={"centers": 8})
    shop.fill(range(200), BASE, price=[float(n) for n in range(200)])
    rebuild(database.dsn(), "items")


pytestmark = pytest.mark.prepared(by=stock)


@pytest.fixture
def index(shop: Shop) -> Index:
    return Index.open(shop.connection, "items")


def expected(shop: Shop, *arguments, **options) -> list[Match]:
    return [Match(*row) for row in shop.search(*arguments, **options)]


class TestSearch:
    def test_is_that_of_sql(self, index: Index, shop: Shop) -> None:
        assert index.search(QUERY) == expected(shop, QUERY)
        assert index.search(QUERY.tolist(), 3, probes=2, shortlist=0) == expected(
            shop, QUERY, 3, probes=2, shortlist=0
        )
        found = index.search(QUERY, 5, filter="price < (params ->> 'most')::float8", params={"most": 50})
        assert found == expected(
            shop, QUERY, 5, filter="price < (params ->> 'most')::float8", params={"most": 50}
        )
        assert all(match.key < 50 for match in found)
        assert index.search(QUERY.astype(np.float64)) == index.search(QUERY)

    def test_whatever_the_connection_is_set_to(self, shop: Shop, database: Database) -> None:
        with psycopg.connect(database.dsn(), row_factory=dict_row) as connection:
            index = Index.open(connection, "items")
            assert index.search(QUERY, 3) == expected(shop, QUERY, 3)
            # In the transaction of the connection, and nothing is registered on it.
            connection.execute("INSERT INTO item (id, embedding) VALUES (900, %s)", [text(QUERY)])
            assert index.search(QUERY, 1)[0].key == 900
            connection.rollback()
            assert index.search(QUERY, 1)[0].key != 900
            assert connection.execute("SELECT B'01' AS code").fetchone() == {"code": "01"}

    def test_many(self, index: Index, shop: Shop) -> None:
        queries = vectors(7, seed=6)
        answers = index.search_many(queries, 4)
        assert answers == [index.search(query, 4) for query in queries]
        assert index.search_many(queries, 4, filter="id = 3") == [
            index.search(query, 4, filter="id = 3") for query in queries
        ]
        assert index.search_many(np.empty((0, 8))) == []
        assert [len(answer) for answer in index.search_many(queries, 4, filter="false")] == [0] * 7

    def test_like(self, index: Index, shop: Shop) -> None:
        found = index.search_like(7, 5)
        assert [match.key for match in found] == [key for key in shop.found(BASE[7], 6) if key != 7]
        assert len(found) == 5
        # A twin may push the row itself out of the first six.
        for key in range(300, 310):
            shop.fill([key], [BASE[7]])
        found = index.search_like(7, 5)
        assert len(found) == 5
        assert {match.key for match in found} <= set(range(300, 310))
        with pytest.raises(InputError, match=r"public\.item has no row with id = 5000"):
            index.search_like(5000)
        shop.fill([400], [None])
        with pytest.raises(InputError, match=r"the row with id = 400 of public\.item has no embedding"):
            index.search_like(400)
        assert index.search_like(7, filter="false") == []
        assert np.array_equal(index.embedding(7), BASE[7])

    def test_where_pgvector_reads_vectors(self, index: Index, shop: Shop) -> None:
        like, row = index.search_like(1, 3), index.embedding(1)
        shop.connection.execute("SET search_path = public, extensions")
        register_vector(shop.connection)
        assert np.array_equal(index.embedding(1), row)
        assert index.search_like(1, 3) == like

    def test_candidates_and_explain(self, index: Index) -> None:
        assert {match.key for match in index.candidates(QUERY, 100)} == set(range(200))
        assert index.explain(QUERY, probes=2)["centers probed"] == "2"
        assert index.explain(QUERY, 3, shortlist=0)["shortlist"] == "none: by bits alone"

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            ([[1, 2]], "must be a vector, this one has 2 dimensions"),
            ([1, float("nan")], "NaN or infinity"),
            ([1e300] * 8, "NaN or infinity"),
            ("oops", "not a vector"),
        ],
    )
    def test_bad_queries_are_refused_here(self, index: Index, query, message: str) -> None:
        with pytest.raises(InputError, match=message):
            index.search(query)

    def test_bad_arguments(self, index: Index) -> None:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="8 dimensions, the query has 3"):
            index.search([1, 2, 3])
        with pytest.raises(InputError, match="there is no filter"):
            index.search(QUERY, params={"a": 1})


@pytest.fixture(scope="module")
def digit_index(server: Server) -> Iterator[Index]:
    database = server.create_database(template=server.template)
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        digits.create_table(connection)
        digits.insert(connection, range(1500))
        digits.create_index(connection)
        build(database.dsn(), "digits")
        yield Index.open(connection, "digits")
    database.drop()


class TestDial:
    """One argument from the nearest vectors to the rows likeliest to share a label, on digits."""

    def test_from_nearest_to_alike(self, digit_index: Index) -> None:
        rows, target = digits.digits()
        queries, wanted = rows[digits.HELD_OUT], target[digits.HELD_OUT]
        alike, apart = {}, {}
        for dial in (0, 0.5, 1):
            found = digit_index.search_many(queries, 10, labels=dial)
            keys = np.array([[match.key for match in answer] for answer in found])
            assert keys.shape == (len(queries), 10)
            alike[dial] = (target[keys] == wanted[:, None]).mean()
            apart[dial] = np.mean([exact_distance(rows[k], q) for k, q in zip(keys, queries, strict=True)])
        assert apart[0] <= apart[0.5] <= apart[1]
        nearest = [np.sort(exact_distance(rows[:1500], query))[:10] for query in queries]
        assert apart[0] <= np.mean(nearest) * 1.1
        assert alike[0] <= alike[0.5] + 0.01
        assert alike[1] >= alike[0] - 0.01

    def test_is_an_argument_of_every_search(self, digit_index: Index) -> None:
        query = digits.digits()[0][1600]
        nearest = digit_index.search(query, 5, labels=0)
        # The score at 0 is the exact distance, and nothing else.
        expected = exact_distance(digits.digits()[0][[match.key for match in nearest]], query)
        assert [match.score for match in nearest] == pytest.approx(expected.tolist(), abs=1e-6)
        assert digit_index.search_many([query], 5, labels=0) == [nearest]
        assert digit_index.search(query, 5, labels=0.5) == digit_index.search(query, 5)
        # With a condition a search reads fewer lists and rows, unless it is told how many.
        assert digit_index.search_like(3, 5, labels=0, probes=30, shortlist=100) == digit_index.search(
            digit_index.embedding(3), 5, labels=0, probes=30, shortlist=100, filter="id <> 3"
        )
        assert digit_index.explain(query, labels=0)["labels"] == "not asked: nearest vectors only"
        assert digit_index.explain(query, labels=1)["labels"].startswith("rows of another kind count as ")
        by_bits = digit_index.search(query, 5, labels=0, shortlist=0, probes=1000)
        assert [match.score for match in by_bits] == sorted(match.score for match in by_bits)

    def test_the_option_is_the_default(self, digit_index: Index) -> None:
        query = digits.digits()[0][1601]
        digit_index.alter(dial=0)
        try:
            assert digit_index.search(query) == digit_index.search(query, labels=0)
        finally:
            digit_index.alter(dial=0.5)

    @pytest.mark.parametrize("labels", [-0.1, 2, float("nan")])
    def test_outside_it_is_refused(self, digit_index: Index, labels: float) -> None:
        query = digits.digits()[0][1600]
        for search in (
            lambda: digit_index.search(query, labels=labels),
            lambda: digit_index.search(query, labels=labels, shortlist=0),
            lambda: digit_index.search_many([query], labels=labels),
            lambda: digit_index.search_like(3, labels=labels),
            lambda: digit_index.explain(query, labels=labels),
        ):
            with pytest.raises(
                psycopg.errors.InvalidParameterValue, match=r"labels is .*, it must be between 0"
            ):
                search()


class TestLife:
    def test_create_to_drop(self, database: Database) -> None:
        connection = database.connect("app_owner")
        connection.execute(
            'CREATE TABLE "100% Wool" ("%s" text PRIMARY KEY, embedding extensions.vector(8), tag text)'
        )
        index = Index.create(
            connection,
            "sale_50",
            'public."100% Wool"',
            "embedding",
            labels="tag",
            bits=32,
            options={"exact_rows": 0},
        )
        assert index.about.bits == 32
        assert "sale_50" in repr(index)
        connection.cursor().executemany(
            'INSERT INTO "100%% Wool" VALUES (%s, %s)',
            [(f"k{n}", text(row)) for n, row in enumerate(BASE[:50])],
        )
        assert index.search(BASE[7], 1)[0].key == "k7"
        assert index.search_many(BASE[:2], 1, filter="\"%s\" <> 'x'")[1][0].key == "k1"
        assert len(index.search_like("k7", 3)) == 3
        assert index.status()["stream"] == 50
        assert index.check() == []
        index.alter(probes=2, shortlist=0)
        assert index.status()["options"]["probes"] == 2
        with pytest.raises(InputError, match="no option"):
            index.alter()
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="unknown option 'proves'"):
            index.alter(proves=2)
        connection.execute('ALTER TABLE "100% Wool" RENAME COLUMN embedding TO emb')
        index.refresh()
        assert index.about.embedding == "emb"
        [row] = index.grant(reader="app_reader")
        assert row["missing"].startswith("GRANT SELECT")
        index.drop()
        with pytest.raises(IndexNotFound, match="no index 'sale_50'"):
            index.status()
        with pytest.raises(IndexNotFound, match="no index 'sale_50'"):
            Index.open(connection, "sale_50")

    def test_a_reader(self, shop: Shop, index: Index, database: Database) -> None:
        shop.run("GRANT SELECT ON {source} TO app_reader")
        index.grant(reader="app_reader")
        theirs = Index.open(database.connect("app_reader"), "items")
        assert theirs.search(QUERY) == index.search(QUERY)
        by_bits = {"shortlist": 0, "probes": 100}
        assert theirs.search(QUERY, **by_bits) == index.search(QUERY, **by_bits)
        assert theirs.search_many(BASE[:3], 2) == index.search_many(BASE[:3], 2)
        assert theirs.search_like(7) == index.search_like(7)
        assert theirs.explain(QUERY) == index.explain(QUERY)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            theirs.status()

    def test_without_our_schema(self, new_database) -> None:
        with pytest.raises(IndexNotFound):
            Index.open(new_database().connect("app_owner"), "items")


def test_a_pool(shop: Shop, database: Database) -> None:
    with ConnectionPool(database.dsn(), min_size=1, max_size=2) as pool:
        index = Index.open(pool, "items")
        assert index.search(QUERY) == expected(shop, QUERY)
        by_bits = {"shortlist": 0, "probes": 100}
        assert index.search(QUERY, **by_bits) == expected(shop, QUERY, **by_bits)
        index.alter(probes=1)
    assert Index.open(shop.connection, "items").status()["options"]["probes"] == 1


async def everything(index: AsyncIndex, shop: Shop, database: Database) -> None:
    plain = Index.open(shop.connection, "items")
    assert await index.search(QUERY) == plain.search(QUERY)
    assert await index.search(QUERY, filter="id < 9") == plain.search(QUERY, filter="id < 9")
    assert await index.search_many(BASE[:3], 2) == plain.search_many(BASE[:3], 2)
    assert await index.search_like(7) == plain.search_like(7)
    assert await index.candidates(QUERY, 1) == plain.candidates(QUERY, 1)
    assert await index.explain(QUERY) == plain.explain(QUERY)
    assert await index.search(QUERY, labels=0) == plain.search(QUERY, labels=0)
    assert await index.search_many(BASE[:3], 2, labels=1) == plain.search_many(BASE[:3], 2, labels=1)
    assert await index.search_like(7, labels=1) == plain.search_like(7, labels=1)
    assert await index.explain(QUERY, labels=0) == plain.explain(QUERY, labels=0)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="labels is 2, it must be between 0"):
        await index.search(QUERY, labels=2)
    by_bits = {"shortlist": 0, "probes": 100}
    assert await index.search(QUERY, **by_bits) == plain.search(QUERY, **by_bits)
    assert await index.check() == []
    await index.alter(probes=3)
    assert (await index.status())["options"]["probes"] == 3
    await index.refresh()
    assert (await index.grant(reader="app_writer"))[0]["kind"] == "reader"
    with pytest.raises(InputError, match="no row with id = 5000"):
        await index.search_like(5000)
    await index.drop()
    with pytest.raises(IndexNotFound):
        await index.status()


class TestAsync:
    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        asyncio.run(main())

    def test_connection(self, shop: Shop, database: Database) -> None:
        async def main() -> None:
            connection = await psycopg.AsyncConnection.connect(database.dsn(), autocommit=True)
            async with connection:
                await everything(await AsyncIndex.open(connection, "items"), shop, database)

        self.run(main)

    def test_clustering(self, shop: Shop, database: Database) -> None:
        async def main() -> None:
            async with AsyncConnectionPool(database.dsn(), min_size=1, max_size=2) as pool:
                index = await AsyncIndex.open(pool, "items")
                together = await asyncio.gather(*(index.search(row, 3) for row in BASE[:6]))
                assert together == [expected(shop, row, 3) for row in BASE[:6]]
                await everything(index, shop, database)

        self.run(main)

    def test_create(self, database: Database) -> None:
        async def main() -> None:
            connection = await psycopg.AsyncConnection.connect(database.dsn(), autocommit=True)
            async with connection:
                await connection.execute(
                    "CREATE TABLE t (id int PRIMARY KEY, embedding extensions.vector(3))"
                )
                index = await AsyncIndex.create(connection, "ts", "t", "embedding")
                assert await index.search([1, 2, 3]) == []
                with pytest.raises(IndexNotFound):
                    await AsyncIndex.open(connection, "others")

        self.run(main)
