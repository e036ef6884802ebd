"""Keys of the application's rows: their column, how SQL takes them, and what a hash of them decides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID as Uuid

import numpy as np
import numpy.typing as npt

from foh_pg.postgres.binary_copy import INT4, INT8, UUID, Column, Record, Text, VaryingRecord
from foh_pg.postgres.records import PackedRecord, PackedRecords

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

    def array(self, keys: list[Any]) -> list[Any]:
        """Some of what `parameters` gave, as one parameter."""
        return keys

    def sizes(self, keys: KeyArray) -> npt.NDArray[np.int64]:
        """Bytes of every key in an array of them; no encoding needs more for a text than UTF-8."""
        if self.dtype is not object:
            return np.full(len(keys), self.column.width, dtype=np.int64)
        lengths = np.fromiter((len(key.encode()) for key in keys.tolist()), dtype=np.int64, count=len(keys))
        return 4 + 4 * -(-lengths // 4)

    def pack(self, name: str, keys: KeyArray) -> dict[str, KeyArray]:
        """Keys as arrays that are saved without pickle; those of unequal length end to end."""
        if self.dtype is not object:
            return {name: keys}
        packed = [self.to_bytes(key) for key in keys.tolist()]
        return {
            name: np.frombuffer(b"".join(packed), dtype=np.uint8),
            f"{name}_lengths": np.array([len(key) for key in packed], dtype=np.int64),
        }

    def unpack(self, name: str, arrays: Mapping[str, KeyArray]) -> KeyArray:
        """The inverse of `pack`. Earlier versions saved texts in an array as wide as the longest of them."""
        if f"{name}_lengths" not in arrays:
            return np.asarray(arrays[name], dtype=self.dtype) if len(arrays[name]) else self.empty()
        whole, lengths = arrays[name].tobytes(), arrays[f"{name}_lengths"]
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

    def to_text(self, parameter: Any) -> str:
        """One of what `parameters` gave, as it is saved where a build goes on after it."""
        return str(parameter)

    def from_text(self, saved: str) -> Any:
        return int(saved) if self.dtype is np.int64 else saved

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


# Bytes of what a record is made of; those of texts differ.
FIELD_BYTES = {
    "smallint": 2,
    "integer": 4,
    "bigint": 8,
    "uuid": 16,
    "date": 4,
    "timestamp without time zone": 8,
    "timestamp with time zone": 8,
}


class RecordKeys(Keys):
    """Keys of several columns: rows of a composite type, `oid`, that the index has for them.

    They stay the bytes that PostgreSQL sends and takes for such a row: nobody here looks into them. In numpy
    they are `S` of the width of the bytes, and objects of bytes where a text is among the columns.
    """

    def __init__(self, types: Sequence[str], oid: int) -> None:
        widths = [FIELD_BYTES.get(name) for name in types]
        fixed = [width for width in widths if width is not None]
        self.type = "record"
        self.oid = oid
        self.fields = len(widths)
        self.column = Record(fixed, oid) if len(fixed) == len(widths) else VaryingRecord(oid)
        self.dtype = self.column.dtype if isinstance(self.column, Record) else object
        # A row in an array: its header, its fields, each aligned by its width (a uuid by none), and its end.
        size = 24
        for width in fixed:
            size += (-size % width if width < 16 else 0) + width
        self._size = 8 * -(-size // 8)

    def parameters(self, keys: KeyArray) -> list[Any]:
        width = self.column.width or 0
        return PackedRecords((PackedRecord(key.ljust(width, b"\0")) for key in keys.tolist()), self.oid)

    def array(self, keys: list[Any]) -> list[Any]:
        return PackedRecords(keys, self.oid)

    def sizes(self, keys: KeyArray) -> npt.NDArray[np.int64]:
        if isinstance(self.column, Record):
            return np.full(len(keys), self._size, dtype=np.int64)
        # What was sent has eight bytes before a field: no less than its alignment and the length of a text.
        sent = np.fromiter(map(len, keys.tolist()), dtype=np.int64, count=len(keys))
        return 24 + 8 * -(-(sent - 4) // 8)

    def to_bytes(self, key: Any) -> bytes:
        return bytes(key)

    def from_bytes(self, saved: bytes) -> Any:
        return saved

    def to_text(self, parameter: Any) -> str:
        return bytes(parameter).hex()

    def from_text(self, saved: str) -> Any:
        return PackedRecord.fromhex(saved)

    def digested(self, keys: KeyArray) -> Iterable[bytes]:
        """The bytes themselves: as text, dates depend on settings."""
        return iter(self.parameters(keys))


def keys_of(types: Sequence[str], oid: int, encoding: str = "utf-8") -> Keys:
    """The keys of an index whose key columns have these types; `oid` is that of what its lists hold."""
    return RecordKeys(types, oid) if len(types) > 1 else Keys(types[0], encoding)


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
        place = {key: i for i, key in enumerate(among.tolist())}
        return np.fromiter((place.get(key, -1) for key in keys.tolist()), dtype=np.int64, count=len(keys))
    order = np.argsort(among, kind="stable")
    found = np.searchsorted(among[order], keys, side="right") - 1
    at = order[np.maximum(found, 0)]
    return np.where((found >= 0) & (among[at] == keys), at, -1).astype(np.int64)
