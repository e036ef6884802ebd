"""The model that an index serves at this moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from foh_pg.geometry import Geometry
from foh_pg.model.model import Model
from foh_pg.model.ranking import Ranking
from foh_pg.postgres.binary_copy import FLOAT8, INT4, Array, HalfVector, Nullable, Text, Vector
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray

# The version of an index that was just created.
FIRST = 1

# The newest version is the present one: only an installation writes here.
PRESENT_MODEL = """
SELECT m.learned, m.trained, m.scale, m.mean::real[], m.ranking, m.placed, m.first_center FROM foh.model m
WHERE m.index = {id} ORDER BY m.version DESC LIMIT 1
"""
FAR = "SELECT m.far::{key_type}[] FROM foh.model m WHERE m.index = {id} ORDER BY m.version DESC LIMIT 1"
LABELS = "SELECT l.name, l.projection FROM foh.label l WHERE l.index = {id} ORDER BY l.label"
PROJECTION = "SELECT p.bit, p.weights, p.bias FROM {projection} p ORDER BY p.bit"
GEOMETRY = "SELECT g.signs, g.threshold, g.reach FROM {quantizer} g"


@dataclass(frozen=True)
class Placed:
    """The version that last replaced all centers and the geometry, and the first id of its centers.

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
    """Read the model that is served from the tables that searches and triggers read, in one snapshot."""
    learned, trained, scale, mean, ranking, placed, first_center = session.one(PRESENT_MODEL)
    _, weights, bias = session.read_all(PROJECTION, [INT4, Vector(index.dimensions), FLOAT8])
    # What a label adds is zeros where that is null.
    names, (projection, _) = session.read_all(LABELS, [Text(index.encoding), Nullable(Vector(len(weights)))])
    model = Model(
        weights=weights,
        bias=bias,
        mean=np.array(mean, dtype=np.float32),
        scale=scale,
        trained=trained,
        label_weight=float(index.options["label_weight"]),
        labels=tuple(names.tolist()),
        label_projection=projection,
        geometry=read_geometry(session, Geometry.plain(index.dimensions, index.geometry, index.distance)),
        ranking=Ranking.from_dict(ranking),
        signed=index.labels is not None,
    )
    (keys,) = session.read_all(FAR, [Array(index.keys.column)])
    far = index.keys.read(keys.values)
    return Served(model, learned, learned == FIRST, Placed(placed, first_center), far)


def read_geometry(session: Session, like: Geometry) -> Geometry:
    """The geometry that is served, of as many dimensions and bits as another one."""
    columns = [HalfVector(len(like.signs)), Vector(like.bits), FLOAT8]
    signs, threshold, reach = session.read_all(GEOMETRY, columns)
    return replace(like, signs=signs[0], threshold=threshold[0], reach=float(reach[0]))
