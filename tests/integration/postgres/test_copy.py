from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from psycopg import sql

from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy import (
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    UUID,
    Array,
    Bits,
    HalfVector,
    Nullable,
    Ragged,
    RowError,
    Vector,
    copy_in,
    copy_out,
)

TEMPORARY = sql.Identifier("copied")


def whole(connection: psycopg.Connection[Any], columns: list[Any], **options: Any) -> list[tuple[Any, ...]]:
    return list(copy_out(connection, sql.SQL("SELECT * FROM copied ORDER BY ctid"), columns, **options))


def one(connection: psycopg.Connection[Any], *columns: Any) -> tuple[Any, ...]:
    chunks = whole(connection, list(columns))
    assert len(chunks) == 1
    return chunks[0]


def make(connection: psycopg.Connection[Any], *types: str) -> list[str]:
    """A table with columns a, b, ... of the given types."""
    names = [chr(ord("a") + i) for i in range(len(types))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    connection.execute("DROP TABLE IF EXISTS copied")
    connection.execute(f"CREATE TEMPORARY TABLE copied ({columns})")
    return names


def text_without_zero(**options: Any) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), **options)


KEYS = {
    "int4": (INT4, st.integers(-(2**31), 2**31 - 1), np.int32),
    "int8": (INT8, st.integers(-(2**63), 2**63 - 1), np.int64),
    "text": (TEXT, text_without_zero(max_size=30), object),
    "uuid": (UUID, st.uuids(), object),
}


def key_array(kind: str, keys: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(keys), dtype=KEYS[kind][2])
    array[:] = keys
    return array


def plain_keys(kind: str, array: np.ndarray[Any, Any]) -> list[Any]:
    if kind == "uuid":
        return [uuid.UUID(bytes=item.ljust(16, b"\0")) for item in array.tolist()]
    return array.tolist()


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(("vector", "bits"), [("vector", 32), ("halfvec", 16)])
class TestKeysAndVectors:
    @given(data=st.data())
    def test_round_trip(
        self, connection: psycopg.Connection[Any], kind: str, vector: str, bits: int, data: st.DataObject
    ) -> None:
        column, strategy, _ = KEYS[kind]
        dimensions = data.draw(st.integers(1, 9))
        keys = data.draw(st.lists(strategy, min_size=1, max_size=20))
        elements = st.floats(-60000, 60000, width=bits)
        matrix = data.draw(hnp.arrays(np.float32, (len(keys), dimensions), elements=elements))
        names = make(connection, kind, f"extensions.{vector}({dimensions})")
        embedding = (Vector if vector == "vector" else HalfVector)(dimensions)

        written = copy_in(connection, TEMPORARY, names, [column, embedding], [key_array(kind, keys), matrix])

        assert written == len(keys)
        assert connection.execute("SELECT a FROM copied ORDER BY ctid").fetchall() == [(key,) for key in keys]
        values = connection.execute("SELECT b::real[] FROM copied ORDER BY ctid").fetchall()
        np.testing.assert_array_equal(np.array([row for (row,) in values], dtype=np.float32), matrix)
        found_keys, found = one(connection, column, embedding)
        assert plain_keys(kind, found_keys) == keys
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, matrix)


class TestScalars:
    @pytest.mark.parametrize(
        ("kind", "column", "values"),
        [
            ("real", FLOAT4, np.array([0, -1.5, 3e38, 1e-40], dtype=np.float32)),
            ("float8", FLOAT8, np.array([0, -1.5, 1e308, 5e-324])),
        ],
    )
    def test_round_trip(
        self, connection: psycopg.Connection[Any], kind: str, column: Any, values: Any
    ) -> None:
        names = make(connection, kind)
        copy_in(connection, TEMPORARY, names, [column], [values])
        [found] = one(connection, column)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)
        written = [
            value for (value,) in connection.execute("SELECT a FROM copied ORDER BY ctid", binary=True)
        ]
        assert [v.encode() if isinstance(v, str) else v for v in written] == values.tolist()


