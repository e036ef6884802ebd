"""The choice of a ranking on rows that never train, on small data whose nature is known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from foh_pg.geometry import Geometry, default_bits
from foh_pg.learners import FOH
from foh_pg.model.model import Model
from foh_pg.model.ranking import Ranking, Reached
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.quality.advise.measuring import Form
from foh_pg.runs.run import Run
from foh_pg.tables.source import Rows
from foh_pg.updater import weighing
from foh_pg.updater.places import binomial
from foh_pg.updater.prices import Prices
from foh_pg.updater.trial import SHORTLISTS_TRIED, Answers, Trial
from foh_pg.updater.weighing import (
    ALLOWED,
    GEOMETRY_ALONE,
    LEAST_QUERIES,
    SURE,
    Weighed,
    cheapest,
    nearest_search,
    weigh,
    with_ranking,
)

ROWS, BITS, HELD = 1200, 32, 200


@pytest.mark.parametrize("share", [1.0, 0.7, 1 / 16])
def test_chances_that_rows_are_in_a_part_of_the_table(share: float) -> None:
    count, of = np.arange(300)[:, None], np.array([[0, 1, 10, 250, 5000]])
    assert binomial(count, of, share) == pytest.approx(stats.binom.pmf(count, of, share), abs=1e-10)


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
        self.rows = Rows(np.arange(ROWS), X, Ragged.of([[names[n]] for n in labels], object))
        self.held = np.arange(ROWS) >= ROWS - HELD
        self.index = Form(BITS, default_bits(X.shape[1]))
        studied = self.rows.take(~self.held)
        learner = FOH(bits=BITS, seed=0)
        learner.partial_fit(studied.vectors, [[names[n]] for n in labels[: ROWS - HELD]])
        model = replace(Model.of_learner(learner, 1.0, 1.0), signed=True)
        geometry = Geometry.fit(X, self.index.geometry, "cosine", 0)
        self.model = replace(model, geometry=geometry)

    def weigh(self) -> weighing.Weighed:
        return weigh(self.index, self.model, self.rows, self.held)

    def trial(self) -> Trial:
        return Trial.of(self.index, self.model, self.rows.take(~self.held), self.rows.take(self.held))


@pytest.fixture(scope="module")
def helpful() -> Made:
    return Made("classes")


def test_labels_that_help_stay(helpful: Made) -> None:
    found = helpful.weigh()
    assert not found.ranking.by_geometry_alone
    assert found.metrics["asked"] == HELD
    assert found.metrics["both10"] > found.metrics["both10_exact"]
    assert found.metrics["p10"] > found.metrics["p10_exact"]
    assert found.note == ""


def test_labels_that_are_noise_take_no_part() -> None:
    found = Made("noise").weigh()
    assert found.ranking.by_geometry_alone
    assert "geometry alone" in found.note
    # What is left is a search for the nearest rows.
    assert found.ranking.probes == found.ranking.nearest_probes
    assert found.ranking.shortlist == found.ranking.nearest_shortlist


def test_the_default_stays_unless_another_is_clearly_better(helpful: Made) -> None:
    trial, found = helpful.trial(), helpful.weigh().ranking
    read = {"probes": found.probes, "shortlist": found.shortlist}
    if (found.code, found.votes) != (Ranking().code, Ranking().votes):
        gain = trial.ask(found).worth - trial.ask(replace(Ranking(), **read)).worth
        assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_too_few_that_ask_choose_no_weights(helpful: Made) -> None:
    few = np.arange(ROWS) >= ROWS - (LEAST_QUERIES - 1)
    found = weigh(helpful.index, helpful.model, helpful.rows, few)
    assert (found.ranking.code, found.ranking.votes) == (Ranking().code, Ranking().votes)
    assert found.ranking.probes is None
    # For recall anybody can ask.
    assert found.ranking.reach
    assert found.metrics["asked"] == ROWS // 10
    some = helpful.rows.take(np.arange(10 * LEAST_QUERIES - 1))
    found = weigh(helpful.index, helpful.model, some, np.zeros(len(some), dtype=bool))
    assert found.ranking == helpful.model.ranking
    assert found.metrics == {"asked": LEAST_QUERIES - 1}


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
    found = trial.ask(replace(GEOMETRY_ALONE, probes=len(trial.seen.levels.centers), shortlist=ROWS))
    assert found.recall.min() == 1
    for name in ("precision", "both", "distance"):
        assert np.allclose(getattr(found, name), getattr(trial.exact, name))


def test_what_is_reached_is_what_a_search_finds(helpful: Made) -> None:
    """The table of recalls says what asking says, rising with the cost, up to nearly all."""
    trial = helpful.trial()
    reach = trial.reach()
    assert [step.recall for step in reach] == sorted(step.recall for step in reach)
    costs = [trial.cost(step) for step in reach]
    assert costs == sorted(costs)
    assert reach[-1].recall > 0.98
    recalls = trial.recalls(1.0)
    for step in reach:
        asked = trial.ask(replace(GEOMETRY_ALONE, probes=step.probes, shortlist=step.shortlist))
        at = trial.probes_tried.index(step.probes), SHORTLISTS_TRIED.index(step.shortlist)
        assert asked.recall.mean() == pytest.approx(recalls[at], abs=1e-9)
        assert step.recall <= recalls[at] + 1e-4


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_a_part_of_the_table_tells_what_the_whole_reaches(share: float) -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(12_000, 16)).astype(np.float32)
    nothing = Ragged(np.empty(0, dtype=object), np.zeros(len(vectors) + 1, dtype=np.int64))
    rows = Rows(np.arange(len(vectors)), vectors, nothing)
    index = Form(BITS, default_bits(16))
    model = Model.random(vectors.mean(axis=0), BITS, 0)
    model = replace(model, geometry=Geometry.fit(vectors, index.geometry, "cosine", 0))
    asking = rows.take(np.arange(300))
    whole = Trial.of(index, model, rows.take(np.arange(300, 12_000)), asking)
    some = rng.choice(np.arange(300, 12_000), round(share * 11_700), replace=False)
    part = Trial.of(index, model, rows.take(np.sort(some)), asking, whole.seen.levels, table=11_700)
    # Whatever is read of lists and rows; where there are few rows to tell it, rather too little is said.
    apart = part.recalls(share) - whole.recalls(1.0)
    assert -0.02 < apart.mean() < 0.01
    # Where hardly more rows are read than are wanted, it is less certain.
    enough = np.array(SHORTLISTS_TRIED) >= 16
    assert np.abs(apart[:, enough]).max() < 0.05
    assert apart[:, enough].max() < 0.03
    assert apart.max() < 0.06
    # Rows that need not be read are not asked for: a part knows as the whole does when more rows add nothing.
    twice = [SHORTLISTS_TRIED.index(rows) for rows in (30, 60)]
    gains = [np.diff(recalls[:, twice]).max() for recalls in (part.recalls(share), whole.recalls(1.0))]
    assert gains[0] < gains[1] + 0.02
    for step in part.reach():
        asked = whole.ask(replace(GEOMETRY_ALONE, probes=step.probes, shortlist=step.shortlist))
        assert asked.recall.mean() > step.recall - 0.03


def test_answers_are_judged_as_the_whole_table_would_give_them() -> None:
    """In a quarter of the rows, bits find more of the nearest than in all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 24)).astype(np.float32)
    index = Form(BITS, 96)
    model = replace(Made("classes").model, geometry=Geometry.fit(X, 96, "cosine", 0))
    names = [[f"l{n % 6}"] for n in range(len(X))]
    rows = Rows(np.arange(len(X)), X, Ragged.of(names, object))
    asking = rows.take(np.arange(300))
    whole = Trial.of(index, model, rows.take(np.arange(300, 12_000)), asking)
    some = np.sort(rng.choice(np.arange(300, 12_000), 2925, replace=False))
    part = Trial.of(index, model, rows.take(some), asking, whole.seen.levels, table=11_700)
    asked = replace(GEOMETRY_ALONE, probes=64, shortlist=16)
    truth = whole.ask(asked).recall.mean()
    # In all the lists that hold the nearest rows, as in a table that has no more rows.
    alone = Trial.of(index, model, rows.take(some), asking, whole.seen.levels)
    assert alone.ask(replace(asked, probes=111)).recall.mean() > truth + 0.05
    assert part.ask(asked).recall.mean() == pytest.approx(truth, abs=0.03)


