"""The way from a key to its list: foh.<index>_item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.side_by_side import SideBySide
from foh_pg.postgres.binary_copy import INT4
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, RecordKeys

KEYS_AT_ONCE = 20_000

READ = "SELECT i.key, i.home FROM {item} i WHERE i.key = ANY (%(keys)s::{key_type}[])"
DELETE = "DELETE FROM {item} WHERE key = ANY (%(keys)s::{key_type}[])"
INSERT = """
INSERT INTO {item} AS i (key, home)
SELECT u.key, u.home
FROM (SELECT pg_catalog.unnest(%(keys)s::{key_type}[]) AS key, pg_catalog.unnest(%(homes)s::int[]) AS home) u
"""
UPSERT = (
    INSERT
    + """
ON CONFLICT (key) DO UPDATE SET home = excluded.home WHERE i.home <> excluded.home
"""
)
# In the order of their keys, so that the pages of their index are full.
FROM_LISTS = """
INSERT INTO {item} (key, home)
SELECT e.key, e.center
FROM (SELECT pg_catalog.unnest(l.ids) AS key, l.center FROM {list} l WHERE l.center >= %(first)s) e
ORDER BY e.key
"""


@dataclass(frozen=True)
class Items(SideBySide):
    """Keys and the lists that hold them, by the ids of centers."""

    keys: KeyArray
    homes: npt.NDArray[np.int64]


def read_items(session: Session, index: IndexRow, keys: KeyArray) -> Items:
    found = []
    for start in range(0, len(keys), KEYS_AT_ONCE):
        listed = index.keys.parameters(keys[start : start + KEYS_AT_ONCE])
        there, homes = session.read_all(READ, [index.keys.column, INT4], {"keys": listed})
        found.append(Items(index.keys.read(there), homes))
    return no_items(index).joined(found)


def no_items(index: IndexRow) -> Items:
    return Items(index.keys.empty(), np.zeros(0, dtype=np.int64))


def write_items(session: Session, index: IndexRow, gone: KeyArray, put: Items) -> None:
    """Delete some items and upsert others."""
    for start in range(0, len(gone), KEYS_AT_ONCE):
        session.execute(DELETE, {"keys": index.keys.parameters(gone[start : start + KEYS_AT_ONCE])})
    for start in range(0, len(put), KEYS_AT_ONCE):
        end = start + KEYS_AT_ONCE
        values = {
            "keys": index.keys.parameters(put.keys[start:end]),
            "homes": put.homes[start:end].tolist(),
        }
        if isinstance(index.keys, RecordKeys) and index.keys.has_text:
            # Their index holds hashes, by which PostgreSQL finds no conflict to update.
            session.execute(DELETE, values)
            session.execute(INSERT, values)
        else:
            session.execute(UPSERT, values)


def items_from_lists(session: Session, first: int) -> None:
    """Make all items again after a fill, from the lists of center `first` and later ones."""
    session.execute("DELETE FROM {item}")
    session.execute(FROM_LISTS, {"first": first})
