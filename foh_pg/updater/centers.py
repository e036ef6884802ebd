"""Centers of an index as an updater sees them: foh.<index>_center and foh.<index>_sample side by side."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.codes import CodeArray, width
from foh_pg.database.copy import FLOAT4, FLOAT8, INT4, INT8, Array, Ragged
from foh_pg.errors import StateError
from foh_pg.pool import find_homes, nearest_center
from foh_pg.updater.description import Index
from foh_pg.updater.keys import KeyArray
from foh_pg.updater.model import Vectors
from foh_pg.updater.session import Session

# Members of a list that show how stale it is.
SAMPLE = 16

CENTERS = """
SELECT c.center, c.code, c.embedding, c.length, c.version, c.stale FROM {center} c ORDER BY c.center
"""
SAMPLES = """
SELECT t.center, t.key, t.priority, t.tried, t.ids, t.codes FROM {sample} t ORDER BY t.center
"""
CENTER_CODES = """
INSERT INTO {center_code} (code) SELECT DISTINCT c.code FROM {center} c
"""
GONE = "INSERT INTO {gone} (version, center) SELECT %(version)s, unnest(%(centers)s::int[])"
FORGET_GONE = "DELETE FROM {gone} WHERE version <= %(version)s - {gone_versions}"

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Centers:
    """All arrays have a row per center, in the order of their ids.

    Attributes
    ----------
    ids : array (u,)
    codes, rows : arrays (u, bytes) and (u, d)
        Code and embedding (of length one for cosine) of the row that a center was made of.
    lengths, versions, stale : arrays (u,)
        Of its list: members, the version that last encoded it, the share of bits flipped since.
    keys, priorities, tried : arrays (u,)
        The key of that row; its priority in the sample of the stream; see sql/index/tables.sql.
    sample_keys, sample_codes, sampled : arrays (u, SAMPLE), (u, SAMPLE, bytes), (u,)
        Some members with their codes as stored; the first `sampled[i]` of them are meant.
    """

    ids: IntArray
    codes: CodeArray
    rows: Vectors
    lengths: IntArray
    versions: IntArray
    stale: npt.NDArray[np.float32]
    keys: KeyArray
    priorities: npt.NDArray[np.float64]
    tried: IntArray
    sample_keys: KeyArray
    sample_codes: npt.NDArray[np.uint8]
    sampled: IntArray

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: npt.NDArray[Any]) -> Centers:
        return Centers(*(getattr(self, part.name)[chosen] for part in fields(self)))

    def append(self, other: Centers) -> Centers:
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return Centers(*(np.concatenate(pair) for pair in pairs))

    def find(self, ids: npt.NDArray[Any]) -> IntArray:
        """Positions of centers by id, -1 where there is none."""
        if len(self) == 0:
            return np.full(len(ids), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[at] == ids, at, -1).astype(np.int64)

    def homes(self, index: Index, codes: CodeArray, rows: Vectors, scale: float) -> IntArray:
        """The nearest centers of rows, as positions: (n, homes)."""
        homes = max(1, int(index.options["homes"]))
        given = (codes, rows, self.codes, self.rows)
        blend = index.blend(scale)
        if homes == 1:
            found = nearest_center(*given, bits=index.bits, metric=index.distance, blend=blend)
            return found[:, None]
        return find_homes(*given, bits=index.bits, homes=homes, metric=index.distance, blend=blend)

    def with_(self, **changes: Any) -> Centers:
        return replace(self, **changes)


def make_centers(
    index: Index,
    first_id: int,
    keys: KeyArray,
    codes: CodeArray,
    rows: Vectors,
    priorities: npt.NDArray[np.float64],
    version: int,
) -> Centers:
    """New centers with empty lists."""
    count = len(keys)
    return Centers(
        np.arange(first_id, first_id + count, dtype=np.int64),
        codes,
        stored_rows(index, rows),
        np.zeros(count, dtype=np.int64),
        np.full(count, version, dtype=np.int64),
        np.zeros(count, dtype=np.float32),
        keys,
        np.asarray(priorities, dtype=np.float64),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, SAMPLE), dtype=index.keys.dtype),
        np.zeros((count, SAMPLE, width(index.bits)), dtype=np.uint8),
        np.zeros(count, dtype=np.int64),
    )


def no_centers(index: Index) -> Centers:
    none = np.zeros((0, width(index.bits)), dtype=np.uint8)
    rows = np.zeros((0, index.dimensions), dtype=np.float32)
    return make_centers(index, 1, index.keys.empty(), none, rows, np.zeros(0), 0)


def stored_rows(index: Index, rows: Vectors) -> Vectors:
    """Embeddings of centers as the database will hold them, so that memory and database agree."""
    if index.distance != "cosine":
        return np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    half: Vectors = unit.astype(np.float16).astype(np.float32)
    return half


def read_centers(session: Session, index: Index) -> Centers:
    """All centers, inside the caller's snapshot."""
    keys = index.keys.column
    columns = [INT4, index.code_column, index.center_column, INT4, INT8, FLOAT4]
    found = [*session.copy_out(CENTERS, columns)]
    columns = [INT4, keys, FLOAT8, INT4, Array(keys), Array(index.code_column)]
    more = [*session.copy_out(SAMPLES, columns)]
    none = no_centers(index)
    if not found and not more:
        return none
    ids, codes, rows, lengths, versions, stale = (np.concatenate(parts) for parts in zip(*found, strict=True))
    sample_ids = np.concatenate([part[0] for part in more]) if more else np.zeros(0)
    if not np.array_equal(ids, sample_ids):
        raise StateError(
            f"the centers of index {index.name!r} and what is known of them differ: run foh-pg rebuild"
        )
    padded = [_pad(index, members, codes_) for *_, members, codes_ in more]
    return Centers(
        ids.astype(np.int64),
        codes,
        rows,
        lengths.astype(np.int64),
        versions,
        stale,
        index.keys.read(np.concatenate([part[1] for part in more])),
        np.concatenate([part[2] for part in more]),
        np.concatenate([part[3] for part in more]).astype(np.int64),
        np.concatenate([part[0] for part in padded]),
        np.concatenate([part[1] for part in padded]),
        np.concatenate([part[4].lengths for part in more]),
    )


