"""The way from a key to its lists: foh.<index>_item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.ragged import Ragged
from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.postgres.binary_copy import INT4, Array
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, RecordKeys

KEYS_AT_ONCE = 20_000

IntArray = npt.NDArray[np.int64]

READ = "SELECT i.key, i.home, i.others FROM {item} i WHERE i.key = ANY (%(keys)s::{key_type}[])"
DELETE = "DELETE FROM {item} WHERE key = ANY (%(keys)s::{key_type}[])"
INSERT = """
INSERT INTO {item} AS i (key, home, others)
SELECT u.key, u.home, u.others::int[]
FROM (SELECT pg_catalog.unnest(%(keys)s::{key_type}[]) AS key, pg_catalog.unnest(%(homes)s::int[]) AS home,
             pg_catalog.unnest(%(others)s::text[]) AS others) u
"""
UPSERT = (
    INSERT
    + """
ON CONFLICT (key) DO UPDATE SET home = excluded.home, others = excluded.others
WHERE i.home <> excluded.home OR i.others IS DISTINCT FROM excluded.others
"""
)
# Where each row is in one list, items follow from the lists. With several lists per row, one of them is the
# home and the rest are the others. In the order of their keys, so that the pages of their index are full.
FROM_LISTS = """
INSERT INTO {item} (key, home)
SELECT e.key, e.center
FROM (SELECT pg_catalog.unnest(l.ids) AS key, l.center FROM {list} l WHERE l.center >= %(first)s) e
ORDER BY e.key
"""
FROM_MANY_LISTS = """
INSERT INTO {item} (key, home, others)
SELECT e.key, (pg_catalog.array_agg(e.center ORDER BY e.center))[1],
       nullif((pg_catalog.array_agg(e.center ORDER BY e.center))[2:], '{{}}')
FROM (SELECT pg_catalog.unnest(l.ids) AS key, l.center FROM {list} l WHERE l.center >= %(first)s) e
GROUP BY e.key ORDER BY e.key
"""


@dataclass(frozen=True)
class Items(SideBySide):
    """Keys and the lists they are in: a home, and further ones where a row has several."""

    keys: KeyArray
    homes: npt.NDArray[np.int64]
    others: Ragged

    def lists(self) -> npt.NDArray[np.int64]:
        """Every list that any of the keys is in."""
        return np.unique(np.concatenate([self.homes, self.others.values.astype(np.int64)]))


def items_of(keys: KeyArray, centers: npt.NDArray[np.int64]) -> Items:
    """Items from ids of centers (n, homes), the nearest first."""
    count, homes = centers.shape
    bounds = np.arange(count + 1, dtype=np.int64) * (homes - 1)
    return Items(keys, centers[:, 0], Ragged(centers[:, 1:].reshape(-1), bounds))


def moved_items(items: Items, keys: KeyArray, old: IntArray, new: IntArray) -> Items:
    """Items where some keys have moved from one list to another; all of their other lists stay."""
    moves = {
        (key, before): after
        for key, before, after in zip(keys.tolist(), old.tolist(), new.tolist(), strict=True)
    }
    owner = items.keys[np.repeat(np.arange(len(items)), items.others.lengths)]

    def follow(who: KeyArray, lists: IntArray) -> IntArray:
        pairs = zip(who.tolist(), lists.tolist(), strict=True)
        return np.fromiter((moves.get(pair, pair[1]) for pair in pairs), dtype=np.int64, count=len(lists))

    others = Ragged(follow(owner, items.others.values), items.others.bounds)
    return Items(items.keys, follow(items.keys, items.homes), others)


def read_items(session: Session, index: IndexRow, keys: KeyArray) -> Items:
    parts: list[tuple[Any, ...]] = []
    for start in range(0, len(keys), KEYS_AT_ONCE):
        listed = index.keys.parameters(keys[start : start + KEYS_AT_ONCE])
        parts += session.copy_out(READ, [index.keys.column, INT4, Array(INT4)], {"keys": listed})
    found = [Items(index.keys.read(key), home, others) for key, home, others in parts]
    return no_items(index).joined(found)


def no_items(index: IndexRow) -> Items:
    none = np.zeros(0, dtype=np.int64)
    return Items(index.keys.empty(), none, Ragged(none, np.zeros(1, dtype=np.int64)))


def write_items(session: Session, index: IndexRow, gone: KeyArray, put: Items) -> None:
    """Delete some items and upsert others."""
    for start in range(0, len(gone), KEYS_AT_ONCE):
        session.execute(DELETE, {"keys": index.keys.parameters(gone[start : start + KEYS_AT_ONCE])})
    for start in range(0, len(put), KEYS_AT_ONCE):
        end = min(start + KEYS_AT_ONCE, len(put))
        others = put.others.part(start, end)
        listed: list[Any] = [None] * others.rows
        if len(others.values):
            listed = [
                "{" + ",".join(map(str, row.tolist())) + "}" if len(row) else None for row in others.each()
            ]
        values = {
            "keys": index.keys.parameters(put.keys[start:end]),
            "homes": put.homes[start:end].tolist(),
            "others": listed,
        }
        if isinstance(index.keys, RecordKeys) and index.keys.has_text:
            # Their index holds hashes, by which PostgreSQL finds no conflict to update.
            session.execute(DELETE, values)
            session.execute(INSERT, values)
        else:
            session.execute(UPSERT, values)


def items_from_lists(session: Session, index: IndexRow, first: int) -> None:
    """Make all items again after a fill, from the lists of center `first` and later ones."""
    single = int(index.options["homes"]) == 1 and int(index.options["neighbors"]) == 0
    session.execute("DELETE FROM {item}")
    session.execute(FROM_LISTS if single else FROM_MANY_LISTS, {"first": first})
