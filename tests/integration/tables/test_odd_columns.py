"""Columns of the application that have the names of what our functions work with."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest
from psycopg import sql

from foh_pg import Index
from foh_pg.updater import build, update
from tests.support.postgres import Database
from tests.support.shop import text, vectors

X = vectors(120)
# What every table has, and what the table of this test has anyway. Words of PL/pgSQL are no names in it.
TAKEN = {"tableoid", "cmax", "xmax", "cmin", "xmin", "ctid", "id", "loop", "while", "begin"}
CREATE = "CREATE TABLE item (id int, loop int, while extensions.vector(8), begin text[]{columns}, PRIMARY KEY (id, loop)){rest}"
INDEX = "SELECT foh.create_index('items', 'item', 'while', labels => 'begin', include => %s, options => %s, bits => 16)"


def words_of_ours(connection: psycopg.Connection[Any], columns: dict[str, str]) -> list[str]:
    """Every word in the functions of an index: arguments, variables, tables and columns among them."""
    connection.execute(CREATE.format(columns="", **columns).encode())
    connection.execute(INDEX, [[], "{}"])
    bodies = connection.execute(
        "SELECT concat_ws(' ', prosrc, proargnames) FROM pg_proc"
        " WHERE pronamespace = 'foh'::regnamespace AND starts_with(proname, 'items_')"
    ).fetchall()
    connection.execute("SELECT foh.drop_index('items')")
    connection.execute("DROP TABLE item")
    return sorted(
        {word for (body,) in bodies for word in re.findall(r'(?<=")[^"\n]+(?=")|\b[a-z_][a-z_0-9]*\b', body)}
        - TAKEN
    )


@pytest.mark.parametrize("rest", ["", " PARTITION BY LIST (loop)"], ids=["table", "partitioned"])
def test_any_word_of_ours_can_be_a_column(
    connection: psycopg.Connection[Any], database: Database, rest: str
) -> None:
    words = words_of_ours(connection, {"rest": rest})
    assert {"wanted", "held_out", "sampled", "key", "near", "attached", "distance"} < set(words)
    connection.execute(
        CREATE.format(columns="".join(f', "{word}" boolean' for word in words), rest=rest).encode()
    )
    if rest:
        for part in range(4):
            connection.execute(f"CREATE TABLE item_{part} PARTITION OF item FOR VALUES IN ({part})".encode())
    write = "INSERT INTO item (id, loop, while, begin, sampled) VALUES (%s, %s, %s, %s, %s)"

    def insert(numbers: range) -> None:
        for number in numbers:
            connection.execute(
                write, [number, number % 3, text(X[number]), [str(number % 2)], number % 5 == 0]
            )

    insert(range(60))
    connection.execute(INDEX, [["sampled", "key", "if"], '{"exact_rows": 0}'])
    build(database.dsn(), "items")
    insert(range(60, 80))
    connection.execute("UPDATE item SET while = %s WHERE id = 3", [text(X[100])])
    connection.execute("UPDATE item SET key = true, if = true WHERE id = 4")
    connection.execute("UPDATE item SET id = 105, loop = 1 WHERE id = 5")
    connection.execute("DELETE FROM item WHERE id = 6")
    index = Index.open(connection, "items")
    for _ in ("stream", "lists"):
        assert [index.search(X[n], 1, labels=0)[0].key for n in (61, 100, 5)] == [(61, 1), (3, 0), (105, 1)]
        for condition in ({"filter": "sampled AND id > 9"}, {"match": {"sampled": True}, "filter": "id > 9"}):
            found = {m.key[0] for m in index.search(X[0], 100, labels=0, **condition)}  # type: ignore[arg-type]
            assert found == set(range(10, 80, 5)) | {105}
        assert [m.key for m in index.search(X[4], 1, match={"key": True, "if": True, "labels": ["0"]})] == [
            (4, 1)
        ]
        assert len(index.search(X[0], 5, shortlist=0)) == len(index.search(X[0], 5, recall=1)) == 5
        assert len(index.search_like((61, 1), 5)) == len(index.candidates(X[0], probes=1000)[:5]) == 5
        assert index.labels(X[0], 1)
        connection.execute(
            "SELECT * FROM foh.items_explain(%s, match => %s)", [text(X[0]), json.dumps({"key": True})]
        )
        assert connection.execute("SELECT * FROM foh.check('items')").fetchall() == []
        assert connection.execute("SELECT * FROM foh.repair('items')").fetchone() == (0, 0, 0)
        update(database.dsn(), "items")
    connection.execute("UPDATE item SET begin = NULL WHERE id = 7")
    assert [suggested.key for suggested in index.suggest(1)] == [(7, 1)]
    if rest:
        connection.execute("ALTER TABLE item DETACH PARTITION item_2")
        update(database.dsn(), "items")
        connection.execute("UPDATE item_2 SET loop = 5")
        connection.execute("ALTER TABLE item ATTACH PARTITION item_2 FOR VALUES IN (5)")
        update(database.dsn(), "items")
        assert index.search(X[8], 1, labels=0)[0].key == (8, 5)
        assert connection.execute("SELECT * FROM foh.check('items')").fetchall() == []


def test_a_key_with_the_name_of_what_postgresql_counts_rows_with(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE TABLE item (ordinality int PRIMARY KEY, embedding extensions.vector(8), tags text[])"
    )
    connection.execute(INDEX.replace("while", "embedding").replace("begin", "tags").encode(), [[], "{}"])
    for number in range(20):
        connection.execute("INSERT INTO item VALUES (%s, %s, '{a}')", [number, text(X[number])])
    [label] = Index.open(connection, "items").labels(X[0], 1)
    assert (label.label, label.neighbors) == ("a", 20)


def test_a_table_with_the_name_of_a_word_of_plpgsql(
    connection: psycopg.Connection[Any], database: Database
) -> None:
    connection.execute("CREATE TABLE loop (id int PRIMARY KEY, embedding extensions.vector(8), tags text[])")
    connection.execute("SELECT foh.create_index('items', 'loop', 'embedding', labels => 'tags')")
    for number in range(20):
        connection.execute(
            "INSERT INTO loop VALUES (%s, %s, %s)", [number, text(X[number]), ["a"] if number else []]
        )
    update(database.dsn(), "items")
    assert [suggested.key for suggested in Index.open(connection, "items").suggest(1)] == [0]


def test_columns_of_a_key_that_are_called_like_parameters_change_their_names(
    connection: psycopg.Connection[Any],
) -> None:
    connection.execute(
        'CREATE TABLE item ("$1" int, "$2" int, embedding extensions.vector(8), tags text[], PRIMARY KEY ("$1", "$2"))'
    )
    connection.execute(INDEX.replace("while", "embedding").replace("begin", "tags").encode(), [[], "{}"])
    connection.execute("INSERT INTO item VALUES (1, 2, %s)", [text(X[0])])
    for old, new in (("$1", "$3"), ("$2", "$1"), ("$3", "$2")):
        connection.execute(
            sql.SQL("ALTER TABLE item RENAME {} TO {}").format(*map(sql.Identifier, (old, new)))
        )
    connection.execute("SELECT foh.refresh('items')")
    found = connection.execute("SELECT * FROM foh.items_search(%s)", [text(X[0])])
    assert [column.name for column in found.description or ()][:2] == ["$2", "$1"]
    assert found.fetchone()[:2] == (1, 2)


@pytest.mark.parametrize("kind", ["text", "text[]", "jsonb"])
def test_labels_in_a_column_with_a_percent_sign(
    connection: psycopg.Connection[Any], database: Database, kind: str
) -> None:
    name = '"100 %s %"'
    connection.execute(
        f"CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(8), {name} {kind})".encode()
    )
    connection.execute(
        "SELECT foh.create_index('items', 'item', 'embedding', labels => '100 %%s %%', bits => 16)", []
    )
    label = {"text": "{}", "text[]": "{{{}}}", "jsonb": '["{}"]'}[kind]
    for number in range(20):
        connection.execute(
            "INSERT INTO item VALUES (%s, %s, %s)", [number, text(X[number]), label.format(number % 4)]
        )
    index = Index.open(connection, "items")
    for condition, remainders in (("any", {1, 2}), ("none", {0, 3})):
        found = index.search(X[0], 100, match={"labels": {condition: ["1", "2"]}})
        assert {m.key for m in found} == {number for number in range(20) if number % 4 in remainders}
    assert {m.key % 4 for m in index.search(X[0], 100, match={"labels": {"all": ["3"]}})} == {3}
