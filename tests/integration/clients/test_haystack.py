"""The Haystack store: Haystack's own suite, and what that suite does not ask."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
pytest.importorskip("haystack")

import haystack
import numpy as np
import sqlalchemy as sa
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseTests
from haystack.utils import Secret

from foh_pg.errors import InputError, SchemaError
from foh_pg.haystack import FohDocumentStore, FohEmbeddingRetriever
from tests.support.engines import url
from tests.support.postgres import Database, Server


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[Database]:
    """One database for all tests of Haystack's; each finds an empty store."""
    database = server.create_database(template=server.template)
    store = FohDocumentStore(database.dsn(), embedding_dimension=768)
    store.write_documents([Document(id="first")])
    store.delete_documents(["first"])
    store.close()
    yield database
    database.drop()


class SameDocuments:
    @pytest.fixture
    def document_store(self, shared: Database) -> Iterator[FohDocumentStore]:
        store = FohDocumentStore(shared.dsn(), embedding_dimension=768)
        yield store
        store.close()
        with shared.connect() as connection:
            # As good as a new table, and much faster.
            if connection.execute("SELECT to_regclass('haystack_documents')").fetchone() != (None,):
                connection.execute("DELETE FROM haystack_documents")

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        """As Haystack has it, but for the precision of a vector: PostgreSQL keeps 32-bit floats."""
        assert [rounded(each) for each in received] == [rounded(each) for each in expected]


def rounded(document: Document) -> Document:
    vector = document.embedding
    kept = None if vector is None else np.asarray(vector, np.float32).tolist()
    return Document(**{**document.to_dict(flatten=False), "embedding": kept})


class TestStandard(SameDocuments, DocumentStoreBaseTests):
    def test_write_documents(self, document_store: FohDocumentStore) -> None:
        """Without a policy a document that is there is an error; the suite leaves that to each store."""
        documents = [Document(id="1", content="a"), Document(id="2", content="b")]
        assert document_store.write_documents(documents) == 2
        with pytest.raises(
            DuplicateDocumentError, match=r"'1' would be in .* twice: pass .*OVERWRITE or SKIP"
        ):
            document_store.write_documents([Document(id="3", content="c"), Document(id="1", content="d")])
        self.assert_documents_are_equal(document_store.filter_documents(), documents)


def vector(seed: int) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).standard_normal(6)]


def documents(count: int = 8) -> list[Document]:
    return [
        Document(
            id=f"d{i}",
            content=f"text {i}",
            embedding=vector(i),
            meta={"n": i, "topic": "even" if i % 2 == 0 else "odd", "tags": [f"t{i % 3}"], "in": {"deep": i}},
        )
        for i in range(count)
    ]


def ids(found: list[Document]) -> list[str]:
    return [document.id for document in found]


@pytest.fixture
def store(database: Database) -> Iterator[FohDocumentStore]:
    store = FohDocumentStore(
        Secret.from_token(url(database).render_as_string(hide_password=False)),
        embedding_dimension=6,
        table="docs",
        labels=["topic", "tags"],
        bits=32,
        probes=3,
    )
    yield store
    store.close()


