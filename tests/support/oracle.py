"""What an index holds, worked out in Python from its tables in one snapshot; foh.check has no part in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psycopg

Connection = psycopg.Connection[Any]
Array = np.ndarray[Any, Any]

# A threshold may be a number of the row itself. So near to it the bit depends on who has rounded how.
ROUNDING = 1e-5


@dataclass
class Contents:
    """One index and its table, as one transaction sees them."""

    live: dict[int, str]
    lists: list[tuple[int, int, str]]
    entries: list[tuple[int, int | None, str, int, int, str | None]]
    centers: dict[int, int]
    homes: dict[int, int]
    signs: str
    threshold: str
    status: str
    placed: int
    first_center: int
    differences: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, connection: Connection, source: str, index: str) -> Contents:
        """Read everything; the caller has opened a transaction that keeps its snapshot."""

        def rows(text: str) -> list[Any]:
            return connection.execute(text.replace("INDEX", index).replace("SOURCE", source)).fetchall()

        ((status, placed, first_center),) = rows(
            "SELECT i.status, m.placed, m.first_center FROM foh.index i"
            " JOIN foh.model m ON m.index = i.id AND m.version = i.version WHERE i.name = 'INDEX'"
        )
        ((signs, threshold),) = rows("SELECT signs::text, threshold::text FROM foh.INDEX_quantizer")
        return cls(
            dict(rows("SELECT id, embedding::text FROM SOURCE WHERE embedding IS NOT NULL")),
            rows("SELECT unnest(ids), center, unnest(geometry)::text FROM foh.INDEX_list"),
            rows(
                "SELECT seq, key, op::text, version, center, geometry::text FROM foh.INDEX_stream ORDER BY seq"
            ),
            dict(rows("SELECT center, length FROM foh.INDEX_center")),
            dict(rows("SELECT key, home FROM foh.INDEX_item")),
            signs,
            threshold,
            status,
            placed,
            first_center,
        )

    @property
    def reads_source(self) -> bool:
        """Whether searches read the table itself: before the first build, and where it must be read again."""
        return self.status == "building" or any(op == "r" for _, _, op, *_ in self.entries)

    def compare(self) -> list[str]:
        """All that is wrong, a sentence each."""
        truncated = max((seq for seq, _, op, *_ in self.entries if op == "t"), default=0)
        # Lists without a center belong to a build that has not ended. After a TRUNCATE no list counts.
        listed = [] if truncated else [entry for entry in self.lists if entry[1] in self.centers]
        newest = {
            key: (op, version, center, bits)
            for seq, key, op, version, center, bits in self.entries
            if key is not None and op != "l" and seq > truncated
        }
        self._lists(listed, truncated)
        if not self.reads_source:
            self._keys(listed, newest)
            self._bits(listed, newest)
        return self.differences

    def _note(self, what: str, keys: Any) -> None:
        if keys:
            self.differences.append(f"{what}: {sorted(keys)[:5]} ({len(keys)} in all)")

    def _lists(self, listed: list[tuple[int, int, str]], truncated: int) -> None:
        pairs = Counter((key, center) for key, center, _ in listed)
        self._note("in one list more than once", [pair for pair, n in pairs.items() if n > 1])
        keys = Counter(key for key, _, _ in listed)
        self._note("in more than one list", [key for key, n in keys.items() if n > 1])
        if truncated:
            return
        recorded = self.homes.items()
        self._note("in a list that is not its home", pairs.keys() - recorded)
        self._note("not in the list of its home", recorded - pairs.keys())
        lengths = Counter(center for _, center, _ in listed)
        self._note(
            "a center with another length", [c for c, length in self.centers.items() if length != lengths[c]]
        )

    def _keys(self, listed: list[tuple[int, int, str]], newest: dict[int, tuple[Any, ...]]) -> None:
        held = {key for key, _, _ in listed} - newest.keys()
        written = {key for key, (op, *_) in newest.items() if op == "u"}
        # An entry without bits says that its row is to be read from the table, if it is there.
        certain = {key for key in written if newest[key][3] is not None}
        self._note("live rows that the index lacks", self.live.keys() - held - written)
        self._note("rows of the index that are not live", (held | certain) - self.live.keys())
        self._note(
            "entries whose center is gone",
            [
                key
                for key in certain
                if newest[key][2] >= self.first_center and newest[key][2] not in self.centers
            ],
        )

    def _bits(self, listed: list[tuple[int, int, str]], newest: dict[int, tuple[Any, ...]]) -> None:
        """Every entry has the bits of the vector that its row has now."""
        found = [(key, bits) for key, _, bits in listed if key not in newest]
        # The thresholds of entries from before all rows were placed anew are gone; searches read those rows.
        found += [
            (key, bits)
            for key, (op, version, _, bits) in newest.items()
            if op == "u" and bits is not None and version >= self.placed
        ]
        found = [(key, bits) for key, bits in found if key in self.live]
        if not found:
            return
        vectors = parse([self.live[key] for key, _ in found])
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
        numbers = turned(vectors * parse([self.signs]))
        threshold = parse([self.threshold])[0]
        # Two thresholds of each number at least: with few bits not every number has some.
        count = min(numbers.shape[1], len(threshold) // 2)
        above = (numbers[:, None, :count] - threshold.reshape(-1, count)).reshape(len(found), -1)
        stored = np.frombuffer("".join(bits for _, bits in found).encode(), dtype="u1").reshape(above.shape)
        wrong = (((stored == ord("1")) != (above > 0)) & (np.abs(above) > ROUNDING)).any(axis=1)
        self._note("rows with the bits of another vector", [found[i][0] for i in np.flatnonzero(wrong)])


def turned(vectors: Array) -> Array:
    """What thresholds are compared with: sums and differences of both halves, the second rolled in between."""
    even = vectors.shape[1] + vectors.shape[1] % 2
    # Few numbers are filled up with zeros to four times as many.
    half = max(even, min(4 * even, 256)) // 2
    padded = np.pad(vectors, ((0, 0), (0, 2 * half - vectors.shape[1])))
    a, b, turn = padded[:, :half], padded[:, half:], half
    while turn > 0:
        turned_b = b if turn == half else np.roll(b, -turn, axis=1)
        a, b, turn = a + turned_b, a - turned_b, turn // 2
    return np.concatenate([a, b], axis=1)


def parse(vectors: list[str]) -> Array:
    """Vectors as pgvector prints them."""
    rows = ",".join(text[1:-1] for text in vectors)
    return np.array(rows.split(","), dtype=np.float32).reshape(len(vectors), -1)


def differences(connection: Connection, source: str, index: str) -> list[str]:
    return Contents.read(connection, source, index).compare()