def _pad(index: Index, members: Ragged, codes: Ragged) -> tuple[KeyArray, npt.NDArray[np.uint8]]:
    keys = np.zeros((members.rows, SAMPLE), dtype=index.keys.dtype)
    padded = np.zeros((members.rows, SAMPLE, width(index.bits)), dtype=np.uint8)
    row = np.repeat(np.arange(members.rows), members.lengths)
    rank = np.arange(len(row)) - np.repeat(members.bounds[:-1], members.lengths)
    keys[row, rank] = members.values
    padded[row, rank] = codes.values
    return keys, padded


def changed_centers(before: Centers, after: Centers) -> tuple[IntArray, IntArray]:
    """Positions in `after` of centers, and of samples, that are new or not as they were."""
    at = before.find(after.ids)
    known = np.flatnonzero(at >= 0)
    old, new = before.take(at[known]), after.take(known)
    same = (
        (old.codes == new.codes).all(axis=1)
        & (old.lengths == new.lengths)
        & (old.versions == new.versions)
        & (old.stale == new.stale)
    )
    within = np.arange(SAMPLE) < new.sampled[:, None]
    same_sample = (
        (old.priorities == new.priorities)
        & (old.tried == new.tried)
        & (old.sampled == new.sampled)
        & ((old.sample_keys == new.sample_keys) | ~within).all(axis=1)
        & ((old.sample_codes == new.sample_codes).all(axis=2) | ~within).all(axis=1)
    )
    added = np.flatnonzero(at < 0)
    return (
        np.sort(np.concatenate([added, known[~same]])),
        np.sort(np.concatenate([added, known[~same_sample]])),
    )


def write_centers(session: Session, index: Index, before: Centers, after: Centers, version: int) -> None:
    """Bring the tables of centers from `before` to `after`, touching only what differs."""
    gone = before.ids[after.find(before.ids) < 0]
    centers, samples = changed_centers(before, after)
    for table, rows in (("center", centers), ("sample", samples)):
        ids = np.concatenate([gone, after.ids[rows]]).tolist()
        if len(ids) and len(before):
            if table == "center":
                session.execute("DELETE FROM {center} WHERE center = ANY (%(ids)s)", {"ids": ids})
            else:
                session.execute("DELETE FROM {sample} WHERE center = ANY (%(ids)s)", {"ids": ids})
    _copy_centers(session, index, after.take(centers))
    _copy_samples(session, index, after.take(samples))
    if len(gone) or len(centers):
        session.execute("DELETE FROM {center_code}")
        session.execute(CENTER_CODES)
    session.execute(GONE, {"version": version, "centers": gone.tolist()})
    session.execute(FORGET_GONE, {"version": version})


def _copy_centers(session: Session, index: Index, centers: Centers) -> None:
    session.copy_in(
        "center",
        ["center", "code", "embedding", "length", "version", "stale"],
        [INT4, index.code_column, index.center_column, INT4, INT8, FLOAT4],
        [centers.ids, centers.codes, centers.rows, centers.lengths, centers.versions, centers.stale],
    )


def _copy_samples(session: Session, index: Index, centers: Centers) -> None:
    keys = index.keys.column
    within = np.arange(SAMPLE) < centers.sampled[:, None]
    bounds = np.concatenate([[0], np.cumsum(centers.sampled)])
    session.copy_in(
        "sample",
        ["center", "key", "priority", "tried", "ids", "codes"],
        [INT4, keys, FLOAT8, INT4, Array(keys), Array(index.code_column)],
        [
            centers.ids,
            centers.keys,
            centers.priorities,
            centers.tried,
            Ragged(centers.sample_keys[within], bounds),
            Ragged(centers.sample_codes[within], bounds),
        ],
    )
