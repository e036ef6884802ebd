"""What updaters remember in foh.model_state: arrays as npz, in chunks, each with its digest; no pickle."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.flat import Arrays, flatten, unflatten
from foh_pg.errors import StateError
from foh_pg.runs.session import Session

# Far below what a dump can carry in one field, and small enough to be in memory twice.
CHUNK_BYTES = 16 << 20
# A piece of state has at most 8 GB: sums of a learner and warm rows take some 100 MB, past rows 30 bytes.
MOST_CHUNKS = 512

# The version under which arrays are saved that do not belong to one version of the index.
PRESENT = 0
# Among these, what a filling that is not yet done has saved.
UNFINISHED = ("plan", "position")

DELETE = "DELETE FROM foh.model_state WHERE index = {id} AND version = %(version)s AND name = %(name)s"
INSERT = """
INSERT INTO foh.model_state (index, version, name, chunk, data, digest)
VALUES ({id}, %(version)s, %(name)s, %(chunk)s, %(data)s, %(digest)s)
"""
SIZES = """
SELECT count(*), coalesce(max(octet_length(s.data)), 0) FROM foh.model_state s
WHERE s.index = {id} AND s.version = %(version)s AND s.name = %(name)s
"""
SELECT = """
SELECT chunk, data, digest FROM foh.model_state
WHERE index = {id} AND version = %(version)s AND name = %(name)s ORDER BY chunk
"""


def save_state(session: Session, name: str, version: int, values: Mapping[str, Any]) -> None:
    """Write or replace one piece of state, in the form that `flatten` takes, in the caller's transaction."""
    buffer = io.BytesIO()
    np.savez(buffer, **flatten(values))  # type: ignore[arg-type]
    data = buffer.getbuffer()
    delete_state(session, name, version)
    for chunk, start in enumerate(range(0, len(data), CHUNK_BYTES)):
        piece = bytes(data[start : start + CHUNK_BYTES])
        values = {
            "version": version,
            "name": name,
            "chunk": chunk,
            "data": piece,
            "digest": hashlib.sha256(piece).digest(),
        }
        session.execute(INSERT, values)


def load_state(session: Session, name: str, version: int) -> dict[str, Any] | None:
    """Read what `save_state` wrote; None where there is nothing.

    Nothing larger than what `save_state` writes is read, whatever an archive or an array claims to be.
    """
    chosen = {"version": version, "name": name}
    chunks, longest = session.one(SIZES, chosen)
    if chunks == 0:
        return None
    try:
        if chunks > MOST_CHUNKS or longest > CHUNK_BYTES:
            raise ValueError(f"it has {chunks} chunks of up to {longest} bytes")
        return unflatten(_arrays(_joined(session.rows(SELECT, chosen))))
    except (OSError, ValueError, TypeError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        raise StateError(
            f"state {name!r}, version {version}, of index {session.names['name']} cannot be read ({error}): "
            f"run foh-pg build {session.names['name']} --again, which needs none of it"
        ) from error


def _joined(rows: list[tuple[Any, ...]]) -> bytes:
    for number, (chunk, data, digest) in enumerate(rows):
        if chunk != number or hashlib.sha256(data).digest() != digest:
            raise ValueError(f"chunk {number} is missing or damaged")
    return b"".join(data for _, data, _ in rows)


def _arrays(data: bytes) -> Arrays:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > len(data):
            raise ValueError("it would be larger in memory than it is here")
        return {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members}


def _array(content: bytes) -> npt.NDArray[Any]:
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("it holds an array of an unknown kind")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"an array claims to be {dtype} {shape} in {len(content)} bytes")
    stream.seek(0)
    array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def delete_state(session: Session, name: str, version: int) -> None:
    session.execute(DELETE, {"version": version, "name": name})
