"""Filters that make no sense: whatever is in them, the error is one of ours and names the filter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
pytest.importorskip("haystack")

from haystack import Document as HaystackDocument
from haystack.errors import FilterError
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from foh_pg.errors import InputError
from foh_pg.haystack import FohDocumentStore
from foh_pg.langchain import FOHVectorStore
from tests.support.engines import url
from tests.support.postgres import Database, Server

EMBEDDINGS = DeterministicFakeEmbedding(size=6)
VECTOR = EMBEDDINGS.embed_query("x")

Search = Callable[[Any], object]


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[Database]:
    database = server.create_database(template=server.template)
    owner = database.connect()
    owner.execute(
        """CREATE TABLE wares (no bigint PRIMARY KEY, descr text NOT NULL, price numeric, color text,
           sizes int[], since timestamptz, vec extensions.vector(6))"""
    )
    owner.execute("SELECT foh.create_index('wares', 'wares', 'vec', bits => 32)")
    owner.execute("INSERT INTO wares VALUES (1, 'soap', 3, 'red', '{1,2}', now(), '[1,2,3,4,5,6]')")
    yield database
    database.drop()


@pytest.fixture(scope="module", params=["own table", "columns"])
def langchain(shared: Database, request: pytest.FixtureRequest) -> Iterator[Search]:
    if request.param == "own table":
        store = FOHVectorStore(EMBEDDINGS, url(shared), table="docs")
        store.add_documents([Document("a", id="a", metadata={"n": 1, "tags": ["x"]})])
    else:
        store = FOHVectorStore.from_existing(
            EMBEDDINGS,
            url(shared),
            table="wares",
            content="descr",
            embedding_column="vec",
            metadata=["price", "color", "sizes", "since"],
        )
    yield lambda filter: store.similarity_search_by_vector(VECTOR, 3, filter=filter)
    store.close()


@pytest.fixture(scope="module", params=["own table", "columns"])
def haystack(shared: Database, request: pytest.FixtureRequest) -> Iterator[Search]:
    if request.param == "own table":
        store = FohDocumentStore(shared.dsn(), embedding_dimension=6, table="papers")
        store.write_documents([HaystackDocument(id="a", embedding=VECTOR, meta={"n": 1, "tags": ["x"]})])
    else:
        store = FohDocumentStore.from_existing(
            shared.dsn(),
            table="wares",
            content="descr",
            embedding="vec",
            meta=["price", "color", "sizes", "since"],
        )

    def search(filters: Any) -> None:
        store.embedding_retrieval(VECTOR, top_k=3, filters=filters)
        store.filter_documents(filters)

    yield search
    store.close()


FIELDS = st.sampled_from(
    ["n", "tags", "price", "color", "sizes", "since", "meta.price", "id", "content", "", "a.b"]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**20, 10**30)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["\0", "\ud800", "%", "'", "[1]", "{", "2026-01-01", "red"])
    | st.just(datetime(2026, 1, 1, tzinfo=timezone.utc))
    | st.just(Decimal("NaN"))
    | st.binary(max_size=2)
    | st.just(object())
)
OPERATORS = [
    "$eq",
    "$ne",
    "$lt",
    "$lte",
    "$gt",
    "$gte",
    "$between",
    "$in",
    "$nin",
    "$contains",
    "$exists",
    "$like",
    "$ilike",
    "$and",
    "$or",
    "$not",
    "$",
]


def nested(names: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3) | st.tuples(inner)
        ),
        max_leaves=12,
    )


LANGCHAIN = nested(FIELDS | st.sampled_from(OPERATORS) | st.integers() | st.text(max_size=2))
COMPARED = st.fixed_dictionaries(
    {},
    optional={
        "operator": st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"]) | LEAVES,
        "field": FIELDS | LEAVES,
        "value": nested(st.text(max_size=2)),
    },
)
HAYSTACK = st.recursive(
    COMPARED | LEAVES,
    lambda inner: st.fixed_dictionaries(
        {
            "operator": st.sampled_from(["AND", "OR", "NOT", "XOR"]),
            "conditions": st.lists(inner, max_size=3) | inner,
        }
    ),
    max_leaves=8,
)
FUZZ = settings(max_examples=200)


def deep(levels: int) -> dict[str, Any]:
    filter: dict[str, Any] = {"price": 1}
    for _ in range(levels):
        filter = {"$not": filter}
    return filter


def deep_conditions(levels: int) -> dict[str, Any]:
    filter: dict[str, Any] = {"field": "price", "operator": "==", "value": 1}
    for _ in range(levels):
        filter = {"operator": "NOT", "conditions": [filter]}
    return filter


def refusal(search: Search, filter: Any) -> InputError | None:
    try:
        search(filter)
    except InputError as error:
        return error
    return None


@FUZZ
@given(filter=LANGCHAIN)
@example(filter={"price": {"$in": ["a"]}})
@example(filter={"price": {"$lt": None}})
@example(filter={"color": {"$contains": "r"}})
@example(filter={"n": {"$between": 7}})
@example(filter={"$and": {"n": 1}})
@example(filter={"n": {"$like": 3}})
@example(filter={"n": {"$eq": 10**5000}})
@example(filter={"n": {"$eq": Decimal("1e200000")}})
@example(filter={3: 1})
@example(filter={"n": datetime(2026, 1, 1, tzinfo=timezone.utc)})
def test_langchain(langchain: Search, filter: Any) -> None:
    refused = refusal(langchain, filter)
    assert refused is None or "filter" in str(refused)


@FUZZ
@given(filters=HAYSTACK)
@example(filters={"operator": "AND", "conditions": 7})
@example(filters={"operator": [], "field": "n", "value": 1})
@example(filters={"operator": "<", "field": "price", "value": True})
@example(filters={"operator": "==", "field": "id", "value": {"a": 1}})
@example(filters=0)
def test_haystack(haystack: Search, filters: Any) -> None:
    refused = refusal(haystack, filters)
    assert refused is None or isinstance(refused, FilterError)


@pytest.mark.parametrize("count", [51, 5000])
def test_many_values(langchain: Search, haystack: Search, count: int) -> None:
    """A list of any length is one value for the driver."""
    langchain({"price": {"$in": list(range(count))}})
    haystack({"field": "meta.price", "operator": "in", "value": list(range(count))})


def test_many_conditions(langchain: Search) -> None:
    """A function takes a hundred arguments, and so fifty values; a filter may have more."""
    langchain({"$or": [{"price": number} for number in range(300)]})


@pytest.mark.parametrize("levels", [400, 5000])
def test_too_deep(langchain: Search, haystack: Search, levels: int) -> None:
    with pytest.raises(InputError, match="nested too deep"):
        langchain(deep(levels))
    with pytest.raises(FilterError, match="nested too deep"):
        haystack(deep_conditions(levels))


def test_deep(langchain: Search, haystack: Search) -> None:
    langchain(deep(22))
    haystack(deep_conditions(22))