def test_of_rows_at_one_distance_some_are_not_returned(helpful: Made) -> None:
    """Every row is there three times: the tenth is one of three at the same distance."""
    there, asking = helpful.rows.take(~helpful.held), helpful.rows.take(helpful.held)
    there = there.joined([there, there])
    orders = np.arange(len(there)), np.random.default_rng(0).permutation(len(there))
    trials = [Trial.of(helpful.index, helpful.model, there.take(order), asking) for order in orders]
    one, other = (order[trial.nearest] for trial, order in zip(trials, orders, strict=True))
    found = (one[:, :, None] == other[:, None]).any(axis=2).mean()
    assert found < 0.97
    assert trials[0].recalls(1.0).max() == pytest.approx(found, abs=0.03)


def test_the_cheapest_search_of_a_recall_or_the_best_that_is_not_too_dear() -> None:
    reach = (Reached(0.5, 2, 10), Reached(0.8, 8, 16), Reached(0.96, 40, 30), Reached(0.99, 100, 100))
    prices = Prices(list=10, row=20, graph=0)
    assert cheapest(reach, 0.7, prices, 1e6) == reach[1]
    assert cheapest(reach, 0.95, prices, 1e6) == reach[2]
    assert cheapest(reach, 0.95, prices, prices.cost(40, 30) - 1) == reach[1]
    assert cheapest(reach, 0.999, prices, 1e6) == reach[3]
    assert cheapest(reach, 0.1, prices, 1) == reach[0]


