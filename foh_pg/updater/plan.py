"""What a filling is planned from, and the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.geometry import Geometry
from foh_pg.learners import Learner
from foh_pg.model.model import Model
from foh_pg.postgres.binary_copy import INT8
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.source import Rows, count_rows, read_sample
from foh_pg.updater import training
from foh_pg.updater.choose import choose_centers
from foh_pg.updater.handover import Handover
from foh_pg.updater.unfinished import Plan, options_text

# Rows that a build learns from: this many, or as many as fit this many bytes.
SAMPLE_ROWS = 40_000
SAMPLE_BYTES = 512 << 20

# Rows of the sample for each center, as far as the bytes allow. Centers of fewer rows lie where these happen
# to be: with fourteen rows for each, a search of 700 000 commit messages reads four tenths more entries.
ROWS_PER_CENTER = 40

SEQS = "SELECT t.seq FROM {stream} t"


@dataclass(frozen=True)
class Survey:
    """Entries in the stream, how many rows the source has, and a sample of them: all of one snapshot."""

    consumed: npt.NDArray[np.int64]
    rows: int
    sample: Rows

    def to_learn(self) -> Rows:
        """As many rows of the sample as a build learns from, at equal distances."""
        if len(self.sample) <= SAMPLE_ROWS:
            return self.sample
        chosen = np.linspace(0, len(self.sample) - 1, SAMPLE_ROWS).astype(np.int64)
        return self.sample.take(chosen)


def survey(session: Session, index: IndexRow) -> Survey:
    """Read, inside the caller's snapshot, what a filling is planned from."""
    found = [part[0] for part in session.copy_out(SEQS, [INT8])]
    consumed = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    rows = count_rows(session)
    centers = clustering.target_centers(max(rows, 1), index.options["centers"])
    wanted = max(SAMPLE_ROWS, ROWS_PER_CENTER * centers)
    wanted = min(wanted, SAMPLE_BYTES // (4 * index.dimensions))
    return Survey(consumed, rows, read_sample(session, index, min(1.0, wanted / max(rows, 1))))


def with_geometry(index: IndexRow, model: Model, sample: Rows) -> Model:
    """The model with geometry bits made for these rows; as it is where there is no row."""
    if len(sample) == 0:
        return model if model.geometry is not None else replace(model, geometry=plain_geometry(index))
    seed = int(index.options["seed"])
    return replace(model, geometry=Geometry.fit(sample.vectors, index.geometry, index.distance, seed))


def plain_geometry(index: IndexRow) -> Geometry:
    """Geometry bits around the origin, as an index has them before any row."""
    return Geometry.plain(index.dimensions, index.geometry, index.distance)


def handover_of(index: IndexRow, seen: Survey, pending: KeyArray | None = None) -> Handover:
    """What the next run must know of a model that was learned from this sample."""
    sample, none = seen.sample, index.keys.empty()
    held = sample.keys[training.held_out(index, sample) & (sample.labels.lengths > 0)]
    waiting = none if pending is None else pending
    return Handover(seen.rows, len(waiting), waiting, held, none)


def make_plan(
    index: IndexRow,
    kind: str,
    model: Model,
    learner: Learner | None,
    seen: Survey,
    handover: Handover,
    metrics: dict[str, Any],
) -> Plan:
    """Choose centers and write down what the filling needs."""
    return Plan(
        kind=kind,
        version=index.version,
        options=options_text(index),
        model=model,
        learner=learner,
        centers=choose_centers(index, model, seen.rows, seen.sample),
        consumed=seen.consumed,
        rows=seen.rows,
        handover=handover,
        metrics=metrics,
    )
