"""Labels in a table of their own: its writes note the rows whose labels changed, and hide no embedding."""

from __future__ import annotations

import pytest
from psycopg import errors

from tests.integration.capture.test_types import learn_labels
from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    create_table,
    entries,
    expected_code,
    insert,
    newest,
    problems,
    projection,
    vectors,
)

X = vectors(20)
NAMES = ["a", "b", "c"]


@pytest.fixture(params=["statement", "partitioned"])
def tagged(connection: Connection, request: pytest.FixtureRequest) -> Connection:
    create_table(connection, partitioned=request.param == "partitioned")
    # Columns named like variables of the triggers.
    connection.execute(
        """CREATE TABLE tags (id int GENERATED ALWAYS AS IDENTITY,
                              keys int REFERENCES items ON DELETE CASCADE ON UPDATE CASCADE,
                              deferred text, note int)"""
    )
    options = {} if request.param == "partitioned" else {"triggers": request.param}
    create_index(connection, labels="deferred", labels_from="tags", labels_key="keys", options=options)
    learn_labels(connection, NAMES)
    for key in (1, 2, 3):
        insert(connection, key, X[key])
    return connection


def agrees(connection: Connection, live: set[int], noted: set[int]) -> bool:
    """Rows are as they were written; those whose labels changed since are noted, for the next update."""
    assert set(codes(connection)) == live
    assert {entry.key for entry in entries(connection) if entry.op == "l"} == noted
    assert problems(connection) == []
    return True