@pytest.mark.parametrize(("graph", "recall"), [(2000, 0.96), (600, 0.85), (420, 0.85), (100, 0.6)])
def test_a_search_for_the_nearest_costs_what_hnsw_costs_unless_it_would_find_too_few(
    graph: float, recall: float
) -> None:
    reach = (Reached(0.6, 8, 10), Reached(0.85, 30, 12), Reached(0.96, 100, 30))
    prices = Prices(list=10, row=20, graph=graph)
    assert [prices.cost(step.probes, step.shortlist) for step in reach] == [280, 540, 1600]
    assert nearest_search(reach, prices).recall == recall


def test_a_row_whose_embedding_is_kept_apart_is_dearer_than_a_list() -> None:
    """Else a choice would read rows that add nothing in place of lists."""
    inside, apart = Prices.of(60_000, 499), Prices.of(60_000, 501)
    assert inside.row < apart.row
    assert inside.list == apart.list < apart.row
    assert Prices.of(60_000_000, 128).list > Prices.of(60_000, 128).list


def test_probes_grow_with_the_centers() -> None:
    chosen = Ranking(probes=16, nearest_probes=40, reach=(Reached(0.9, 20, 30),), centers=400)
    assert chosen.for_centers(400) == chosen
    grown = chosen.for_centers(3200)
    assert 16 < grown.probes < grown.nearest_probes < 100
    assert grown.reach[0].probes > 20
    assert grown.reach[0].shortlist == 30
    assert chosen.for_centers(10).nearest_probes == 10
    assert Ranking().for_centers(1000) == Ranking()
    assert Ranking.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_more_is_read_where_the_exact_distance_is_better(
    helpful: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that may cost next to nothing is far below the exact distance: it is told to read more."""
    monkeypatch.setattr(Prices, "labels", 30)
    rng = np.random.default_rng(0)
    groups = np.arange(ROWS) % 60
    vectors = (rng.normal(size=(60, 24))[groups] + 0.6 * rng.normal(size=(ROWS, 24))).astype(np.float32)
    names = np.array([f"g{n}" for n in groups], dtype=object)
    rows = replace(helpful.rows, vectors=vectors, labels=Ragged(names, np.arange(ROWS + 1)))
    # The model knows none of these labels.
    model = replace(helpful.model, geometry=Geometry.fit(vectors, helpful.index.geometry, "cosine", 0))
    found = weigh(helpful.index, model, rows, helpful.held)
    first = found.ranking.reach[0]
    assert first.recall < 0.8
    assert found.metrics["p10"] >= found.metrics["p10_exact"] - ALLOWED
    assert found.metrics["both10"] >= found.metrics["both10_exact"] - ALLOWED
    assert found.ranking.by_geometry_alone
    assert found.ranking.probes > first.probes
    assert "to be as good as the exact distance, searches rank by geometry alone" in found.note


def test_answers_shall_be_as_good_for_other_queries_too() -> None:
    """Half a hundredth below the exact distance is within what is allowed; one that may as well be more is not."""
    half = np.full(300, 0.5)
    exact = Answers(half, half, half, half)
    for spread, sure in ((0.01, True), (0.3, False)):
        both = half - 0.005 + np.tile([spread, -spread], 150)
        found = replace(exact, both=both)
        assert weighing._good(found, exact)
        assert weighing._good(found, exact, SURE) == sure
    assert not weighing._good(replace(exact, precision=half - 0.02), exact)


def test_no_more_is_read_than_a_search_may_cost(helpful: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is worse than the exact distance, a note says so, and what helps."""
    monkeypatch.setattr(Prices, "labels", 30)
    monkeypatch.setattr(Prices, "most", 40)
    found = weigh(helpful.index, helpful.model, helpful.rows, helpful.held)
    assert found.metrics["both10"] < found.metrics["both10_exact"] - ALLOWED
    assert "the exact distance" in found.note
    assert "a higher recall, as an option or an argument, finds more" in found.note


def test_a_run_keeps_the_note_of_its_last_choice(helpful: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that lets a table double several times weighs several times; only the last ranking is served."""
    seen = helpful.trial().seen
    run = Run("items", "update", 1, 1)
    run.note("discarded a build that was interrupted")
    for said in ("with 16 probes", "with 8 probes", ""):
        chosen = Weighed(Ranking(), {"asked": 0}, said)
        monkeypatch.setattr(weighing, "choose", lambda _, chosen=chosen: chosen)
        with_ranking(run, helpful.model, seen, ROWS)
        assert run.notes == ["discarded a build that was interrupted", *([said] if said else [])]
