"""Keys of the application's rows: their column, how SQL takes them, and what a hash of them decides."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID as Uuid

import numpy as np
import numpy.typing as npt

from foh_pg.postgres.binary_copy import INT4, INT8, UUID, Column, Text

KeyArray = npt.NDArray[Any]


class Varchar(Text):
    """Like text, but an array of it names another type."""

    name = "varchar"


class Keys:
    """The kind of keys that one index has.

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
        """Keys as psycopg takes them."""
        if self.type == "uuid":
            return [Uuid(bytes=key.ljust(16, b"\0")) for key in keys.tolist()]
        listed: list[Any] = keys.tolist()
        return listed

    def pack(self, name: str, keys: KeyArray) -> dict[str, KeyArray]:
        """Keys as arrays that are saved without pickle; texts end to end, since their lengths differ."""
        if self.dtype is not object:
            return {name: keys}
        texts = [str(key).encode() for key in keys.tolist()]
        return {
            name: np.frombuffer(b"".join(texts), dtype=np.uint8),
            f"{name}_lengths": np.array([len(text) for text in texts], dtype=np.int64),
        }

    def unpack(self, name: str, arrays: Mapping[str, KeyArray]) -> KeyArray:
        """The inverse of `pack`. Earlier versions saved texts in an array as wide as the longest of them."""
        if f"{name}_lengths" not in arrays:
            return np.asarray(arrays[name], dtype=self.dtype) if len(arrays[name]) else self.empty()
        whole, lengths = arrays[name].tobytes(), arrays[f"{name}_lengths"]
        ends = np.cumsum(lengths).tolist()
        keys = np.empty(len(lengths), dtype=object)
        keys[:] = [
            whole[end - length : end].decode() for end, length in zip(ends, lengths.tolist(), strict=True)
        ]
        return keys

    def texts(self, keys: KeyArray) -> list[str]:
        """Keys as PostgreSQL prints them."""
        return [str(key) for key in self.parameters(keys)]

    def shares(self, keys: KeyArray) -> npt.NDArray[np.float64]:
        """A number in [0, 1) for each key, the same for ever: the first 32 bits of the SHA-256 of its text.

        A row is held out from training where this is below the option `held_out`. In SQL, over 2^32:
        ``('x' || left(encode(sha256(convert_to(key::text, 'UTF8')), 'hex'), 8))::bit(32)::bigint``.
        """
        digests = [hashlib.sha256(text.encode(self.encoding)).digest()[:4] for text in self.texts(keys)]
        return np.frombuffer(b"".join(digests), dtype=">u4") / 2.0**32


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