class TestCodes:
    @given(data=st.data())
    def test_round_trip(self, connection: psycopg.Connection[Any], data: st.DataObject) -> None:
        bits = data.draw(st.integers(1, 130))
        digits = data.draw(
            hnp.arrays(np.uint8, (data.draw(st.integers(1, 12)), bits), elements=st.integers(0, 1))
        )
        names = make(connection, f"bit({bits})")
        packed = np.packbits(digits, axis=1)

        copy_in(connection, TEMPORARY, names, [Bits(bits)], [packed])

        strings = [text for (text,) in connection.execute("SELECT a::text FROM copied ORDER BY ctid")]
        assert strings == ["".join(map(str, row)) for row in digits]
        [found] = one(connection, Bits(bits))
        np.testing.assert_array_equal(found, packed)

    def test_bits_beyond_the_end(self) -> None:
        with pytest.raises(InputError, match="beyond its end"):
            Bits(12).encode(np.array([[255, 255]], dtype=np.uint8))


class TestArrays:
    @pytest.mark.parametrize("kind", KEYS)
    @given(data=st.data())
    def test_lists_of_keys_and_codes(
        self, connection: psycopg.Connection[Any], kind: str, data: st.DataObject
    ) -> None:
        """The lists of an index: ids key[], codes bit(k)[]."""
        column, strategy, dtype = KEYS[kind]
        bits = data.draw(st.sampled_from([8, 13, 64]))
        lists = data.draw(st.lists(st.lists(strategy, max_size=7), min_size=1, max_size=6))
        total = sum(map(len, lists))
        codes = np.packbits(
            data.draw(hnp.arrays(np.uint8, (total, bits), elements=st.integers(0, 1))), axis=1
        )
        names = make(connection, f"{kind}[]", f"bit({bits})[]")
        ids = Ragged.of([key_array(kind, keys) for keys in lists], dtype)
        columns = [Array(column), Array(Bits(bits))]

        copy_in(connection, TEMPORARY, names, columns, [ids, Ragged(codes, ids.bounds)])

        rows = connection.execute("SELECT a, b::text[] FROM copied ORDER BY ctid").fetchall()
        assert [row[0] for row in rows] == lists
        digits = [text for row in rows for text in row[1]]
        assert digits == ["".join(map(str, np.unpackbits(code, count=bits))) for code in codes]
        found_ids, found_codes = one(connection, *columns)
        assert [plain_keys(kind, row) for row in found_ids.each()] == lists
        np.testing.assert_array_equal(found_codes.values, codes)
        np.testing.assert_array_equal(found_codes.bounds, ids.bounds)

    @pytest.mark.parametrize(("kind", "element"), [("text", TEXT), ("int4", INT4)])
    @given(data=st.data())
    def test_labels_with_nulls(
        self, connection: psycopg.Connection[Any], kind: str, element: Any, data: st.DataObject
    ) -> None:
        labels = st.none() | st.lists(st.none() | KEYS[kind][1], max_size=5)
        rows = data.draw(st.lists(labels, min_size=1, max_size=15))
        make(connection, f"{kind}[]")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO copied VALUES (%s)", [[row] for row in rows])
        [found] = one(connection, Array(element))
        expected = [[label for label in row or [] if label is not None] for row in rows]
        assert [row.tolist() for row in found.each()] == expected

    def test_dimensions_are_flattened(self, connection: psycopg.Connection[Any]) -> None:
        make(connection, "text[]")
        connection.execute("INSERT INTO copied VALUES ('{{a,b},{c,d}}'), ('{}'), ('[5:6]={e,f}')")
        [found] = one(connection, Array(TEXT))
        assert [row.tolist() for row in found.each()] == [["a", "b", "c", "d"], [], ["e", "f"]]

    def test_long_lists(self, connection: psycopg.Connection[Any]) -> None:
        names = make(connection, "int8[]", "text[]")
        ids = Ragged.of([np.arange(n) for n in (3000, 1, 0, 2000)], np.int64)
        texts = Ragged(np.array([str(i) * 40 for i in ids.values], dtype=object), ids.bounds)
        copy_in(connection, TEMPORARY, names, [Array(INT8), Array(TEXT)], [ids, texts])
        found, found_texts = one(connection, Array(INT8), Array(TEXT))
        np.testing.assert_array_equal(found.values, ids.values)
        np.testing.assert_array_equal(found.bounds, ids.bounds)
        assert found_texts.values.tolist() == texts.values.tolist()

    def test_of_a_type_without_a_known_oid(self) -> None:
        with pytest.raises(InputError, match="arrays of vector"):
            Array(Vector(3))


