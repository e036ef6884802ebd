"""The LangChain store: LangChain's own suite, and what that suite does not ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

from foh_pg.errors import InputError, SchemaError
from foh_pg.langchain import FOHVectorStore
from tests.support.engines import url
from tests.support.postgres import Database, Server

EMBEDDINGS = DeterministicFakeEmbedding(size=6)


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[Database]:
    """One database for all tests of LangChain's; each empties the table."""
    database = server.create_database(template=server.template)
    yield database
    database.drop()


class TestStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, shared: Database) -> Iterator[FOHVectorStore]:  # type: ignore[override]
        store = FOHVectorStore(self.get_embeddings(), shared.dsn())
        yield store
        store.close()
        with shared.connect() as connection:
            connection.execute("SELECT foh.drop_index('langchain_documents', true)")
            connection.execute("DROP TABLE IF EXISTS langchain_documents")


@pytest.fixture
def store(database: Database) -> Iterator[FOHVectorStore]:
    store = FOHVectorStore(
        EMBEDDINGS, url(database), table="docs", labels=["topic", "tags"], bits=32, probes=3
    )
    yield store
    store.close()


def documents(count: int = 12) -> list[Document]:
    return [
        Document(
            f"text {i}",
            id=f"d{i}",
            metadata={"n": i, "topic": "even" if i % 2 == 0 else "odd", "tags": [f"t{i % 3}"], "maybe": None}
            if i
            else {"n": 0},
        )
        for i in range(count)
    ]


def ids(found: list[Document]) -> set[str | None]:
    return {document.id for document in found}


