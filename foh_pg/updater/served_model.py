"""The model that an index serves at this moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from foh_pg.geometry import Geometry
from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import FLOAT8, INT4, Array, HalfVector, Vector
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.model_state import load_arrays

PRESENT_MODEL = """
SELECT m.learned, m.trained, m.scale, m.mean::real[], m.placed, m.first_center FROM foh.model m
WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})
"""
FAR = """
SELECT m.far::{key_type}[] FROM foh.model m
WHERE m.index = {id} AND m.version = (SELECT i.version FROM foh.index i WHERE i.id = {id})
"""
PROJECTION = "SELECT p.bit, p.weights, p.bias FROM {projection} p ORDER BY p.bit"
GEOMETRY = "SELECT g.signs, g.threshold, g.reach FROM {quantizer} g"


@dataclass(frozen=True)
class Placed:
    """The version that last made centers and geometry anew, and the first id of its centers.

    Entries of the stream that name an earlier center name one that is gone.
    """

    version: int
    first_center: int


@dataclass(frozen=True)
class Served:
    """The model, and where it comes from."""

    model: Model
    # The version that learned its hash functions.
    learned: int
    # Whether these are the very first, made before any row.
    first: bool
    placed: Placed
    # Keys of the far rows: see foh_pg.tables.source.
    far: KeyArray


def read_served(session: Session, index: IndexRow) -> Served:
    """Read the model that is served, inside the caller's snapshot."""
    learned, trained, scale, mean, placed, first_center = session.one(PRESENT_MODEL)
    weight, signed = float(index.options["label_weight"]), index.labels is not None
    arrays = load_arrays(session, "served", learned)
    where = Placed(placed, first_center)
    ((keys,),) = session.copy_out(FAR, [Array(index.keys.column)])
    far = index.keys.read(keys.values)
    # From the table that triggers use: a state saved before there were geometry bits does not have them.
    geometry = _read_geometry(session, index)
    if arrays is not None:
        model = replace(Model.from_arrays(arrays, weight, signed), geometry=geometry)
        return Served(model, learned, False, where, far)
    parts = [*session.copy_out(PROJECTION, [INT4, Vector(index.dimensions), FLOAT8])]
    weights = np.concatenate([part[1] for part in parts])
    bias = np.concatenate([part[2] for part in parts])
    model = Model(weights, bias, np.array(mean, dtype=np.float32), scale, trained, weight)
    return Served(replace(model, geometry=geometry, signed=signed), learned, True, where, far)


def _read_geometry(session: Session, index: IndexRow) -> Geometry:
    plain = Geometry.plain(index.dimensions, index.geometry, index.distance)
    columns = [HalfVector(len(plain.signs)), Vector(plain.bits), FLOAT8]
    ((signs, threshold, reach),) = session.copy_out(GEOMETRY, columns)
    return replace(plain, signs=signs[0], threshold=threshold[0], reach=float(reach[0]))