class TestNulls:
    @given(data=st.data())
    def test_round_trip(self, connection: psycopg.Connection[Any], data: st.DataObject) -> None:
        """A stream: a key or none, a code or none, labels or none."""
        count = data.draw(st.integers(1, 12))
        masks = [data.draw(hnp.arrays(bool, count)) for _ in range(3)]
        keys = data.draw(hnp.arrays(np.int64, count))
        codes = data.draw(hnp.arrays(np.uint8, (count, 2)))
        texts = Ragged.of(
            [["x"] * n for n in data.draw(hnp.arrays(np.int64, count, elements=st.integers(0, 3)))], object
        )
        names = make(connection, "int8", "bit(16)", "text[]")
        columns = [Nullable(INT8), Nullable(Bits(16)), Nullable(Array(TEXT))]

        copy_in(connection, TEMPORARY, names, columns, list(zip([keys, codes, texts], masks, strict=True)))

        nulls = connection.execute(
            "SELECT a IS NOT NULL, b IS NOT NULL, c IS NOT NULL FROM copied ORDER BY ctid"
        )
        assert nulls.fetchall() == list(zip(*(mask.tolist() for mask in masks), strict=True))
        found = one(connection, *columns)
        for (_, present), mask in zip(found, masks, strict=True):
            np.testing.assert_array_equal(present, mask)
        np.testing.assert_array_equal(found[0][0][masks[0]], keys[masks[0]])
        np.testing.assert_array_equal(found[1][0][masks[1]], codes[masks[1]])
        expected = [row.tolist() if here else [] for row, here in zip(texts.each(), masks[2], strict=True)]
        assert [row.tolist() for row in found[2][0].each()] == expected