class TestOwnTable:
    def test_is_made_on_demand_with_its_index(self, store: FOHVectorStore, database: Database) -> None:
        assert store.similarity_search("nothing yet") == []
        assert database.connect().execute("SELECT to_regclass('docs')").fetchone() == (None,)
        store.add_documents(documents(3))
        rows = database.connect().execute("SELECT id, labels FROM docs ORDER BY id").fetchall()
        assert rows == [("d0", []), ("d1", ["odd", "t1"]), ("d2", ["even", "t2"])]
        index = "SELECT name, bits, labels, options ->> 'probes' FROM foh.index"
        assert database.connect().execute(index).fetchall() == [("docs", 32, "labels", "3")]

    def test_another_store_finds_it(self, store: FOHVectorStore, database: Database) -> None:
        store.add_documents(documents(3))
        other = FOHVectorStore(EMBEDDINGS, database.dsn(), table="docs")
        assert [document.id for document in other.similarity_search("text 1", k=1)] == ["d1"]
        other.close()

    def test_scores_are_exact_distances(self, store: FOHVectorStore) -> None:
        store.add_documents(documents())
        found = store.similarity_search_with_score("text 5", k=12)
        assert found[0][0].id == "d5"
        assert found[0][1] == pytest.approx(0, abs=1e-6)
        assert len(found) == 12
        relevant = store.similarity_search_with_relevance_scores("text 5", k=1)
        assert relevant[0][1] == pytest.approx(1, abs=1e-6)

    def test_relevance_is_sorted_whatever_the_labels_say(self, store: FOHVectorStore) -> None:
        store.add_documents(documents())
        for labels in (0, 0.5, 1):
            relevant = store.similarity_search_with_relevance_scores("text 5", k=10, labels=labels)
            scores = [score for _, score in relevant]
            assert scores == sorted(scores, reverse=True)
            assert scores[0] == pytest.approx(1, abs=1e-6)
            assert relevant[0][0].id == "d5"
        [[_, bits_alone]] = store.similarity_search_with_score("text 5", k=1, shortlist=0)
        assert bits_alone is not None
        [[nearest, far]] = store.similarity_search_with_score("text 5", k=10, max_distance=1e-4)
        assert (nearest.id, far) == ("d5", pytest.approx(0, abs=1e-6))

    @pytest.mark.parametrize("distance", ["l2", "ip"])
    def test_other_distances(self, database: Database, distance: str) -> None:
        store = FOHVectorStore(EMBEDDINGS, url(database), table="docs", distance=distance)
        store.add_documents(documents())
        vector = EMBEDDINGS.embed_query("text 5")
        [(_, score)] = store.similarity_search_with_score("text 5", k=1, filter={"n": 5})
        assert score == pytest.approx(0 if distance == "l2" else -sum(x * x for x in vector), abs=1e-4)
        store.close()

    def test_by_vector_and_mmr(self, store: FOHVectorStore) -> None:
        store.add_documents([*documents(), Document("text 5", id="again")])
        vector = EMBEDDINGS.embed_query("text 5")
        assert ids(store.similarity_search_by_vector(vector, k=2)) == {"d5", "again"}
        diverse = store.max_marginal_relevance_search("text 5", k=2, fetch_k=13, lambda_mult=0.1)
        assert len(diverse) == 2
        assert ids(diverse) != {"d5", "again"}
        assert store.max_marginal_relevance_search("text 5", k=1, filter={"n": {"$lt": 0}}) == []

    def test_retriever_and_from_texts(self, database: Database) -> None:
        store = FOHVectorStore.from_texts(
            ["a", "b"],
            EMBEDDINGS,
            [{"n": 1}, {"n": 2}],
            ids=["x", "y"],
            connection=url(database),
            table="docs",
        )
        retriever = store.as_retriever(search_kwargs={"k": 1, "filter": {"n": 2}})
        assert [document.id for document in retriever.invoke("a")] == ["y"]
        store.close()

    async def test_the_dial_in_every_search(self, store: FOHVectorStore) -> None:
        store.add_documents(documents())
        vector = EMBEDDINGS.embed_query("text 5")
        for labels in (0, 0.5, 1):
            [(found, distance)] = store.similarity_search_with_score("text 5", k=1, labels=labels)
            assert (found.id, distance) == ("d5", pytest.approx(0, abs=1e-6))
        for search, query in (
            (store.similarity_search, "text 5"),
            (store.similarity_search_with_score, "text 5"),
            (store.similarity_search_by_vector, vector),
            (store.max_marginal_relevance_search, "text 5"),
        ):
            with pytest.raises(sa.exc.DataError, match="labels is 2, it must be between 0"):
                search(query, labels=2)
        for asearch in (store.asimilarity_search, store.amax_marginal_relevance_search):
            assert await asearch("text 5", k=2, labels=0)
            with pytest.raises(sa.exc.DataError, match="labels is -1, it must be between 0"):
                await asearch("text 5", labels=-1)

    def test_get_and_delete_keep_the_order_and_the_rest(self, store: FOHVectorStore) -> None:
        store.add_documents(documents(4))
        assert [document.id for document in store.get_by_ids(["d3", "none", "d1"])] == ["d3", "d1"]
        store.delete(["d1"])
        store.delete()
        assert ids(store.similarity_search("text 1", k=10)) == {"d0", "d2", "d3"}

    def test_two_stores_at_once(self, database: Database) -> None:
        from concurrent.futures import ThreadPoolExecutor

        def add(i: int) -> list[str]:
            store = FOHVectorStore(EMBEDDINGS, url(database), table="docs")
            try:
                return store.add_documents([Document(f"text {i}", id=f"d{i}")])
            finally:
                store.close()

        with ThreadPoolExecutor(4) as pool:
            assert sorted(each[0] for each in pool.map(add, range(4))) == ["d0", "d1", "d2", "d3"]


FILTERS: dict[str, tuple[Any, set[int]]] = {
    "equal": ({"n": 3}, {3}),
    "text": ({"topic": "odd"}, {1, 3, 5}),
    "list": ({"tags": ["t1"]}, {1, 4}),
    "null": ({"maybe": None}, {1, 2, 3, 4, 5}),
    "and": ({"topic": "odd", "n": {"$gt": 1, "$lte": 5}}, {3, 5}),
    "ne": ({"topic": {"$ne": "odd"}}, {0, 2, 4}),
    "between": ({"n": {"$between": [2, 4]}}, {2, 3, 4}),
    "in": ({"n": {"$in": [0, 5, 99]}}, {0, 5}),
    "nin": ({"topic": {"$nin": ["odd"]}}, {0, 2, 4}),
    "in nothing": ({"n": {"$in": []}}, set()),
    "contains": ({"tags": {"$contains": "t2"}}, {2, 5}),
    "exists": ({"topic": {"$exists": False}}, {0}),
    "like": ({"topic": {"$like": "od%"}}, {1, 3, 5}),
    "or": ({"$or": [{"n": 1}, {"$and": [{"n": {"$gte": 4}}, {"topic": "even"}]}]}, {1, 4}),
    "not": ({"$not": {"topic": "odd"}}, {0, 2, 4}),
    "types are not mixed": ({"n": {"$gt": "a"}}, set()),
    "quotes": ({"to'pic": "o'dd"}, set()),
    "function": (lambda c: c.metadata["n"].as_integer() < 2, {0, 1}),
    "empty": ({}, {0, 1, 2, 3, 4, 5}),
}


