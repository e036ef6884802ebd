"""The one transaction that puts a new version of an index in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import LiteralString

import numpy as np
import numpy.typing as npt
from psycopg.types.json import Jsonb

from foh_pg.arrays.codes import pack
from foh_pg.arrays.flat import values_of
from foh_pg.errors import FenceError
from foh_pg.geometry import Geometry
from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import FLOAT8, INT4, Bits, HalfVector, Vector
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import Centers, replace_centers, write_centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.items import Items, items_from_lists, write_items
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.lists import write_lists
from foh_pg.tables.model_state import PRESENT, UNFINISHED, save_state
from foh_pg.tables.parts import ListChange
from foh_pg.updater.handover import Handover
from foh_pg.updater.served_model import Served, read_geometry, read_served

SEQS_AT_ONCE = 50_000
LABELS_AT_ONCE = 1000

# The fence: an updater that comes second finds another version here, fails, and has changed nothing.
FENCE = """
UPDATE foh.index SET version = %(new)s, status = 'ready', next_center = %(next_center)s
WHERE id = {id} AND version = %(old)s
"""
# Searches step over deleted and replaced rows until these are vacuumed. These tables are small beside lists.
VACUUM = "VACUUM (SKIP_LOCKED) {stream}, {center}, {area}, {projection}"
# Lists and items grow with the source, and what updaters remember is large, so these tables are vacuumed only
# where much of them was replaced since the last vacuum.
# A small table could grow tenfold before autovacuum comes.
# PostgreSQL writes the counts of a session once a second at the most, unless it is asked to do so.
COUNT = "SELECT pg_catalog.pg_stat_force_next_flush()"
REPLACED = """
SELECT n.name
FROM (VALUES ('list', %(list)s::regclass), ('sample', %(sample)s::regclass), ('item', %(item)s::regclass),
             ('state', 'foh.model_state'::regclass)) AS n (name, id)
WHERE pg_catalog.pg_stat_get_dead_tuples(n.id) > 0.2 * pg_catalog.pg_stat_get_live_tuples(n.id)
"""
VACUUM_REPLACED: dict[str, LiteralString] = {
    "list": "VACUUM (SKIP_LOCKED) {list}",
    "sample": "VACUUM (SKIP_LOCKED) {sample}",
    "item": "VACUUM (SKIP_LOCKED) {item}",
    "state": "VACUUM (SKIP_LOCKED) foh.model_state",
}
CONSUME = "DELETE FROM {stream} WHERE seq = ANY (%(seqs)s::bigint[])"
MODEL = """
INSERT INTO foh.model (index, version, trained, learned, mean, scale, metrics, placed, first_center, ranking,
                       weight_code, weight_votes, probes, shortlist, nearest_probes, nearest_shortlist,
                       reach_recall, reach_probes, reach_shortlist, chances, small, far)
VALUES ({id}, %(version)s, %(trained)s, %(learned)s, %(mean)s::real[]::{vector}.vector, %(scale)s,
        %(metrics)s, %(placed)s, %(first_center)s, %(ranking)s, %(code)s, %(votes)s, %(probes)s,
        %(shortlist)s, %(nearest_probes)s, %(nearest_shortlist)s,
        %(recalls)s::float8[],
        %(reach_probes)s::int[], %(reach_shortlists)s::int[], %(chances)s::float8[], %(small)s,
        nullif(%(far)s::{key_type}[]::text[], '{{}}'))
"""
# Versions that only merged rows have no hash functions of their own to return to.
FORGET_MERGES = "DELETE FROM foh.model WHERE index = {id} AND version < %(version)s AND version <> learned"
FORGET_MODELS = """
DELETE FROM foh.model WHERE index = {id} AND learned <> ALL (
    SELECT DISTINCT m.learned FROM foh.model m WHERE m.index = {id} ORDER BY m.learned DESC LIMIT %(keep)s)
