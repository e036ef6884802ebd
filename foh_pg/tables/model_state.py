"""What updaters remember in foh.model_state: arrays as npz, in chunks, each with its digest; no pickle."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.errors import StateError
from foh_pg.tables.session import Session

Arrays = dict[str, npt.NDArray[Any]]

# Far below what a dump can carry in one field, and small enough to be in memory twice.
CHUNK_BYTES = 16 << 20

# The version under which arrays are saved that do not belong to one version of the index.
PRESENT = 0

DELETE = "DELETE FROM foh.model_state WHERE index = {id} AND version = %(version)s AND name = %(name)s"
INSERT = """
INSERT INTO foh.model_state (index, version, name, chunk, data, digest)
VALUES ({id}, %(version)s, %(name)s, %(chunk)s, %(data)s, %(digest)s)
"""
SELECT = """
SELECT chunk, data, digest FROM foh.model_state
WHERE index = {id} AND version = %(version)s AND name = %(name)s ORDER BY chunk
"""


def save_arrays(session: Session, name: str, version: int, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write or replace one piece of state, inside the caller's transaction."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    data = buffer.getbuffer()
    session.execute(DELETE, {"version": version, "name": name})
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


def load_arrays(session: Session, name: str, version: int) -> Arrays | None:
    """Read what `save_arrays` wrote; None where there is nothing."""
    rows = session.rows(SELECT, {"version": version, "name": name})
    if not rows:
        return None
    for number, (chunk, data, digest) in enumerate(rows):
        if chunk != number or hashlib.sha256(data).digest() != digest:
            raise StateError(
                f"chunk {number} of state {name!r}, version {version}, is missing or damaged: "
                f"run foh-pg build {session.names['name']} --again, which needs none of it"
            )
    try:
        with np.load(io.BytesIO(b"".join(data for _, data, _ in rows)), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise StateError(
            f"state {name!r}, version {version}, cannot be read: "
            f"run foh-pg build {session.names['name']} --again, which needs none of it"
        ) from error


def delete_arrays(session: Session, name: str, version: int) -> None:
    session.execute(DELETE, {"version": version, "name": name})
