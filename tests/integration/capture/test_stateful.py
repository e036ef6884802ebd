"""Any sequence of writes, transactions and savepoints against a dictionary that does the same."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.integration.capture.test_types import learn_labels
from tests.support.recorded import (
    Connection,
    create_index,
    create_table,
    entries,
    expected_code,
    newest,
    problems,
    projection,
    text,
    vectors,
)

X = vectors(12)
TAGS = ["a", "b", "c"]

# Few keys, so that they meet; on both sides of the border between two partitions.
keys = st.sampled_from([1, 2, 3, 99, 100, 101])
choices = st.one_of(st.none(), st.integers(0, len(X) - 1))
tag_lists = st.one_of(st.none(), st.lists(st.sampled_from([*TAGS, "unknown"]), max_size=3, unique=True))


class Row(NamedTuple):
    vector: int | None
    tags: tuple[str, ...] | None
    # The last write that concerned the index queued the key only.
    deferred: bool


State = dict[int, Row]


class Writes(RuleBasedStateMachine):
    """The application: its connection, and what it believes the table holds."""

    connection: Connection
    anchors: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self.connection.execute("ROLLBACK") if self.connection.info.transaction_status else None
        self.connection.execute("SET foh.defer = off")
        self.connection.execute("TRUNCATE items")
        self.connection.execute("DELETE FROM foh.idx_stream")
        self.hash_functions = projection(self.connection)
        self.rows: State = {}
        # What a rollback returns to: first that of the transaction, then those of the savepoints.
        self.saved: list[State] = []
        self.deferred = False

    def execute(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values or None)

    def put(self, key: int, vector: int | None, tags: tuple[str, ...] | None) -> None:
        self.rows[key] = Row(vector, tags, self.deferred)

    @rule(key=keys, vector=choices, tags=tag_lists)
    def upsert(self, key: int, vector: int | None, tags: list[str] | None) -> None:
        self.execute(
            """INSERT INTO items (id, embedding, tags) VALUES (%s, %s, %s)
               ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding, tags = excluded.tags""",
            key,
            None if vector is None else text(X[vector]),
            tags,
        )
        old, new = self.rows.get(key), None if tags is None else tuple(tags)
        if old is None or (old.vector, old.tags) != (vector, new):
            self.put(key, vector, new)

    @rule(given=st.dictionaries(keys, choices, min_size=1))
    def insert_many(self, given: dict[int, int | None]) -> None:
        self.execute(
            """INSERT INTO items (id, embedding)
               SELECT i, v::extensions.vector FROM unnest(%s::int[], %s::text[]) AS t (i, v)
               ON CONFLICT DO NOTHING""",
            list(given),
            [None if vector is None else text(X[vector]) for vector in given.values()],
        )
        for key, vector in given.items():
            if key not in self.rows:
                self.put(key, vector, None)

    @rule(low=keys, high=keys, vector=choices)
    def update_embeddings(self, low: int, high: int, vector: int | None) -> None:
        self.execute(
            "UPDATE items SET embedding = %s WHERE id BETWEEN %s AND %s",
            None if vector is None else text(X[vector]),
            low,
            high,
        )
        for key, row in list(self.rows.items()):
            if low <= key <= high and row.vector != vector:
                self.put(key, vector, row.tags)

    @rule(key=keys, tags=tag_lists)
    def update_labels(self, key: int, tags: list[str] | None) -> None:
        self.execute("UPDATE items SET tags = %s WHERE id = %s", tags, key)
        new = None if tags is None else tuple(tags)
        if key in self.rows and self.rows[key].tags != new:
            self.put(key, self.rows[key].vector, new)

    @rule(key=keys, other=keys)
    def update_key(self, key: int, other: int) -> None:
        if other not in self.rows or key == other:
            self.execute("UPDATE items SET id = %s WHERE id = %s", other, key)
            if key in self.rows and key != other:
                row = self.rows.pop(key)
                self.put(other, row.vector, row.tags)

    @rule(key=keys, other=keys)
    def swap_embeddings(self, key: int, other: int) -> None:
        if key in self.rows and other in self.rows and key != other:
            self.execute(
                """UPDATE items t SET embedding = o.embedding FROM items o
                   WHERE (t.id, o.id) IN ((%s, %s), (%s, %s))""",
                key, other, other, key,
            )  # fmt: skip
            one, two = self.rows[key], self.rows[other]
            if one.vector != two.vector:
                self.put(key, two.vector, one.tags)
                self.put(other, one.vector, two.tags)

    @rule()
    def update_something_else(self) -> None:
        before = len(entries(self.connection))
        self.execute("UPDATE items SET note = note + 1, embedding = embedding, tags = tags")
        assert len(entries(self.connection)) == before

    @rule(low=keys, high=keys)
    def update_included(self, low: int, high: int) -> None:
        """Bits stay as they are, those of a row of which only the key is queued too, unless the table was emptied."""
        emptied = any(entry.op == "t" for entry in entries(self.connection))
        self.execute("UPDATE items SET price = price + 1 WHERE id BETWEEN %s AND %s", low, high)
        for key, row in list(self.rows.items()):
            if low <= key <= high:
                self.rows[key] = row._replace(deferred=self.deferred or (row.deferred and not emptied))

    @rule(low=keys, high=keys)
    def delete(self, low: int, high: int) -> None:
        self.execute("DELETE FROM items WHERE id BETWEEN %s AND %s", low, high)
        self.rows = {key: row for key, row in self.rows.items() if not low <= key <= high}

    @rule()
    def truncate(self) -> None:
        self.execute("TRUNCATE items")
        self.rows = {}

    @rule(deferred=st.booleans())
    def defer(self, deferred: bool) -> None:
        # For the session, by a statement that a rollback would undo: so only outside of transactions.
        if not self.saved:
            self.execute(f"SET foh.defer = {'on' if deferred else 'off'}")
            self.deferred = deferred

    @precondition(lambda self: not self.saved)
    @rule()
    def begin(self) -> None:
        self.execute("BEGIN")
        self.saved.append(copy.copy(self.rows))

    @precondition(lambda self: self.saved)
    @rule()
    def savepoint(self) -> None:
        self.execute(f"SAVEPOINT s{len(self.saved)}")
        self.saved.append(copy.copy(self.rows))

    @precondition(lambda self: self.saved)
    @rule()
    def roll_back(self) -> None:
        """The innermost: to the last savepoint, or all of it."""
        self.execute(f"ROLLBACK TO s{len(self.saved) - 1}" if len(self.saved) > 1 else "ROLLBACK")
        self.rows = self.saved.pop()

    @precondition(lambda self: self.saved)
    @rule()
    def commit(self) -> None:
        self.execute("COMMIT")
        self.saved.clear()

    def expected(self, row: Row) -> str:
        assert row.vector is not None
        weights, bias = self.hash_functions
        x = X[row.vector].astype(np.float64)
        lean = np.linalg.norm(x) * sum(
            (self.anchors[tag] for tag in row.tags or () if tag in self.anchors), 0 * bias
        )
        return expected_code((weights, bias - lean), x)

    @invariant()
    def the_stream_tells_the_table(self) -> None:
        found = newest(self.connection)
        for key, row in self.rows.items():
            if row.vector is not None:
                assert found[key].op == "u"
                assert found[key].code == (None if row.deferred else self.expected(row))
        for key, entry in found.items():
            if key not in self.rows or self.rows[key].vector is None:
                assert entry.code is None

    @invariant()
    def the_check_is_clean(self) -> None:
        assert problems(self.connection) == []

    def teardown(self) -> None:
        if self.saved:
            self.execute("ROLLBACK")


@pytest.mark.one_version(but={"form": ["partitioned"]})
@pytest.mark.parametrize("form", ["statement", "row", "partitioned"])
def test_any_sequence_of_writes(connection: Connection, form: str) -> None:
    create_table(connection, more=", price int DEFAULT 0", partitioned=form == "partitioned")
    create_index(
        connection,
        labels="tags",
        include=["price"],
        options={} if form == "partitioned" else {"triggers": form},
    )
    machine = type("Writes", (Writes,), {"connection": connection, "anchors": learn_labels(connection, TAGS)})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=12, stateful_step_count=25),
    )