"""
LABELS = "SELECT l.label, l.name, l.projection IS NOT NULL FROM foh.label l WHERE l.index = {id}"
WRITE_LABELS = """
INSERT INTO foh.label (index, label, name, projection)
SELECT {id}, u.label, u.name, u.projection::{vector}.vector
FROM ROWS FROM (pg_catalog.unnest(%(labels)s::int[]), pg_catalog.unnest(%(names)s::text[]),
                pg_catalog.unnest(%(projections)s::text[])) AS u (label, name, projection)
"""
# States of models that were forgotten, and the filling that became this version, or is void by it.
FORGET_STATES = """
DELETE FROM foh.model_state s WHERE s.index = {id} AND CASE WHEN s.version = %(present)s
    THEN s.name = ANY (%(unfinished)s::text[])
    ELSE NOT EXISTS (SELECT FROM foh.model m WHERE m.index = {id} AND m.learned = s.version) END
"""


@dataclass(frozen=True)
class Merged:
    """What changes in the lists, where they are not all new."""

    # The centers as they are before the change: only what differs is written.
    before: Centers
    lists: ListChange
    # gone, put: items to delete and to write.
    gone: KeyArray
    put: Items


@dataclass(frozen=True)
class Change:
    """A new version of an index: all that is written to the database in one transaction."""

    # As it was read: its version is the one that this change replaces.
    index: IndexRow
    # All centers from now on.
    after: Centers
    # None where all lists are new: they stand in the database already, from served.placed.first_center on.
    merged: Merged | None
    # The model from now on. It is new where this version has learned it.
    served: Served
    # None leaves the learner that is stored.
    learner: Learner | None
    # What the next run must know.
    handover: Handover
    # Exactly the entries of the stream that this version contains.
    consumed: npt.NDArray[np.int64]
    # Kept with the model.
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return self.index.version + 1

    @property
    def next_center(self) -> int:
        """The first id that no center has had."""
        return max(self.index.next_center, int(self.after.ids.max(initial=0)) + 1)


def install(session: Session, run: Run, new: Change) -> None:
    """Write all of a new version, or nothing."""
    with run.phase("switch"), session.write():
        _fence(session, new)
        run.step(1, 6)
        _write_lists(session, new)
        run.step(2, 6)
        _write_centers(session, new)
        run.step(3, 6)
        _write_model(session, new)
        run.step(4, 6)
        consume(session, new.consumed)
        run.step(5, 6)
        previous, run.to_version = run.to_version, new.version
        try:
            run.save(session)
            run.step(6, 6)
        except BaseException:
            run.to_version = previous
            raise
    with run.phase("vacuum"):
        session.vacuum(VACUUM)
        session.execute(COUNT)
        tables = {name: session.names[name] for name in ("list", "sample", "item")}
        for (table,) in session.rows(REPLACED, tables):
            session.vacuum(VACUUM_REPLACED[table])


def _write_lists(session: Session, new: Change) -> None:
    """What changes in lists and items; or all items, where all lists are new and written already."""
    if new.merged is not None:
        write_lists(session, new.index, new.merged.lists)
        write_items(session, new.index, new.merged.gone, new.merged.put)
        return
    first = new.served.placed.first_center
    session.execute("DELETE FROM {list} WHERE center < %(first)s", {"first": first})
    if not new.index.filled:
        session.execute("SELECT foh._filled({id})")
    items_from_lists(session, first)


def _write_centers(session: Session, new: Change) -> None:
    if new.merged is not None:
        write_centers(session, new.index, new.merged.before, new.after)
    else:
        replace_centers(session, new.index, new.after)


def _fence(session: Session, new: Change) -> None:
    values = {"old": new.index.version, "new": new.version, "next_center": new.next_center}
    if session.execute(FENCE, values) != 1:
        raise FenceError(
            f"index {new.index.name!r} is no longer at version {new.index.version}: another updater was "
            "faster, and nothing was written; run the command again"
        )


def consume(session: Session, seqs: npt.NDArray[np.int64]) -> None:
    """Delete exactly these entries: one with a smaller seq may have been committed since they were read."""
    for start in range(0, len(seqs), SEQS_AT_ONCE):
        session.execute(CONSUME, {"seqs": seqs[start : start + SEQS_AT_ONCE].tolist()})


def _write_model(session: Session, new: Change) -> None:
    served, model = new.served, new.served.model
    ranking = model.ranking.for_centers(len(new.after))
    values = {
        "version": new.version,
        "trained": model.trained,
        "learned": served.learned,
        "mean": model.mean.astype(np.float64).tolist(),
        "scale": model.scale,
        "metrics": Jsonb(new.metrics),
        "placed": served.placed.version,
        "first_center": served.placed.first_center,
        "small": not model.trained and int(new.after.lengths.sum()) <= int(new.index.options["exact_rows"]),
        "far": new.index.keys.parameters(served.far),
        "ranking": Jsonb(model.ranking.to_dict()),
        **ranking.to_dict(),
        "recalls": [step.recall for step in ranking.reach] or None,
        "reach_probes": [step.probes for step in ranking.reach] or None,
        "reach_shortlists": [step.shortlist for step in ranking.reach] or None,
        "chances": ranking.chances and list(ranking.chances),
    }
    if served.learned == new.version:
        _archive(session, new.index)
        write_hash_functions(session, model)
    session.execute(MODEL, values)
    if new.learner is not None:
        # Saved even where its model is not served: learning goes on beside the model that is.
        save_state(session, "learner", served.learned, new.learner.saved())
    save_state(session, "progress", PRESENT, new.handover.saved(new.index))
    session.execute(FORGET_MERGES, {"version": new.version})
    session.execute(FORGET_MODELS, {"keep": int(new.index.options["keep_versions"])})
    session.execute(FORGET_STATES, {"present": PRESENT, "unfinished": list(UNFINISHED)})


def _archive(session: Session, index: IndexRow) -> None:
    """Keep the model that is replaced, for a rollback; what is served stands in the tables alone."""
    before = read_served(session, index)
    if not before.first:
        save_state(session, "served", before.learned, values_of(before.model))


def write_hash_functions(session: Session, model: Model) -> None:
    """Replace projection and geometry, and bring the dictionary of labels in line."""
    bits = model.bits
    session.execute("DELETE FROM {projection}")
    session.copy_in(
        "projection",
        ["bit", "weights", "bias", "mask"],
        [INT4, Vector(model.weights.shape[1]), FLOAT8, Bits(bits)],
        [np.arange(bits), model.weights, model.bias, pack(np.eye(bits, dtype=bool))],
    )
    _write_labels(session, model)
    assert model.geometry is not None
    _write_geometry(session, model.geometry)


def _write_geometry(session: Session, geometry: Geometry) -> None:
    """Replace the one row where it differs: only a new filling changes it."""
    present = read_geometry(session, geometry)
    names = ["signs", "threshold", "reach"]
    if all(np.array_equal(getattr(present, name), getattr(geometry, name)) for name in names):
        return
    session.execute("DELETE FROM {quantizer}")
    columns = [HalfVector(len(geometry.signs)), Vector(geometry.bits), FLOAT8]
    session.copy_in("quantizer", names, columns, [np.array([getattr(geometry, name)]) for name in names])


def _write_labels(session: Session, model: Model) -> None:
    """Delete and write again the labels whose name or projection is not what it was."""
    known = {label: (name, used) for label, name, used in session.rows(LABELS)}
    used = model.takes_part
    stays = np.array(
        [known.get(i) == (name, False) and not used[i] for i, name in enumerate(model.labels)], dtype=bool
    )
    kept = np.flatnonzero(stays).tolist()
    session.execute(
        "DELETE FROM foh.label WHERE index = {id} AND label <> ALL (%(kept)s::int[])", {"kept": kept}
    )
    written = np.flatnonzero(~stays)
    names = np.array(model.labels, dtype=object)
    # Not by COPY, which PostgreSQL refuses where a policy decides what a role may write.
    for start in range(0, len(written), LABELS_AT_ONCE):
        part = written[start : start + LABELS_AT_ONCE]
        projections = [
            "[" + ",".join(map(repr, row)) + "]" if takes_part else None
            for row, takes_part in zip(model.label_projection[part].tolist(), used[part], strict=True)
        ]
        values = {"labels": part.tolist(), "names": names[part].tolist(), "projections": projections}
        session.execute(WRITE_LABELS, values)
