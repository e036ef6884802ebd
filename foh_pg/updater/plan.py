"""What a filling is planned from: the stream, the number of rows and a sample, all of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.geometry import Geometry
from foh_pg.postgres.binary_copy import INT8
from foh_pg.tables.index_row import IndexRow, read_index
from foh_pg.tables.model import Model
from foh_pg.tables.model_state import Arrays
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.tables.source import Rows, count_rows, read_sample
from foh_pg.updater import training
from foh_pg.updater.choose import choose_centers
from foh_pg.updater.fill import fill
from foh_pg.updater.handover import Handover
from foh_pg.updater.unfinished import Plan, options_text
from foh_pg.updater.weighing import base_rows, with_ranking

# Rows that a build learns from: this many, or as many as fit this many bytes.
SAMPLE_ROWS = 40_000
SAMPLE_BYTES = 256 << 20

# Rows of the sample for each center: large tables need a larger sample.
ROWS_PER_CENTER = 5

SEQS = "SELECT t.seq FROM {stream} t"


@dataclass(frozen=True)
class Look:
    """Entries in the stream, how many rows the source has, and a sample of them."""

    consumed: npt.NDArray[np.int64]
    rows: int
    sample: Rows

    def to_learn(self) -> Rows:
        """As many rows of the sample as a build learns from, at equal distances."""
        if len(self.sample) <= SAMPLE_ROWS:
            return self.sample
        chosen = np.linspace(0, len(self.sample) - 1, SAMPLE_ROWS).astype(np.int64)
        return self.sample.take(chosen)


def look(session: Session, index: IndexRow) -> Look:
    """Read, inside the caller's snapshot, what a filling is planned from."""
    found = [part[0] for part in session.copy_out(SEQS, [INT8])]
    consumed = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    rows = count_rows(session)
    centers = clustering.target_centers(max(rows, 1), index.options["centers"])
    wanted = max(SAMPLE_ROWS, ROWS_PER_CENTER * centers, round(1.1 * base_rows(rows)))
    wanted = min(wanted, SAMPLE_BYTES // (4 * index.dimensions))
    return Look(consumed, rows, read_sample(session, index, min(1.0, wanted / max(rows, 1))))


def with_geometry(index: IndexRow, model: Model, sample: Rows) -> Model:
    """The model with geometry bits made for these rows; as it is where there is no row."""
    if len(sample) == 0:
        return model if model.geometry is not None else replace(model, geometry=plain_geometry(index))
    seed = int(index.options["seed"])
    return replace(model, geometry=Geometry.fit(sample.vectors, index.geometry, index.distance, seed))


def plain_geometry(index: IndexRow) -> Geometry:
    """Geometry bits around the origin, as an index has them before any row."""
    return Geometry.plain(index.dimensions, index.geometry, index.distance)


def make_plan(
    index: IndexRow,
    kind: str,
    model: Model,
    learner: Arrays | None,
    seen: Look,
    metrics: dict[str, Any],
    pending: npt.NDArray[Any] | None = None,
) -> Plan:
    """Choose centers and write down what the filling needs."""
    sample = seen.sample
    held = sample.keys[training.held_out(index, sample) & (sample.labels.lengths > 0)]
    none = index.keys.empty()
    waiting = none if pending is None else pending
    handover = Handover(seen.rows, len(waiting), waiting, held, none)
    return Plan(
        kind=kind,
        version=index.version,
        options=options_text(index),
        model=model,
        learner=learner,
        centers=choose_centers(index, model, seen.rows, sample),
        consumed=seen.consumed,
        rows=seen.rows,
        handover=handover.to_arrays(index),
        metrics=metrics,
    )


def fill_again(
    session: Session, run: Run, index: IndexRow, model: Model, learner: Arrays | None, handover: Handover
) -> None:
    """Encode and place every row by a given model: `update --full`, and rows that must be read again."""
    with run.phase("sample"), session.snapshot():
        index = read_index(session)
        seen = look(session, index)
    with run.phase("centers"):
        model = with_geometry(index, model, seen.sample)
    if model.trained:
        model = with_ranking(run, index, model, seen.sample, seen.rows)
    with run.phase("centers"):
        plan = make_plan(index, "full", model, learner, seen, {})
        plan = replace(plan, handover=replace(handover, rows_seen=seen.rows).to_arrays(index))
    fill(session, run, index, plan)