@pytest.fixture(scope="module")
def filled(server: Server) -> Iterator[FOHVectorStore]:
    database = server.create_database(template=server.template)
    store = FOHVectorStore(EMBEDDINGS, url(database), table="docs")
    store.add_documents(documents(6))
    yield store
    store.close()
    database.drop()


class TestFilter:
    @pytest.mark.parametrize("name", FILTERS)
    def test_filter(self, filled: FOHVectorStore, name: str) -> None:
        filter, expected = FILTERS[name]
        found = filled.similarity_search("text 0", k=10, filter=filter)
        assert {document.metadata["n"] for document in found} == expected

    @pytest.mark.parametrize(
        ("filter", "message"),
        [
            ({"n": {"$near": 3}}, r"unknown operator '\$near' on 'n'"),
            ({"$xor": []}, r"\$xor is neither a field"),
            (7, "got 7"),
        ],
    )
    def test_errors(self, filled: FOHVectorStore, filter: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            filled.similarity_search("x", filter=filter)


class TestIncluded:
    """Filters on entries that the index includes are answered in its lists."""

    @pytest.fixture
    def including(self, database: Database) -> Iterator[FOHVectorStore]:
        store = FOHVectorStore(
            EMBEDDINGS,
            url(database),
            table="docs",
            bits=32,
            include={"n": "number", "topic": "text", "done": "boolean", "it's %": "text"},
        )
        store.add_documents(
            [
                *documents(),
                Document("odd one", id="x", metadata={"n": "3", "topic": 7, "done": True, "it's %": "a"}),
                Document("float", id="y", metadata={"n": 0.1 + 0.2, "done": False}),
            ]
        )
        yield store
        store.close()

    @pytest.mark.parametrize(
        ("filter", "match", "rest"),
        [
            ({"n": {"$lt": 3}}, {"n": {"<": 3}}, False),
            (
                {"n": {"$between": [2, 4]}, "topic": "odd"},
                {"n": {">=": 2, "<=": 4}, "topic": {"=": "odd"}},
                False,
            ),
            ({"n": 0.1 + 0.2}, {"n": {"=": 0.1 + 0.2}}, False),
            ({"topic": {"$in": ["odd", "none"]}}, {"topic": {"=": ["odd", "none"]}}, False),
            ({"done": False}, {"done": {"=": False}}, False),
            ({"it's %": "a"}, {"it's %": {"=": "a"}}, False),
            ({"topic": {"$gt": "even"}}, {"topic": {">": "even"}}, False),
            ({"$and": [{"n": {"$gte": 3}}, {"tags": {"$contains": "t1"}}]}, {"n": {">=": 3}}, True),
            ({"n": "3"}, None, True),
            ({"topic": 7}, None, True),
            ({"n": {"$ne": 3}}, None, True),
            ({"maybe": None}, None, True),
            ({"topic": {"$in": ["odd", None]}}, None, True),
            ({"$or": [{"n": 1}, {"topic": "even"}]}, None, True),
            ({"$not": {"n": {"$lt": 3}}}, None, True),
        ],
    )
    def test_match_and_filter(
        self, including: FOHVectorStore, filter: Any, match: Any, rest: bool, database: Database
    ) -> None:
        told = including.explain("text 1", filter=filter)
        asked = None if match is None else {f"metadata_{name}": test for name, test in match.items()}
        assert json.loads(told.get("match", "null")) == asked
        assert ("filter" in told) == rest
        # A store that was made without include reads the metadata, and finds the same.
        other = FOHVectorStore(EMBEDDINGS, url(database), table="docs")
        assert "match" not in other.explain("text 1", filter=filter)
        found = including.similarity_search("text 1", k=20, filter=filter)
        assert ids(found) == ids(other.similarity_search("text 1", k=20, filter=filter)) != set()
        other.close()

    def test_a_changed_entry_is_seen(self, including: FOHVectorStore, database: Database) -> None:
        database.connect().execute("""UPDATE docs SET metadata = metadata || '{"n": 70}' WHERE id = 'd5'""")
        assert ids(including.similarity_search("text 1", k=20, filter={"n": {"$gt": 60}})) == {"d5"}

    def test_an_index_that_was_made_without(
        self, store: FOHVectorStore, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The store says how the entries come to be included, and finds the same until then."""
        store.add_documents(documents())
        wanted = {"n": "number", "topic": "text"}
        other = FOHVectorStore(EMBEDDINGS, url(database), table="docs", include=wanted)
        assert ids(other.similarity_search("text 1", k=9, filter={"n": {"$lt": 3}})) == {"d0", "d1", "d2"}
        assert "match" not in other.explain("text 1", filter={"n": 1})
        other.close()
        [record] = caplog.records
        said = record.getMessage()
        assert "index 'docs' was made without 'n', 'topic'" in said
        with database.connect() as owner:
            for cure in said.split("To change that, ")[1].split("; and "):
                owner.execute(cure.encode())
        again = FOHVectorStore(EMBEDDINGS, url(database), table="docs", include=wanted)
        assert "match" in again.explain("text 1", filter={"n": 1})
        assert ids(again.similarity_search("text 1", k=9, filter={"n": {"$lt": 3}})) == {"d0", "d1", "d2"}
        again.close()

    @pytest.mark.parametrize(
        ("include", "message"),
        [
            ({"n": "int"}, "'n' has values of kind 'int'; there are text, number, boolean"),
            (["n"], "it must name entries of the metadata"),
            ({"n" * 60: "text"}, "too long"),
        ],
    )
    def test_errors(self, database: Database, include: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            FOHVectorStore(EMBEDDINGS, url(database), table="docs", include=include).add_texts(["x"])

    def test_an_existing_table(self, database: Database) -> None:
        with database.connect() as owner:
            owner.execute(
                "CREATE TABLE wares (no int PRIMARY KEY, descr text, price int, color text,"
                " vec extensions.vector(6))"
            )
            owner.execute("SELECT foh.create_index('wares', 'wares', 'vec', include => '{price}')")
        store = FOHVectorStore.from_existing(
            EMBEDDINGS,
            url(database),
            table="wares",
            content="descr",
            embedding_column="vec",
            metadata=["price", "color"],
        )
        colors = [{"price": i, "color": "red"} for i in range(3)]
        store.add_texts(["a", "b", "c"], colors, ids=["1", "2", "3"])
        filter = {"price": {"$gte": 1}, "color": "red"}
        assert ids(store.similarity_search("a", filter=filter)) == {"2", "3"}
        told = store.explain("a", filter=filter)
        assert json.loads(told["match"]) == {"price": {">=": 1}}
        assert ("color" in told["filter"], json.loads(told["params"])) == (True, {"p1": "red"})
        store.close()


class TestExisting:
    @pytest.fixture
    def store(self, database: Database) -> Iterator[FOHVectorStore]:
        owner = database.connect()
        owner.execute(
            """CREATE TABLE wares (no bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
               descr text NOT NULL, price numeric, color text, vec extensions.vector(6))"""
        )
        owner.execute("SELECT foh.create_index('wares_idx', 'wares', 'vec', labels => 'color', bits => 32)")
        store = FOHVectorStore.from_existing(
            EMBEDDINGS,
            url(database),
            table="wares",
            index="wares_idx",
            content="descr",
            embedding_column="vec",
            metadata=["price", "color"],
        )
        yield store
        store.close()

    def test_a_key_of_several_columns(self, database: Database) -> None:
        """A document has one id: that of a unique column serves."""
        owner = database.connect()
        owner.execute(
            """CREATE TABLE wares (tenant int, no int, uid uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
               descr text NOT NULL, vec extensions.vector(6), PRIMARY KEY (tenant, no))"""
        )
        owner.execute("SELECT foh.create_index('by_pair', 'wares', 'vec', bits => 32)")
        owner.execute("SELECT foh.create_index('by_uid', 'wares', 'vec', key => 'uid', bits => 32)")
        vector = str([float(number) for number in EMBEDDINGS.embed_query("lamp")])
        owner.execute("INSERT INTO wares (tenant, no, descr, vec) VALUES (1, 2, 'lamp', %s)", [vector])
        given = {"table": "wares", "content": "descr", "embedding_column": "vec"}
        with pytest.raises(InputError, match="by_pair' has a key of the columns tenant, no"):
            FOHVectorStore.from_existing(
                EMBEDDINGS, url(database), index="by_pair", **given
            ).similarity_search("lamp")
        store = FOHVectorStore.from_existing(EMBEDDINGS, url(database), index="by_uid", **given)
        [found] = store.similarity_search("lamp", k=1)
        assert owner.execute("SELECT uid::text FROM wares").fetchone() == (found.id,)
        store.close()

    def test_keys_metadata_and_filters(self, store: FOHVectorStore, database: Database) -> None:
        given = store.add_texts(["soap", "lamp", "desk"], [{"price": i, "color": "red"} for i in range(3)])
        assert given == ["1", "2", "3"]
        assert store.add_texts(["sofa"], [{"price": 9, "color": "blue"}], ids=["70"]) == ["70"]
        [found] = store.similarity_search("sofa", k=1)
        assert (found.id, found.page_content, found.metadata) == ("70", "sofa", {"price": 9, "color": "blue"})
        found = store.similarity_search("sofa", k=9, filter={"price": {"$gte": 1}, "color": "red"})
        assert ids(found) == {"2", "3"}
        assert [document.page_content for document in store.get_by_ids(["3", "1"])] == ["desk", "soap"]
        store.delete(["1", "2", "3"])
        rows = database.connect().execute("SELECT no, descr, price, color FROM wares").fetchall()
        assert rows == [(70, "sofa", 9, "blue")]

    def test_errors(self, store: FOHVectorStore, database: Database) -> None:
        with pytest.raises(InputError, match=r"metadata 'size': 'wares' keeps price, color"):
            store.add_texts(["x"], [{"size": 3}])
        with pytest.raises(InputError, match="keeps no metadata 'size'"):
            store.similarity_search("x", filter={"size": 3})
        with pytest.raises(InputError, match="'abc' is no key of 'wares'"):
            store.get_by_ids(["abc"])
        arguments: dict[str, Any] = {"table": "wares", "index": "wares_idx", "content": "descr"}
        for change, message in (
            ({"table": "nothing"}, 'no table "nothing"'),
            ({"index": "nothing"}, r"no index 'nothing'.*foh\.create_index"),
            ({"content": "nothing"}, "no column 'nothing'; it has no, descr"),
        ):
            other = FOHVectorStore.from_existing(EMBEDDINGS, url(database), **{**arguments, **change})
            with pytest.raises(InputError, match=message):
                other.similarity_search("x")
            other.close()


class TestConnections:
    def test_engines(self, database: Database) -> None:
        engine = sa.create_engine(url(database))
        store = FOHVectorStore(EMBEDDINGS, engine, table="docs")
        store.add_documents(documents(2))
        store.close()
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM docs")) == 2
        engine.dispose()

    async def test_async_on_an_engine_without_a_loop(self, database: Database) -> None:
        engine = sa.create_engine(url(database))
        store = await FOHVectorStore.afrom_texts(
            ["a"], EMBEDDINGS, ids=["x"], connection=engine, table="docs"
        )
        assert [document.id for document in await store.asimilarity_search("a")] == ["x"]
        engine.dispose()

    def test_mistakes(self, new_database: Any, database: Database) -> None:
        with pytest.raises(InputError, match="needs the argument connection"):
            FOHVectorStore.from_texts(["a"], EMBEDDINGS)
        with pytest.raises(InputError, match="'cos', it must be"):
            FOHVectorStore(EMBEDDINGS, "", distance="cos")
        store = FOHVectorStore(EMBEDDINGS, url(database))
        with pytest.raises(InputError, match="2 texts and 1 ids"):
            store.add_texts(["a", "b"], ids=["x"])
        assert store.add_texts([]) == []
        store.close()
        store = FOHVectorStore(EMBEDDINGS, url(new_database()))
        with pytest.raises(SchemaError, match="run foh-pg migrate"):
            store.similarity_search("a")
        store.close()

    def test_embeddings(self, store: FOHVectorStore) -> None:
        assert isinstance(store.embeddings, Embeddings)
