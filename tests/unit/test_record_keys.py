"""Keys of several columns: rows of a composite type, whose bytes nobody looks into."""

from __future__ import annotations

import hashlib
from struct import pack
from typing import Any

import numpy as np
import pytest

from foh_pg.arrays.flat import flatten, unflatten
from foh_pg.arrays.ragged import Ragged
from foh_pg.errors import InputError
from foh_pg.postgres.binary_copy import Array, Record, VaryingRecord
from foh_pg.postgres.binary_copy.reader import parse_fixed, parse_varying
from foh_pg.postgres.binary_copy.writer import fixed_rows, varying_rows
from foh_pg.tables.keys import Keys, RecordKeys, keys_of, member, positions

OID = 4_000_000_001
INT, BIGINT, TEXT = 23, 20, 25


def sent(*fields: tuple[int, bytes]) -> bytes:
    """A row as PostgreSQL sends it."""
    return pack("!i", len(fields)) + b"".join(pack("!ii", oid, len(value)) + value for oid, value in fields)


def pair(tenant: int, number: int) -> bytes:
    return sent((INT, pack("!i", tenant)), (BIGINT, pack("!q", number)))


def named(region: str, number: int) -> bytes:
    return sent((TEXT, region.encode()), (BIGINT, pack("!q", number)))


# The first ends with zeros, which numpy drops from a single item.
PAIRS = [pair(7, 0), pair(-1, 2**62), pair(7, 256), pair(0, 0)]
NAMED = [named("", 0), named("münchen" * 50, -5), named("a", 1 << 40)]


def numbers() -> RecordKeys:
    return RecordKeys(["integer", "bigint"], OID)


def texts() -> RecordKeys:
    return RecordKeys(["text", "bigint"], OID)


def array(known: Keys, rows: list[bytes]) -> Any:
    keys = np.empty(len(rows), dtype=known.dtype)
    keys[:] = rows
    return keys


def test_a_single_column_has_no_record() -> None:
    assert type(keys_of(["bigint"], 20)) is Keys
    assert isinstance(keys_of(["uuid", "date"], OID), RecordKeys)
    # As text, a date depends on the settings of a session.
    assert isinstance(keys_of(["date"], OID), RecordKeys)


@pytest.mark.parametrize(("known", "rows"), [(numbers(), PAIRS), (texts(), NAMED)])
class TestKeys:
    def test_rows_come_back_through_copy(self, known: RecordKeys, rows: list[bytes]) -> None:
        keys = array(known, rows)
        columns = [known.column]
        if known.column.width is None:
            data = varying_rows(columns, [keys]).tobytes()
            ends = np.cumsum([2 + 4 + len(row) for row in rows])
            (read,) = parse_varying(np.frombuffer(data, dtype=np.uint8), np.append(0, ends[:-1]), columns)
        else:
            data = fixed_rows(columns, [keys]).tobytes()
            (read,) = parse_fixed(np.frombuffer(data, dtype=np.uint8), columns)
        assert [*known.digested(known.read(read))] == rows
        assert all(row in data for row in rows)

    def test_arrays_name_the_type(self, known: RecordKeys, rows: list[bytes]) -> None:
        column = Array(known.column)
        lengths, data = column.fields(Ragged(array(known, rows), np.array([0, 0, len(rows)])))
        assert lengths.tolist() == [12, 20 + sum(4 + len(row) for row in rows)]
        assert data.tobytes()[8:12] == pack("!I", OID)
        read = column.read(data, np.cumsum(lengths) - lengths, lengths)
        assert read.lengths.tolist() == [0, len(rows)]
        assert [*known.digested(known.read(read.values))] == rows

    def test_are_saved_without_pickle(self, known: RecordKeys, rows: list[bytes]) -> None:
        for some in (rows, []):
            saved = flatten({"some": known.pack(array(known, some))})
            assert all(each.dtype != object for each in saved.values())
            assert [*known.digested(known.unpack(unflatten(saved)["some"]))] == some

    def test_shares_are_of_what_the_server_sends(self, known: RecordKeys, rows: list[bytes]) -> None:
        expected = [int.from_bytes(hashlib.sha256(row).digest()[:4], "big") / 2**32 for row in rows]
        assert known.shares(array(known, rows)).tolist() == expected

    def test_are_found_among_others(self, known: RecordKeys, rows: list[bytes]) -> None:
        keys = array(known, rows)
        assert member(keys, keys[1:]).tolist() == [False] + [True] * (len(rows) - 1)
        assert positions(keys[::-1], keys).tolist() == [*range(len(rows))][::-1]


def test_texts_of_rows() -> None:
    assert numbers().parameters(array(numbers(), PAIRS)) == ["(7,0)", f"(-1,{2**62})", "(7,256)", "(0,0)"]
    assert texts().parameters(array(texts(), [named("", 0), named('a "b"\\,(ü', -5)])) == [
        '("",0)',
        '("a ""b""\\\\,(ü",-5)',
    ]
    assert numbers().parameters(numbers().empty()) == []


def test_texts_of_dates_do_not_depend_on_settings() -> None:
    types = ["date", "timestamp without time zone", "timestamp with time zone", "smallint", "uuid"]
    known = RecordKeys(types, OID)
    values = [(-1, -1, 1), (2**31 - 1, 2**63 - 1, -(2**63))]
    rows = [
        sent(
            (1082, pack("!i", day)),
            (1114, pack("!q", one)),
            (1184, pack("!q", two)),
            (21, pack("!h", -2)),
            (2950, bytes(range(16))),
        )
        for day, one, two in values
    ]
    last = "-2,00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert known.parameters(array(known, rows)) == [
        f"(J2451544,J2451544 23:59:59.999999,J2451545 00:00:00.000001+00,{last})",
        f"(infinity,infinity,-infinity,{last})",
    ]


@pytest.mark.parametrize(
    ("types", "size"),
    [
        (["integer", "bigint"], 40),
        (["bigint", "integer"], 40),
        (["integer", "integer"], 32),
        (["smallint", "uuid", "timestamp with time zone"], 56),
        (["date", "smallint"], 32),
    ],
)
def test_bytes_of_a_row_in_an_array(types: list[str], size: int) -> None:
    """As pg_column_size says of such a row: a part of a list must fit a page."""
    known = RecordKeys(types, OID)
    assert known.sizes(np.zeros(2, dtype=known.dtype)).tolist() == [size, size]


def test_bytes_of_a_row_with_a_text_are_enough() -> None:
    # 24 of a header; a text of 350 bytes has four more before it, and its end is aligned for the number.
    assert texts().sizes(array(texts(), [named("x" * 350, 1)]))[0] >= 24 + 4 + 352 + 8


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(InputError, match=r"of dtype .S32, and got .S12"):
        Record([4, 8], OID).encode(np.zeros(1, dtype="S12"))


def test_null_is_refused() -> None:
    with pytest.raises(InputError, match="NULL"):
        VaryingRecord(OID).read(np.zeros(0, dtype=np.uint8), np.array([0]), np.array([-1]))