class TestChunks:
    @pytest.mark.parametrize("key", ["int4", "text"])
    def test_are_bounded_and_complete(self, connection: psycopg.Connection[Any], key: str) -> None:
        make(connection, key, "extensions.vector(50)")
        connection.execute(
            """INSERT INTO copied SELECT i, array_fill(i::real, ARRAY[50])::extensions.vector
               FROM generate_series(1, 2000) i"""
        )
        chunks = whole(connection, [KEYS[key][0], Vector(50)], chunk_bytes=20_000)
        sizes = [len(keys) for keys, _ in chunks]
        assert sum(sizes) == 2000
        # A row is 2 + 4 + key + 4 + 4 + 200 bytes: never more than one row beyond the bound.
        assert max(sizes) <= 20_000 // 215 + 1
        assert [str(k) for keys, _ in chunks for k in keys] == [str(i) for i in range(1, 2001)]
        np.testing.assert_array_equal(np.concatenate([m[:, 7] for _, m in chunks]), np.arange(1, 2001))

    def test_many_rows_are_written_in_pieces(self, connection: psycopg.Connection[Any]) -> None:
        names = make(connection, "int4", "text")
        keys = np.arange(20_000, dtype=np.int32)
        texts = np.array([str(i) for i in keys], dtype=object)
        assert copy_in(connection, TEMPORARY, names, [INT4, TEXT], [keys, texts]) == 20_000
        same = connection.execute("SELECT count(*), bool_and(a::text = b) FROM copied").fetchone()
        assert same == (20_000, True)

    @pytest.mark.parametrize("columns", [[INT4, Vector(3)], [TEXT, Vector(3)]])
    def test_no_rows(self, connection: psycopg.Connection[Any], columns: list[Any]) -> None:
        names = make(connection, columns[0].name, "extensions.vector(3)")
        assert whole(connection, columns) == []
        empty = [np.empty(0, dtype=object if columns[0] is TEXT else np.int32), np.empty((0, 3))]
        assert copy_in(connection, TEMPORARY, names, columns, empty) == 0

    def test_may_be_left_early(self, connection: psycopg.Connection[Any]) -> None:
        make(connection, "int4")
        connection.execute("INSERT INTO copied SELECT generate_series(1, 100000)")
        rows = copy_out(connection, sql.SQL("SELECT * FROM copied"), [INT4], chunk_bytes=1000)
        next(rows)
        rows.close()
        assert connection.execute("SELECT 1").fetchone() == (1,)

    @pytest.mark.parametrize("at", [1, 5000])
    def test_an_error_of_the_server(self, connection: psycopg.Connection[Any], at: int) -> None:
        """In the middle of the rows, and before the first: it is the server's own, and the connection goes on."""
        query = sql.SQL("SELECT (1 / ({} - i))::int8 FROM generate_series(1, 9000) i").format(at)
        with pytest.raises(psycopg.errors.DivisionByZero):
            list(copy_out(connection, query, [INT8], chunk_bytes=1000))
        assert connection.execute("SELECT 1").fetchone() == (1,)

    def test_parameters(self, connection: psycopg.Connection[Any]) -> None:
        make(connection, "int4")
        connection.execute("INSERT INTO copied SELECT generate_series(1, 10)")
        query = sql.SQL("SELECT * FROM copied WHERE a > %s ORDER BY a")
        [(found,)] = list(copy_out(connection, query, [INT4], parameters=[7]))
        assert found.tolist() == [8, 9, 10]


class TestWrongData:
    @pytest.fixture
    def table(self, connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
        make(connection, "int4", "extensions.vector")
        connection.execute("INSERT INTO copied VALUES (1, '[1,2,3]'), (2, '[1,2,3]')")
        return connection

    def test_null(self, table: psycopg.Connection[Any]) -> None:
        table.execute("INSERT INTO copied VALUES (3, NULL)")
        with pytest.raises(RowError, match=r"a vector is NULL \(row 2 of this chunk\)"):
            whole(table, [INT4, Vector(3)])

    def test_another_dimension(self, table: psycopg.Connection[Any]) -> None:
        table.execute("INSERT INTO copied VALUES (3, '[1,2,3,4]')")
        with pytest.raises(RowError, match="a vector has 4 dimensions, and 3 were expected"):
            whole(table, [INT4, Vector(3)])

    def test_another_type(self, table: psycopg.Connection[Any]) -> None:
        with pytest.raises(RowError, match="4 bytes came, and a int8 of 8 bytes was expected"):
            whole(table, [INT8, Vector(3)])

    def test_another_number_of_columns(self, table: psycopg.Connection[Any]) -> None:
        with pytest.raises(RowError, match="returns 2 columns, and 1 were announced"):
            whole(table, [INT4])

    def test_a_number_that_does_not_fit(self, table: psycopg.Connection[Any]) -> None:
        with pytest.raises(InputError, match="does not fit a column of type int4"):
            copy_in(table, TEMPORARY, ["a"], [INT4], [np.array([2**40])])

    def test_a_matrix_of_another_width(self, table: psycopg.Connection[Any]) -> None:
        with pytest.raises(InputError, match=r"vector\(3\) cannot hold an array of shape \(1, 4\)"):
            copy_in(table, TEMPORARY, ["b"], [Vector(3)], [np.zeros((1, 4))])

    def test_columns_of_different_lengths(self, table: psycopg.Connection[Any]) -> None:
        with pytest.raises(InputError, match=r"different numbers of rows: \[2, 1\]"):
            copy_in(table, TEMPORARY, ["a", "b"], [INT4, Vector(3)], [np.arange(2), np.zeros((1, 3))])
        assert table.execute("SELECT count(*) FROM copied").fetchone() == (2,)
