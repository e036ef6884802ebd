"""Keys, embeddings and labels of every type that an index takes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from tests.support.postgres import Database
from tests.support.recorded import (
    Connection,
    add_centers,
    codes,
    create_index,
    entries,
    expected_code,
    expected_codes,
    insert,
    newest,
    problems,
    projection,
    text,
    vectors,
)

X = vectors(20)
UNUSABLE = "the embedding of a row cannot be used (dimensions, NULL, NaN or infinity inside)"


class TestKeys:
    @pytest.mark.one_version(but={"form": ["statement"], "type_": ["bigint", "uuid", "varchar(40)"]})
    @pytest.mark.parametrize(
        ("type_", "first", "second"),
        [
            ("int", -(2**31), 2**31 - 1),
            ("bigint", -(2**63), 2**63 - 1),
            ("uuid", UUID(int=0), UUID(int=2**128 - 1)),
            ("text", "", "ключ 'with' \"quotes\", {braces} and \\"),
            ('text COLLATE "C"', "NULL", "a,b"),
            ("varchar(40)", " a ", "%s"),
        ],
    )
    @pytest.mark.parametrize("form", ["statement", "row"])
    def test_types(self, connection: Connection, type_: str, first: Any, second: Any, form: str) -> None:
        connection.execute(f"CREATE TABLE items (id {type_} PRIMARY KEY, embedding extensions.vector(8))")
        create_index(connection, options={"triggers": form})
        insert(connection, first, X[1])
        assert codes(connection) == expected_codes(connection, {first: X[1]})
        connection.execute("UPDATE items SET id = %s", [second])
        assert codes(connection) == expected_codes(connection, {second: X[1]})
        assert problems(connection) == []
        connection.execute("DELETE FROM items WHERE id = %s", [second])
        assert codes(connection) == {}

    def test_collations_of_two_tables(self, connection: Connection) -> None:
        """Comparing columns of two collations is an error unless one is named: no write may fail for that."""
        connection.execute(
            'CREATE TABLE items (id text COLLATE "C" PRIMARY KEY, embedding extensions.vector(8))'
        )
        connection.execute('CREATE TABLE tags (item text COLLATE "POSIX", tag text COLLATE "ucs_basic")')
        create_index(connection, labels="tag", labels_from="tags", labels_key="item")
        connection.execute("INSERT INTO tags VALUES ('a', 'x')")
        insert(connection, "a", X[1])
        connection.execute("UPDATE tags SET tag = 'y'")
        assert codes(connection) == expected_codes(connection, {"a": X[1]})
        assert problems(connection) == []


class TestEmbeddings:
    @pytest.mark.one_version(but={"distance": ["cosine"]})
    @pytest.mark.parametrize(
        "type_", ["extensions.vector(8)", "extensions.vector", "extensions.halfvec(8)", "extensions.halfvec"]
    )
    @pytest.mark.parametrize("distance", ["cosine", "l2"])
    def test_pgvector(self, connection: Connection, type_: str, distance: str) -> None:
        connection.execute(f"CREATE TABLE items (id int PRIMARY KEY, embedding {type_}, note int)")
        create_index(connection, dimensions=8, distance=distance)
        insert(connection, 1, X[1])
        insert(connection, 2, X[2])
        connection.execute("UPDATE items SET note = 1")
        connection.execute("UPDATE items SET embedding = %s WHERE id = 2", [text(X[3])])
        assert codes(connection) == expected_codes(connection, {1: X[1], 2: X[3]})
        assert len(entries(connection)) == 3

    @pytest.mark.one_version(but={"form": ["statement"]})
    @pytest.mark.parametrize("type_", ["real[]", "double precision[]"])
    @pytest.mark.parametrize("form", ["statement", "row"])
    def test_arrays(self, connection: Connection, type_: str, form: str) -> None:
        connection.execute(f"CREATE TABLE items (id int PRIMARY KEY, embedding {type_}, note int)")
        create_index(connection, dimensions=8, options={"triggers": form})
        for key in (1, 2):
            connection.execute("INSERT INTO items VALUES (%s, %s)", [key, X[key].tolist()])
        connection.execute("UPDATE items SET note = 1")
        assert len(entries(connection)) == 2
        # Counted from another number, an array holds the same.
        connection.execute("UPDATE items SET embedding = ('[3:10]=' || embedding::text)::real[] WHERE id = 2")
        assert codes(connection) == expected_codes(connection, {1: X[1], 2: X[2]})
        assert problems(connection) == []

    @pytest.mark.parametrize(
        "bad",
        [
            "{}",
            "{1,2,3}",
            "{1,2,3,4,5,6,7,8,9}",
            "{1,2,3,4,5,6,7,NULL}",
            "{1,2,3,4,5,6,7,NaN}",
            "{1,2,3,4,5,6,7,Infinity}",
            "{-Infinity,2,3,4,5,6,7,8}",
            "{{1,2,3,4},{5,6,7,8}}",
        ],
    )
    def test_what_cannot_be_an_embedding(self, connection: Connection, bad: str) -> None:
        """Such a row is the application's business: it is written, not indexed, and the check names it."""
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding double precision[])")
        create_index(connection, dimensions=8)
        connection.execute("INSERT INTO items VALUES (1, %s), (2, %s)", [bad, X[2].tolist()])
        assert codes(connection) == expected_codes(connection, {2: X[2]})
        assert problems(connection) == [(UNUSABLE, "1", None)]
        connection.execute("UPDATE items SET embedding = %s WHERE id = 2", [bad])
        assert codes(connection) == {}
        connection.execute("UPDATE items SET embedding = %s", [X[1].tolist()])
        assert codes(connection) == expected_codes(connection, {1: X[1], 2: X[1]})

    @pytest.mark.one_version(but={"distance": ["cosine"]})
    @pytest.mark.parametrize("value", [1e39, 1e300, 1e-300, -1e-50, 3.4e38, -3.39e38])
    @pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
    def test_numbers_at_the_edge_of_a_real(self, connection: Connection, value: float, distance: str) -> None:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding double precision[])")
        create_index(connection, dimensions=2, distance=distance)
        add_centers(connection, [[1.0, 0.0]])
        connection.execute("INSERT INTO items VALUES (1, %s)", [[value, -value]])
        usable = abs(value) < 3.4e38
        assert (1 in codes(connection)) == usable

    def test_wrong_dimensions_where_the_column_allows_them(self, connection: Connection) -> None:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector)")
        create_index(connection, dimensions=8)
        insert(connection, 1, X[1][:5])
        insert(connection, 2, X[2])
        assert codes(connection) == expected_codes(connection, {2: X[2]})
        assert problems(connection) == [(UNUSABLE, "1", None)]
        connection.execute("UPDATE items SET embedding = '[1,2]' WHERE id = 2")
        assert codes(connection) == {}

    def test_the_dimensions_of_the_rows_there_are(self, connection: Connection) -> None:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector)")
        insert(connection, 1, X[1])
        create_index(connection)
        assert connection.execute("SELECT dimensions FROM foh.index").fetchone() == (8,)

    @pytest.mark.parametrize("dimensions", [1, 2000, 2001, 4000])
    def test_dimensions(self, connection: Connection, dimensions: int) -> None:
        connection.execute(
            f"CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector({dimensions}))"
        )
        create_index(connection, bits=8)
        wide = vectors(2, dimensions)
        insert(connection, 1, wide[0])
        assert codes(connection) == expected_codes(connection, {1: wide[0]})

    @pytest.mark.parametrize("bits", [8, 9, 64, 1024])
    def test_bits(self, connection: Connection, bits: int) -> None:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8))")
        create_index(connection, bits=bits)
        insert(connection, 1, X[1])
        assert codes(connection) == expected_codes(connection, {1: X[1]})
        assert len(codes(connection)[1] or "") == bits

    def test_the_origin(self, connection: Connection) -> None:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8))")
        create_index(connection)
        insert(connection, 1, [0] * 8)
        assert codes(connection) == {1: "1" * 32}


