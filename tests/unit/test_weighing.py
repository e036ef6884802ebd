"""The choice of a ranking on rows that never train, on small data whose nature is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foh_pg.arrays.labels import LabelSets
from foh_pg.geometry import Geometry, default_bits
from foh_pg.learners import FOH
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.quality.advise.indexing import Form, rows_of
from foh_pg.quality.dataset import Dataset
from foh_pg.quality.protocol import Protocol, Split
from foh_pg.tables.model import Model
from foh_pg.tables.ranking import Ranking
from foh_pg.tables.run import Run
from foh_pg.updater import weighing
from foh_pg.updater.weighing import (
    ALLOWED,
    GEOMETRY_ALONE,
    LEAST_QUERIES,
    Trial,
    Weighed,
    weigh,
    with_ranking,
)

ROWS, BITS, HELD = 1200, 32, 200


class Made:
    """Rows of six classes; `shown` are the labels that the index gets to see."""

    def __init__(self, shown: str, signal: float = 1.0) -> None:
        rng = np.random.default_rng(0)
        classes = rng.integers(6, size=ROWS)
        X = rng.normal(size=(ROWS, 24)).astype(np.float32)
        X[:, :8] *= 3
        X[:, 8:] += np.float32(signal) * rng.normal(size=(6, 16)).astype(np.float32)[classes]
        labels = rng.permutation(classes) if shown == "noise" else classes
        names = tuple(f"l{n}" for n in range(6))
        split = Split.draw(Dataset("made", X, LabelSets.single(labels), names), Protocol(queries=1), 0)
        self.rows = rows_of(split, np.arange(ROWS))
        self.held = np.arange(ROWS) >= ROWS - HELD
        self.index = Form(BITS, default_bits(split.data.X.shape[1]))
        studied = self.rows.take(~self.held)
        learner = FOH(bits=BITS, seed=0)
        learner.partial_fit(studied.vectors, [[names[n]] for n in labels[: ROWS - HELD]])
        model = replace(Model.of_learner(learner, 1.0, 1.0), signed=True)
        geometry = Geometry.fit(X, self.index.geometry, "cosine", 0)
        self.model = replace(model, geometry=geometry)

    def weigh(self) -> weighing.Weighed:
        return weigh(self.index, self.model, self.rows, self.held)

    def trial(self) -> Trial:
        return Trial.of(self.index, self.model, self.rows, np.flatnonzero(self.held))


@pytest.fixture(scope="module")
def helpful() -> Made:
    return Made("classes")


def test_labels_that_help_stay(helpful: Made) -> None:
    found = helpful.weigh()
    assert not found.ranking.by_geometry_alone
    assert found.metrics["asked"] == HELD
    assert found.metrics["p10"] >= found.metrics["p10_default"] > found.metrics["p10_geometry"]
    assert found.metrics["p10"] > found.metrics["p10_exact"]
    assert found.note == ""


def test_labels_that_are_noise_take_no_part() -> None:
    found = Made("noise").weigh()
    assert found.ranking.by_geometry_alone
    assert "geometry alone" in found.note
    # Not one of the weightings of the grid got past the first test.
    assert found.metrics["p10_geometry"] == pytest.approx(found.metrics["p10_default"], abs=0.03)


def test_the_default_stays_unless_another_is_clearly_better(helpful: Made) -> None:
    trial, found = helpful.trial(), helpful.weigh().ranking
    weights = Ranking(found.code, found.votes)
    if weights != Ranking():
        gain = trial.ask(weights).worth - trial.ask(Ranking()).worth
        assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_too_few_that_ask_choose_nothing(helpful: Made) -> None:
    few = np.arange(ROWS) >= ROWS - (LEAST_QUERIES - 1)
    found = weigh(helpful.index, helpful.model, helpful.rows, few)
    assert found.ranking == helpful.model.ranking
    assert found.metrics == {"asked": LEAST_QUERIES - 1}
    plain = replace(helpful.model, signed=False)
    assert weigh(helpful.index, plain, helpful.rows, helpful.held).ranking == plain.ranking


def test_reading_more_comes_nearer(helpful: Made) -> None:
    trial = helpful.trial()
    by_budget = [
        trial.ask(replace(GEOMETRY_ALONE, probes=probes, shortlist=shortlist))
        for probes, shortlist in ((2, 16), (7, 16), (32, 100))
    ]
    recalls = [found.recall.mean() for found in by_budget]
    assert recalls == sorted(recalls)
    assert recalls[-1] > 0.85
    distances = [found.distance.mean() for found in by_budget]
    assert distances == sorted(distances, reverse=True)


def test_an_answer_of_everything_is_the_exact_one(helpful: Made) -> None:
    trial = helpful.trial()
    trial.centers = np.broadcast_to(
        np.arange(len(trial.levels.centers)), (HELD, len(trial.levels.centers))
    ).copy()
    everything = replace(GEOMETRY_ALONE, probes=len(trial.levels.centers), shortlist=ROWS)
    found = trial.ask(everything)
    assert found.recall.min() == 1
    assert np.allclose(found.precision, trial.exact)


def test_more_is_read_where_the_exact_distance_is_better(
    helpful: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that reads a single short list is far below the exact distance: it is told to read more."""
    monkeypatch.setattr(weighing.clustering, "default_probes", lambda centers: 1)
    monkeypatch.setattr(weighing, "BUDGETS", ((1, 16), (16, 50), (32, 100)))
    rng = np.random.default_rng(0)
    groups = np.arange(ROWS) % 60
    vectors = (rng.normal(size=(60, 24))[groups] + 0.3 * rng.normal(size=(ROWS, 24))).astype(np.float32)
    names = np.array([f"g{n}" for n in groups], dtype=object)
    rows = replace(helpful.rows, vectors=vectors, labels=Ragged(names, np.arange(ROWS + 1)))
    # The model knows none of these labels.
    model = replace(helpful.model, geometry=Geometry.fit(vectors, helpful.index.geometry, "cosine", 0))
    found = weigh(helpful.index, model, rows, helpful.held)
    assert found.metrics["p10_geometry"] < found.metrics["p10_exact"] - 5 * ALLOWED
    assert found.metrics["p10"] >= found.metrics["p10_exact"] - ALLOWED
    assert found.ranking.by_geometry_alone
    assert found.ranking.probes == 16
    assert "by geometry alone, with 16 probes and a shortlist of 50" in found.note


def test_a_run_keeps_the_note_of_its_last_choice(helpful: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that lets a table double several times weighs several times; only the last ranking is served."""
    monkeypatch.setattr(weighing, "held_out", lambda *_: helpful.held)
    run = Run("items", "update", 1, 1)
    run.note("discarded a build that was interrupted")
    for said in ("with 16 probes", "with 8 probes", ""):
        chosen = Weighed(Ranking(), {"asked": 0}, said)
        monkeypatch.setattr(weighing, "weigh", lambda *_, chosen=chosen: chosen)
        with_ranking(run, helpful.index, helpful.model, helpful.rows, ROWS)
        assert run.notes == ["discarded a build that was interrupted", *([said] if said else [])]