class TestStore:
    def test_the_table_is_made_on_demand(self, store: FohDocumentStore, database: Database) -> None:
        assert store.embedding_retrieval(vector(0)) == []
        connection = database.connect()
        assert connection.execute("SELECT to_regclass('docs')").fetchone() == (None,)
        store.write_documents(documents(2))
        assert connection.execute("SELECT id, labels FROM docs ORDER BY id").fetchall() == [
            ("d0", ["even", "t0"]),
            ("d1", ["odd", "t1"]),
        ]
        index = "SELECT name, bits, dimensions, options ->> 'probes' FROM foh.index"
        assert connection.execute(index).fetchall() == [("docs", 32, 6, "3")]

    def test_search(self, store: FohDocumentStore) -> None:
        store.write_documents(documents())
        found = store.embedding_retrieval(vector(5), top_k=3, labels=0)
        assert found[0].id == "d5"
        assert found[0].score == pytest.approx(1, abs=1e-5)
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        assert found[0].embedding is None
        [first] = store.embedding_retrieval(vector(5), top_k=1, return_embedding=True)
        assert first.embedding == pytest.approx(vector(5), abs=1e-5)
        odd = {"field": "meta.topic", "operator": "==", "value": "odd"}
        assert set(ids(store.embedding_retrieval(vector(4), top_k=8, filters=odd))) == {
            "d1",
            "d3",
            "d5",
            "d7",
        }
        assert store.embedding_retrieval(vector(4), top_k=0) == []

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"field": "n", "operator": "<", "value": 2}, {"d0", "d1"}),
            ({"field": "meta.in.deep", "operator": ">=", "value": 6}, {"d6", "d7"}),
            ({"field": "meta.tags", "operator": "==", "value": ["t1"]}, {"d1", "d4", "d7"}),
            ({"field": "id", "operator": "in", "value": ["d3", "d9"]}, {"d3"}),
            ({"field": "content", "operator": "==", "value": "text 2"}, {"d2"}),
            ({"field": "meta.in.nothing", "operator": "!=", "value": None}, set()),
            ({"field": "meta.topic", "operator": ">", "value": "2026-01-01"}, set()),
            ({"field": "meta.it's", "operator": "==", "value": "%s' --"}, set()),
        ],
    )
    def test_filters_are_part_of_a_search(
        self, store: FohDocumentStore, filters: dict[str, Any], expected: set[str]
    ) -> None:
        store.write_documents(documents())
        assert set(ids(store.embedding_retrieval(vector(4), top_k=8, filters=filters))) == expected
        assert set(ids(store.filter_documents(filters))) == expected

    def test_times(self, store: FohDocumentStore) -> None:
        times = ["2026-01-01", "2026-01-01T12:00:00+02:00", "2026-01-01T11:00:00Z", "2026-99-99", "soon", 7]
        store.write_documents([Document(id=str(i), meta={"at": at}) for i, at in enumerate(times)])
        later = {"field": "meta.at", "operator": ">", "value": "2026-01-01T10:00:00"}
        assert ids(store.filter_documents(later)) == ["2"]
        until = {"field": "meta.at", "operator": "<=", "value": "2026-01-01T12:00:00+02:00"}
        assert ids(store.filter_documents(until)) == ["0", "1"]

    @pytest.mark.parametrize(
        "filters",
        [7, {"operator": "XOR", "conditions": []}, {"field": "n", "operator": "~", "value": 1}],
        ids=str,
    )
    def test_malformed_filters(self, store: FohDocumentStore, filters: Any) -> None:
        store.write_documents(documents(1))
        with pytest.raises(FilterError):
            store.filter_documents(filters)

    def test_blobs_and_what_is_not_kept(
        self, store: FohDocumentStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        blob = ByteStream(b"\x00\xff", meta={"from": "file"}, mime_type="image/png")
        sparse = SparseEmbedding([1], [0.5])
        store.write_documents([Document(id="b", blob=blob, embedding=vector(1), sparse_embedding=sparse)])
        [found] = store.filter_documents()
        assert found.blob == blob
        assert "sparse embedding is not stored" in caplog.text

    def test_errors(self, store: FohDocumentStore, new_database: Any) -> None:
        with pytest.raises(InputError, match="'x' has an embedding of 2 dimensions, the store has 6"):
            store.write_documents([Document(id="x", embedding=[1, 2])])
        with pytest.raises(InputError, match="query has 2 dimensions, the store has 6"):
            store.embedding_retrieval([1, 2])
        with pytest.raises(InputError, match="top_k is -1"):
            store.embedding_retrieval(vector(1), top_k=-1)
        with pytest.raises(InputError, match="distance is 'cos'"):
            FohDocumentStore("", distance="cos")
        assert store.write_documents([]) == 0
        other = FohDocumentStore(url(new_database()))
        with pytest.raises(SchemaError, match="run foh-pg migrate"):
            other.count_documents()
        other.close()

    @pytest.mark.parametrize(("distance", "best"), [("l2", 0), ("ip", None)])
    def test_other_distances(self, database: Database, distance: str, best: float | None) -> None:
        store = FohDocumentStore(url(database), embedding_dimension=6, distance=distance)
        store.write_documents(documents())
        found = store.embedding_retrieval(vector(5), top_k=8)
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        if best is not None:
            assert (found[0].id, scores[0]) == ("d5", pytest.approx(best, abs=1e-5))
        store.close()


class TestIncluded:
    @pytest.mark.parametrize(
        ("filters", "match", "rest"),
        [
            ({"field": "meta.n", "operator": ">", "value": 3}, {"n": {">": 3}}, False),
            ({"field": "topic", "operator": "in", "value": ["odd"]}, {"topic": {"=": ["odd"]}}, False),
            ({"field": "n", "operator": "==", "value": None}, None, True),
            ({"field": "n", "operator": "!=", "value": 3}, None, True),
            (
                {
                    "operator": "AND",
                    "conditions": [
                        {"field": "meta.topic", "operator": "==", "value": "odd"},
                        {"field": "meta.n", "operator": "<=", "value": 5},
                        {"field": "meta.in.deep", "operator": ">", "value": 2},
                    ],
                },
                {"topic": {"=": "odd"}, "n": {"<=": 5}},
                True,
            ),
            ({"field": "meta.topic", "operator": ">", "value": "2020-01-01"}, None, True),
        ],
    )
    def test_match_and_filter(
        self, database: Database, monkeypatch: pytest.MonkeyPatch, filters: Any, match: Any, rest: bool
    ) -> None:
        """Filters on entries that the index includes are answered in its lists."""
        monkeypatch.setenv("PG_CONN_STR", database.dsn())
        given: dict[str, Any] = {"embedding_dimension": 6, "table": "docs"}
        made = FohDocumentStore(**given, include={"n": "number", "topic": "text"})
        store = FohDocumentStore.from_dict(made.to_dict())
        store.write_documents([*documents(), Document(id="none", embedding=vector(9), meta={"topic": 1})])
        told = store.explain(vector(1), filters=filters)
        asked = None if match is None else {f"meta_{name}": test for name, test in match.items()}
        assert json.loads(told.get("match", "null")) == asked
        assert ("filter" in told) == rest
        found = sorted(ids(store.embedding_retrieval(vector(1), top_k=20, filters=filters)))
        assert found == sorted(ids(store.filter_documents(filters)))
        other = FohDocumentStore(**given)
        assert found == sorted(ids(other.filter_documents(filters)))
        other.close()
        store.close()


class TestConnections:
    def test_a_table_that_is_there(self, database: Database) -> None:
        owner = database.connect()
        owner.execute(
            """CREATE TABLE wares (no bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
               descr text, price numeric, color text, vec extensions.vector(6))"""
        )
        owner.execute("SELECT foh.create_index('wares_idx', 'wares', 'vec', labels => 'color')")
        store = FohDocumentStore.from_existing(
            url(database),
            table="wares",
            index="wares_idx",
            content="descr",
            embedding="vec",
            meta=["price", "color"],
        )
        wares = [
            Document(id=str(i), content=f"ware {i}", embedding=vector(i), meta={"price": i, "color": "red"})
            for i in range(1, 4)
        ]
        assert store.write_documents(wares) == 3
        [found] = store.embedding_retrieval(vector(2), top_k=1)
        assert (found.id, found.content, found.meta) == ("2", "ware 2", {"price": 2, "color": "red"})
        dear = {"field": "meta.price", "operator": ">=", "value": 2}
        assert ids(store.filter_documents(dear)) == ["2", "3"]
        store.delete_documents(["2", "3"])
        assert owner.execute("SELECT no, descr, price, color FROM wares").fetchall() == [
            (1, "ware 1", 1, "red")
        ]
        with pytest.raises(FilterError, match="keeps no metadata 'size'"):
            store.filter_documents({"field": "meta.size", "operator": "==", "value": 1})
        store.close()


class TestPipeline:
    def test_retriever(self, store: FohDocumentStore) -> None:
        store.write_documents(documents())
        even = {"field": "meta.topic", "operator": "==", "value": "even"}
        retriever = FohEmbeddingRetriever(document_store=store, filters=even, top_k=2, filter_policy="merge")
        few = {"field": "meta.n", "operator": "<", "value": 3}
        pipeline = Pipeline()
        pipeline.add_component("retriever", retriever)
        found = pipeline.run({"retriever": {"query_embedding": vector(5), "filters": few, "labels": 0}})
        assert set(ids(found["retriever"]["documents"])) == {"d0", "d2"}
        assert len(retriever.run(vector(5), top_k=3)["documents"]) == 3
        with pytest.raises(InputError, match="must be a FohDocumentStore, not a str"):
            FohEmbeddingRetriever(document_store="x")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="takes no argument 'probe'"):
            FohEmbeddingRetriever(document_store=store, probe=3).run(vector(5))  # type: ignore[call-arg]

    async def test_async_pipeline(self, store: FohDocumentStore) -> None:
        store.write_documents(documents())
        # Haystack 3 has one kind of pipeline.
        pipeline = getattr(haystack, "AsyncPipeline", Pipeline)()
        pipeline.add_component("retriever", FohEmbeddingRetriever(document_store=store, top_k=1))
        found = await pipeline.run_async({"retriever": {"query_embedding": vector(5)}})
        assert ids(found["retriever"]["documents"]) == ["d5"]

    def test_written_and_read_again(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PG_CONN_STR", url(database).render_as_string(hide_password=False))
        store = FohDocumentStore(embedding_dimension=6, table="docs", labels="topic", dial=0.2)
        pipeline = Pipeline()
        pipeline.add_component("retriever", FohEmbeddingRetriever(document_store=store, top_k=3, labels=0.1))
        # Haystack 3 makes nothing from a file that it was not told to trust.
        trusted = "allowed_modules" in inspect.signature(Pipeline.loads).parameters
        arguments = {"allowed_modules": ["foh_pg.haystack.*"]} if trusted else {}
        again = Pipeline.loads(pipeline.dumps(), **arguments).get_component("retriever")
        assert again.to_dict() == pipeline.get_component("retriever").to_dict()
        assert (again.top_k, again.how, again.document_store.options) == (3, {"labels": 0.1}, {"dial": 0.2})
        again.document_store.write_documents(documents())
        assert len(again.run(vector(1))["documents"]) == 3
        again.document_store.close()

    @pytest.mark.parametrize(
        "connection",
        ["dbname=x password=secret", sa.create_engine("postgresql+psycopg://")],
        ids=["dsn", "engine"],
    )
    def test_only_a_secret_is_written(self, connection: Any) -> None:
        with pytest.raises(InputError, match="only if its connection is a Secret") as caught:
            FohDocumentStore(connection).to_dict()
        assert "password" not in str(caught.value)