def tag(connection: Connection, *pairs: tuple[int, str]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO tags (keys, deferred) VALUES (%s, %s)", pairs)


def test_insert(tagged: Connection) -> None:
    tagged.execute("INSERT INTO tags (keys, deferred) VALUES (1, 'a'), (1, 'b'), (2, 'c'), (2, 'unknown')")
    assert agrees(tagged, {1, 2, 3}, {1, 2})


def test_several_tags_of_a_row_are_one_entry(connection: Connection) -> None:
    create_table(connection)
    connection.execute("CREATE TABLE tags (item int, tag text)")
    create_index(connection, labels="tag", labels_from="tags", labels_key="item")
    insert(connection, 1, X[1])
    connection.execute("INSERT INTO tags SELECT 1, 't' || i FROM generate_series(1, 50) i")
    assert len(entries(connection)) == 2
    connection.execute("UPDATE tags SET tag = tag || 'x'")
    connection.execute("DELETE FROM tags")
    assert len(entries(connection)) == 4


def test_delete(tagged: Connection) -> None:
    tag(tagged, (1, "a"), (1, "b"), (2, "c"))
    tagged.execute("DELETE FROM tags WHERE deferred IN ('a', 'c')")
    assert agrees(tagged, {1, 2, 3}, {1, 2})


def test_update_of_a_label(tagged: Connection) -> None:
    tag(tagged, (1, "a"), (2, "a"))
    tagged.execute("UPDATE tags SET deferred = 'b' WHERE keys = 1")
    assert agrees(tagged, {1, 2, 3}, {1, 2})


def test_update_of_the_row_it_belongs_to(tagged: Connection) -> None:
    tag(tagged, (1, "a"), (2, "b"))
    tagged.execute("UPDATE tags SET keys = 3 WHERE keys = 1")
    assert agrees(tagged, {1, 2, 3}, {1, 2, 3})


def test_an_unrelated_update_writes_nothing(tagged: Connection) -> None:
    tag(tagged, (1, "a"), (2, "b"))
    before = entries(tagged)
    tagged.execute("UPDATE tags SET note = 5")
    tagged.execute("UPDATE tags SET deferred = deferred, keys = keys")
    assert entries(tagged) == before


def test_cascades(tagged: Connection) -> None:
    tag(tagged, (1, "a"), (2, "b"))
    tagged.execute("DELETE FROM items WHERE id = 1")
    assert agrees(tagged, {2, 3}, {1, 2})
    tagged.execute("UPDATE items SET id = 4 WHERE id = 3")
    tag(tagged, (4, "c"))
    tagged.execute("UPDATE items SET id = 3 WHERE id = 4")
    assert agrees(tagged, {2, 3}, {1, 2, 3, 4})


def test_rollback(tagged: Connection) -> None:
    tag(tagged, (1, "a"))
    with tagged.transaction(force_rollback=True):
        tagged.execute("DELETE FROM tags")
    assert agrees(tagged, {1, 2, 3}, {1})


def test_truncate_asks_for_a_resync(tagged: Connection) -> None:
    tag(tagged, (1, "a"))
    tagged.execute("TRUNCATE tags")
    assert [entry.op for entry in entries(tagged)][-1] == "r"
    assert problems(tagged) == []


def test_truncate_of_both(tagged: Connection) -> None:
    tag(tagged, (1, "a"))
    tagged.execute("TRUNCATE items CASCADE")
    assert {entry.op for entry in entries(tagged)[-2:]} == {"t", "r"}
    assert newest(tagged) == {}


def test_nulls_and_strangers(connection: Connection) -> None:
    """Labels may come before their row, belong to none, or be null."""
    create_table(connection)
    connection.execute("CREATE TABLE tags (item int, tag text)")
    create_index(connection, labels="tag", labels_from="tags", labels_key="item")
    learn_labels(connection, NAMES)
    connection.execute("INSERT INTO tags VALUES (NULL, 'a'), (1, 'a'), (2, 'b'), (1, NULL)")
    insert(connection, 1, X[1])
    assert agrees(connection, {1}, {1, 2})
    # The labels of a row that are there when it is written count at once.
    assert newest(connection)[1].code != expected_code(projection(connection), X[1])
    connection.execute("UPDATE tags SET item = 9 WHERE item IS NULL")
    connection.execute("UPDATE tags SET item = NULL")
    assert agrees(connection, {1}, {1, 2, 9})


def test_a_partitioned_table_of_labels(connection: Connection) -> None:
    create_table(connection)
    connection.execute("CREATE TABLE tags (item int, tag text) PARTITION BY LIST (tag)")
    connection.execute("CREATE TABLE tags_a PARTITION OF tags FOR VALUES IN ('a')")
    connection.execute("CREATE TABLE tags_other PARTITION OF tags DEFAULT")
    create_index(connection, labels="tag", labels_from="tags", labels_key="item")
    learn_labels(connection, NAMES)
    insert(connection, 1, X[1])
    connection.execute("INSERT INTO tags_a VALUES (1, 'a')")
    assert agrees(connection, {1}, {1})
    connection.execute("UPDATE tags SET tag = 'b'")
    assert agrees(connection, {1}, {1})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "item bigint, tag text",
            "labels_key item of public.tags is of type bigint, the key it refers to is of type integer",
        ),
        (
            "item int, tag text[]",
            r"labels tag of public.tags are of type text\[\]; text, integers, boolean, uuid, an enum and domains",
        ),
        ("item int, other text", "public.tags has no column tag .argument labels."),
        ("other int, tag text", "public.tags has no column item .argument labels_key."),
    ],
)
def test_refusals(connection: Connection, columns: str, message: str) -> None:
    create_table(connection)
    connection.execute(f"CREATE TABLE tags ({columns})")
    with pytest.raises((errors.DatatypeMismatch, errors.UndefinedColumn), match=message):
        create_index(connection, labels="tag", labels_from="tags", labels_key="item")


@pytest.mark.parametrize(
    ("change", "cure"), [("DROP TABLE tags", "drop_index"), ("ALTER TABLE tags RENAME TO marks", "refresh")]
)
def test_what_asks_for_labels_names_the_cure_where_their_table_is_gone(
    tagged: Connection, change: str, cure: str
) -> None:
    tagged.execute(change.encode())
    query = str(X[0].tolist())
    assert len(tagged.execute("SELECT * FROM foh.idx_search(%s)", [query]).fetchall()) == 3
    for asked in (
        "search(%s, match => '{}')",
        'search(%s, match => \'{"labels": ["a"]}\')',
        "explain(%s, match => '{}')",
        "labels(%s)",
        "suggest(length(%s))",
    ):
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="has changed") as error:
            tagged.execute(f"SELECT * FROM foh.idx_{asked}".encode(), [query])
        assert cure in str(error.value.diag.message_hint)