class TestLabels:
    @pytest.mark.one_version(but={"type_": ["text", "color[]", "hues", "jsonb"]})
    @pytest.mark.parametrize(
        ("type_", "value", "names"),
        [
            ("text", "red", ["red"]),
            ("varchar(9)", "red", ["red"]),
            ("int", 7, ["7"]),
            ("bigint", -(2**40), [str(-(2**40))]),
            ("smallint", 3, ["3"]),
            ("text[]", ["red", "blue", None], ["red", "blue"]),
            ("int[]", [7, 8], ["7", "8"]),
            ("text[]", ["red", "red"], ["red"]),
            ("text[]", [], []),
            ("text", None, []),
            ("text", "", []),
            ("text[]", ["", "red"], ["red"]),
            ("text[]", [["red", ""], ["blue", "red"]], ["blue", "red"]),
            ("color", "red", ["red"]),
            ("color[]", ["red", "blue"], ["blue", "red"]),
            ("hue", "red", ["red"]),
            ("hues", ["red", "blue"], ["blue", "red"]),
            ("boolean", True, ["true"]),
            ("uuid", UUID(int=7), [str(UUID(int=7))]),
            ("char(5)", "red", ["red"]),
            ("char(5)", "", []),
            ("jsonb", Jsonb(["red", "", 7, None, {"a": "b"}, "blue"]), ["blue", "red"]),
            ("jsonb", Jsonb("red"), ["red"]),
            ("jsonb", Jsonb({"red": 1}), []),
        ],
    )
    def test_codes_lean_on_their_labels(
        self, connection: Connection, type_: str, value: Any, names: list[str]
    ) -> None:
        make_types(connection)
        connection.execute(
            f"CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8), label {type_})"
        )
        create_index(connection, labels="label", options={"label_weight": 0.5})
        anchors = learn_labels(connection, sorted({*names, "unused"}))
        insert(connection, 1, X[1], label=value)
        assert problems(connection) == []
        weights, bias = projection(connection)
        distance = float((X[1].astype(float) ** 2).sum() ** 0.5)
        lean = 0.5 * distance * sum((anchors[name] for name in names), 0 * bias)
        assert newest(connection)[1].code == expected_code((weights, bias - lean), X[1])
        assert (newest(connection)[1].code != expected_code((weights, bias), X[1])) == bool(names)

    def test_a_type_of_labels_that_was_renamed_fails_no_write(
        self, connection: Connection, database: Database
    ) -> None:
        make_types(connection)
        connection.execute(
            "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8), label color)"
        )
        create_index(connection, labels="label")
        connection.execute("ALTER TYPE color RENAME TO colour")
        # In a session that has planned nothing yet.
        insert(database.connect(), 1, X[1], label="red")
        assert [(entry.key, entry.code) for entry in entries(connection)] == [(1, None)]
        assert problems(connection)[0][2] == "column label is of type public.colour"
        connection.execute("SELECT foh.refresh('idx')")
        insert(connection, 2, X[2], label="red")
        assert newest(connection)[2].code is not None

    @pytest.mark.parametrize("type_", ["real", "jsonb[]", "json", "point", "date"])
    def test_types_that_hold_no_labels(self, connection: Connection, type_: str) -> None:
        connection.execute(
            f"CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8), label {type_})"
        )
        with pytest.raises(errors.DatatypeMismatch, match=r"text, integers, boolean, uuid, an enum, arrays"):
            create_index(connection, labels="label")

    def test_labels_without_a_projection_add_nothing(self, connection: Connection) -> None:
        connection.execute(
            "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(8), label text)"
        )
        create_index(connection, labels="label")
        connection.execute("INSERT INTO foh.label (index, label, name) SELECT id, 1, 'red' FROM foh.index")
        insert(connection, 1, X[1], label="red")
        assert codes(connection) == expected_codes(connection, {1: X[1]})


def make_types(connection: Connection) -> None:
    connection.execute("CREATE TYPE color AS ENUM ('red', 'blue')")
    connection.execute("CREATE DOMAIN hue AS color CHECK (VALUE <> 'blue')")
    connection.execute("CREATE DOMAIN hues AS text[]")


def learn_labels(connection: Connection, names: list[str], index: str = "idx") -> dict[str, Any]:
    """A projection for each label, far from zero: it decides some bits."""
    bits = connection.execute("SELECT bits FROM foh.index WHERE name = %s", [index]).fetchone()
    assert bits is not None
    found = {}
    for number, name in enumerate(names):
        found[name] = vectors(1, bits[0], seed=100 + number)[0].astype(float)
        connection.execute(
            """INSERT INTO foh.label (index, label, name, projection)
               SELECT id, %s, %s, %s FROM foh.index WHERE name = %s""",
            [number, name, text(found[name]), index],
        )
    return found
