"""Keys of the application's rows: their column, how SQL takes them, and what a hash of them decides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID as Uuid

import numpy as np
import numpy.typing as npt

from foh_pg.postgres.binary_copy import INT4, INT8, UUID, Column, Record, Text, VaryingRecord
from foh_pg.postgres.binary_copy.raw import TYPES
from foh_pg.postgres.binary_copy.record import FIELD_HEADER, HEADER

KeyArray = npt.NDArray[Any]


class Varchar(Text):
    """Like text, but an array of it names another type."""

    name = "varchar"


class Keys:
    """The kind of keys that one index has, where they are single columns.

    In numpy they are int64, `S16` for uuid, and objects of str for text.
    `encoding` is that of the connection.
    """

    def __init__(self, key_type: str, encoding: str = "utf-8") -> None:
        self.type = key_type
        self.encoding = encoding
        columns: dict[str, Column] = {
            "integer": INT4,
            "bigint": INT8,
            "uuid": UUID,
            "character varying": Varchar(encoding),
        }
        self.column = columns.get(key_type) or Text(encoding)
        self.dtype: Any = {"integer": np.int64, "bigint": np.int64, "uuid": "S16"}.get(key_type, object)

    def empty(self) -> KeyArray:
        return np.empty(0, dtype=self.dtype)

    def read(self, values: Any) -> KeyArray:
        """What a COPY gave, in the one dtype that keys of this kind have here."""
        return np.asarray(values, dtype=self.dtype)

    def parameters(self, keys: KeyArray) -> list[Any]:
        """Keys as psycopg takes them; each can be compared with others, and be in a set."""
        if self.type == "uuid":
            return [Uuid(bytes=key.ljust(16, b"\0")) for key in keys.tolist()]
        listed: list[Any] = keys.tolist()
        return listed

    def sizes(self, keys: KeyArray) -> npt.NDArray[np.int64]:
        """Bytes of every key in an array of them; no encoding needs more for a text than UTF-8."""
        if self.dtype is not object:
            return np.full(len(keys), self.column.width, dtype=np.int64)
        lengths = np.fromiter((len(key.encode()) for key in keys.tolist()), dtype=np.int64, count=len(keys))
        return 4 + 4 * -(-lengths // 4)

    def pack(self, keys: KeyArray) -> KeyArray | dict[str, KeyArray]:
        """Keys as they are saved without pickle; those of unequal length end to end."""
        if self.dtype is not object:
            return keys
        packed = [self.to_bytes(key) for key in keys.tolist()]
        return {
            "bytes": np.frombuffer(b"".join(packed), dtype=np.uint8),
            "lengths": np.array([len(key) for key in packed], dtype=np.int64),
        }

    def unpack(self, saved: Any) -> KeyArray:
        """The inverse of `pack`."""
        if self.dtype is not object:
            return np.asarray(saved, dtype=self.dtype)
        whole, lengths = saved["bytes"].tobytes(), saved["lengths"]
        ends = np.cumsum(lengths).tolist()
        keys = np.empty(len(lengths), dtype=object)
        keys[:] = [
            self.from_bytes(whole[end - length : end])
            for end, length in zip(ends, lengths.tolist(), strict=True)
        ]
        return keys

    def to_bytes(self, key: Any) -> bytes:
        """A key of unequal length as it is saved."""
        return str(key).encode()

    def from_bytes(self, saved: bytes) -> Any:
        return saved.decode()

    def digested(self, keys: KeyArray) -> Iterable[bytes]:
        """What the digest of each key is taken of: the key as PostgreSQL prints it."""
        return (str(key).encode(self.encoding) for key in self.parameters(keys))

    def shares(self, keys: KeyArray) -> npt.NDArray[np.float64]:
        """A number in [0, 1) for each key, the same for ever: the first 32 bits of its SHA-256.

        A row is held out from training where this is below the option `held_out`. In SQL, over 2^32:
        ``('x' || left({key_digest}, 8))::bit(32)::bigint``, where foh._names says what {key_digest} is.
        """
        digests = [hashlib.sha256(key).digest()[:4] for key in self.digested(keys)]
        return np.frombuffer(b"".join(digests), dtype=">u4") / 2.0**32


# What a key is where it has one column of these types; other keys are records: see foh._has_record_key.
SINGLE = {"integer", "bigint", "uuid", "text", "character varying"}

# Bytes of what a record is made of; those of texts differ.
FIELD_BYTES = {name: width for name, (_, width) in TYPES.items() if width is not None}
# PostgreSQL counts days and microseconds from here on, the first of January 2000.
FIRST_DAY = 2451545
DAY = 86_400_000_000


class RecordKeys(Keys):
    """Keys of several columns: rows of a composite type, `oid`, that the index has for them.

    They stay the bytes that PostgreSQL sends for such a row. In numpy they are `S` of the width of the bytes,
    and objects of bytes where a text is among the columns.
    """

    def __init__(self, types: Sequence[str], oid: int, encoding: str = "utf-8") -> None:
        self.types = types
        self.encoding = encoding
        widths = [FIELD_BYTES[name] for name in types if name in FIELD_BYTES]
        self.column = Record(widths, oid) if len(widths) == len(types) else VaryingRecord(oid)
        self.dtype = self.column.dtype if isinstance(self.column, Record) else object
        self.has_text = self.dtype is object
        # A row in an array: its header, its fields, each aligned by its width (a uuid by none), and its end.
        size = 24
        for width in widths:
            size += (-size % width if width < 16 else 0) + width
        self._size = 8 * -(-size // 8)

    def parameters(self, keys: KeyArray) -> list[Any]:
        """Keys as PostgreSQL reads them, whatever the settings of a session."""
        if len(keys) == 0:
            return []
        fields = self._fields(keys)
        texts = (_texts(name, field, self.encoding) for name, field in zip(self.types, fields, strict=True))
        return [f"({','.join(key)})" for key in zip(*texts, strict=True)]

    def _fields(self, keys: KeyArray) -> Iterator[Any]:
        """The bytes of each column: a matrix, or a list where the rows differ in length."""
        if isinstance(self.column, Record):
            matrix = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), -1)
            at = HEADER
            for name in self.types:
                at += FIELD_HEADER
                yield np.ascontiguousarray(matrix[:, at : at + FIELD_BYTES[name]])
                at += FIELD_BYTES[name]
        else:
            starts = [HEADER] * len(keys)
            for name in self.types:
                ends = [
                    start + FIELD_HEADER + int.from_bytes(key[start + 4 : start + FIELD_HEADER], "big")
                    for key, start in zip(keys, starts, strict=True)
                ]
                field = [
                    key[start + FIELD_HEADER : end]
                    for key, start, end in zip(keys, starts, ends, strict=True)
                ]
                yield (
                    np.array([[*value] for value in field], dtype=np.uint8) if name in FIELD_BYTES else field
                )
                starts = ends

    def sizes(self, keys: KeyArray) -> npt.NDArray[np.int64]:
        if isinstance(self.column, Record):
            return np.full(len(keys), self._size, dtype=np.int64)
        # What was sent has eight bytes before a field: no less than its alignment and the length of a text.
        sent = np.fromiter(map(len, keys.tolist()), dtype=np.int64, count=len(keys))
        return 24 + 8 * -(-(sent - HEADER) // 8)

    def to_bytes(self, key: Any) -> bytes:
        return bytes(key)

    def from_bytes(self, saved: bytes) -> Any:
        return saved

    def digested(self, keys: KeyArray) -> Iterable[bytes]:
        """The bytes themselves: as PostgreSQL prints them, dates depend on settings."""
        width = self.column.width or 0
        return (key.ljust(width, b"\0") for key in keys.tolist())


def _texts(name: str, field: Any, encoding: str) -> list[str]:
    """The values of one column inside the text of a row."""
    if name not in FIELD_BYTES:
        texts = (value.decode(encoding).replace("\\", "\\\\").replace('"', '""') for value in field)
        return [f'"{text}"' for text in texts]
    if name == "uuid":
        return [str(Uuid(bytes=value.tobytes())) for value in field]
    numbers = field.view(f">i{FIELD_BYTES[name]}").reshape(-1).tolist()
    if name == "date":
        return [_instant(number, 2**31, f"J{FIRST_DAY + number}") for number in numbers]
    if name.startswith("timestamp"):
        zone = "+00" if name.endswith("with time zone") else ""
        return [_instant(number, 2**63, _moment(number) + zone) for number in numbers]
    return [str(number) for number in numbers]


def _moment(microseconds: int) -> str:
    """The day by its Julian number, which every DateStyle reads alike, and the time."""
    day, rest = divmod(microseconds, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    return f"J{FIRST_DAY + day} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"


def _instant(number: int, limit: int, text: str) -> str:
    return "infinity" if number == limit - 1 else "-infinity" if number == -limit else text


def keys_of(types: Sequence[str], oid: int, encoding: str = "utf-8") -> Keys:
    """The keys of an index whose key columns have these types; `oid` is that of what its lists hold."""
    if len(types) == 1 and types[0] in SINGLE:
        return Keys(types[0], encoding)
    return RecordKeys(types, oid, encoding)


def member(keys: KeyArray, among: KeyArray) -> npt.NDArray[np.bool_]:
    """Whether each key is among the others."""
    if len(keys) == 0 or len(among) == 0:
        return np.zeros(len(keys), dtype=bool)
    if keys.dtype == object:
        known = set(among.tolist())
        return np.fromiter((key in known for key in keys.tolist()), dtype=bool, count=len(keys))
    return np.isin(keys, among)


def positions(keys: KeyArray, among: KeyArray) -> npt.NDArray[np.int64]:
    """Where each key stands among the others (the last place of several), -1 where it does not."""
    if len(keys) == 0 or len(among) == 0:
        return np.full(len(keys), -1, dtype=np.int64)
    if keys.dtype == object:
        where = {key: i for i, key in enumerate(among.tolist())}
        return np.fromiter((where.get(key, -1) for key in keys.tolist()), dtype=np.int64, count=len(keys))
    order = np.argsort(among, kind="stable")
    found = np.searchsorted(among[order], keys, side="right") - 1
    at = order[np.maximum(found, 0)]
    return np.where((found >= 0) & (among[at] == keys), at, -1).astype(np.int64)
