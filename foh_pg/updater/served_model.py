"""The model that an index serves at this moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from foh_pg.geometry import Geometry, Vectors
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
    parts = [*session.copy_out(PROJECTION, [INT4, Vector(index.dimensions), FLOAT8])]
    _, weights, bias = (np.concatenate(column) for column in zip(*parts, strict=True))
    names, projection = _read_labels(session, index, len(weights))
    model = Model(
        weights=weights,
        bias=bias,
        mean=np.array(mean, dtype=np.float32),
        scale=scale,
        trained=trained,
        label_weight=float(index.options["label_weight"]),
        labels=names,
        label_projection=projection,
        geometry=_read_geometry(session, index),
        ranking=Ranking.from_dict(ranking),
        signed=index.labels is not None,
    )
    ((keys,),) = session.copy_out(FAR, [Array(index.keys.column)])
    far = index.keys.read(keys.values)
    return Served(model, learned, learned == FIRST, Placed(placed, first_center), far)


def _read_labels(session: Session, index: IndexRow, bits: int) -> tuple[tuple[str, ...], Vectors]:
    """The dictionary, and what each label adds: zeros where that is null."""
    parts = [*session.copy_out(LABELS, [Text(index.encoding), Nullable(Vector(bits))])]
    names = tuple(name for part in parts for name in part[0].tolist())
    none = np.zeros((0, bits), dtype=np.float32)
    return names, np.concatenate([none, *(part[1][0] for part in parts)])


def _read_geometry(session: Session, index: IndexRow) -> Geometry:
    plain = Geometry.plain(index.dimensions, index.geometry, index.distance)
    columns = [HalfVector(len(plain.signs)), Vector(plain.bits), FLOAT8]
    ((signs, threshold, reach),) = session.copy_out(GEOMETRY, columns)
    return replace(plain, signs=signs[0], threshold=threshold[0], reach=float(reach[0]))
