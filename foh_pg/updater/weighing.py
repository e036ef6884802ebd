"""How a search ranks and how much it reads, chosen on rows that the model has not learned from.

These rows, without their labels, are queries to a part of the table in memory, on the lists of the index,
which answers as the search in SQL would. The choice is by `both`: the share of the ten nearest rows that
share a label with the query. The default weights stay unless others are clearly better; labels that do not
clearly help take no part; and where the answers are worse than those of the exact distance, a search reads
more. What recall the cheapest searches reach is kept, so that a search can be asked for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.clustering import BitLevels, target_centers
from foh_pg.model.model import Model
from foh_pg.model.ranking import RECALL, Ranking, Reached
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.source import Rows, read_sample
from foh_pg.updater.asking import QUERIES, hold_out_enough, spread
from foh_pg.updater.chances import learn_chances
from foh_pg.updater.prices import LEAST_RECALL, Prices
from foh_pg.updater.trial import Answers, Floats, K, Trial, base_rows

# With fewer queries nothing is chosen.
LEAST_QUERIES = 40

GRID = tuple(product((0.0, 0.1, 0.2, 0.4), (0.3, 1.0, 3.0)))
GEOMETRY_ALONE = Ranking(code=0.0, votes=0.0)

# A smaller part of a table does not tell whether a cheaper search is as good: its nearest rows lie farther
# off, so that labels seem to gain more than they do.
LEAST_TOLD = 0.5

# How far precision and `both` may be below those of the exact distance, and `both` below a dearer search.
ALLOWED = 0.01
EQUAL = 0.005

ALONE = "labels do not clearly help on held-out rows: searches rank by geometry alone"


@dataclass(frozen=True)
class Weighed:
    """A ranking, the figures that it was chosen by, and what a person should know of the choice."""

    ranking: Ranking
    metrics: dict[str, Any]
    note: str = ""


def weigh(
    index: IndexForm,
    model: Model,
    rows: Rows,
    held_out: npt.NDArray[np.bool_],
    levels: BitLevels | None = None,
    table: int | None = None,
) -> Weighed:
    """Choose how to rank and how much to read.

    Parameters
    ----------
    rows : Rows
        A sample of the table.
    held_out : array of bool
        Which of them the model has not learned from.
    levels : BitLevels, optional
        The centers of the index; by default some are made.
    table : int, optional
        How many rows the table has, if more than the sample.
    """
    asking = spread(np.flatnonzero(held_out & (rows.labels.lengths > 0)), QUERIES)
    labelled = model.signed and len(asking) >= LEAST_QUERIES
    if not labelled:
        # Recall has nothing to do with labels: any row can ask.
        asking = spread(np.arange(len(rows)), min(QUERIES, len(rows) // 10))
    if len(asking) < LEAST_QUERIES or len(rows) < 2 * len(asking) + K:
        return Weighed(model.ranking, {"asked": len(asking)})
    table = max(table or 0, len(rows))
    if levels is None:
        rng = np.random.default_rng(int(index.options["seed"]))
        levels = model.levels(rng, rows.vectors, target_centers(table))
    trial = Trial.of(index, model, rows, asking, levels, table)
    reach = trial.reach()
    nearest = nearest_search(reach, trial.prices)
    known = replace(
        model.ranking,
        nearest_probes=nearest.probes,
        nearest_shortlist=nearest.shortlist,
        reach=reach,
        centers=len(trial.levels.centers),
    )
    if not labelled:
        return Weighed(known, {"asked": len(asking), "recall10": nearest.recall})
    return _with_labels(trial, known)


def _with_labels(trial: Trial, known: Ranking) -> Weighed:
    prices = trial.prices
    start = cheapest(known.reach, RECALL, prices, prices.labels)
    weights, note = _weights(trial, start)
    step, weights, answers = _enough(trial, known.reach, start, weights)
    exact = trial.exact
    if not _good(answers, exact):
        short = (
            f"searches that cost about what HNSW does find {answers.both.mean():.2f} of the nearest rows of "
            f"the right kind, the exact distance {exact.both.mean():.2f}: a higher recall, as an option or "
            "an argument, finds more"
        )
        note = "; ".join(part for part in (note, short) if part)
    elif trial.cost(step) > max(trial.cost(start), prices.labels):
        which = "by geometry alone, " if weights.by_geometry_alone else ""
        more = (
            f"to be as good as the exact distance, searches rank {which}with a shortlist of {step.shortlist} "
        )
        more += f"and more probes than usual, as for a recall of {step.recall:.2f}"
        note = "; ".join(part for part in (note, more) if part)
    metrics = {
        "asked": len(trial.vectors),
        "both10": _round(answers.both),
        "p10": _round(answers.precision),
        "recall10": _round(answers.recall),
        "both10_exact": _round(exact.both),
        "p10_exact": _round(exact.precision),
    }
    chosen = replace(
        known,
        code=weights.code,
        votes=weights.votes,
        probes=step.probes,
        shortlist=step.shortlist,
        chances=learn_chances(trial.model, trial.base, trial.queries, trial.distances),
    )
    nearest = prices.cost(known.nearest_probes or 1, known.nearest_shortlist or K)
    if chosen.by_geometry_alone and trial.cost(step) < nearest:
        # A search in which labels take no part is one for the nearest rows.
        chosen = replace(chosen, probes=known.nearest_probes, shortlist=known.nearest_shortlist)
    elif chosen.by_geometry_alone:
        chosen = replace(chosen, nearest_probes=step.probes, nearest_shortlist=step.shortlist)
    return Weighed(chosen, metrics, note)


def with_ranking(
    run: Run, index: IndexRow, model: Model, sample: Rows, levels: BitLevels, rows: int
) -> Model:
    """The model with the ranking that held-out rows of a sample ask for; `rows` are in the table in all."""
    with run.phase("weigh"):
        held, asked = hold_out_enough(index, model, sample)
        weighed = weigh(index, asked, sample, held, levels, rows)
    if len(weighed.metrics) > 1:
        ranking = weighed.ranking.to_dict()
        run.metrics["ranking"] = {**{name: ranking[name] for name in ("code", "votes")}, **weighed.metrics}
    run.note(weighed.note, about="ranking")
    return replace(model, ranking=replace(weighed.ranking, rows=rows))


def outdated(ranking: Ranking, rows: int) -> bool:
    """Whether the table has doubled since the choice was made."""
    return rows >= 2 * max(ranking.rows, LEAST_QUERIES)


def read_sample_to_weigh(session: Session, index: IndexRow, rows: int) -> Rows:
    """Rows of the whole table, as many as a choice needs."""
    with session.snapshot():
        return read_sample(session, index, min(1.0, 1.1 * base_rows(rows) / max(rows, 1)))


def cheapest(reach: Sequence[Reached], recall: float, prices: Prices, most: float) -> Reached:
    """The cheapest search of that recall; if it costs more than `most`, the best that does not."""
    affordable = [step for step in reach if prices.cost(step.probes, step.shortlist) <= most] or [reach[0]]
    return next((step for step in affordable if step.recall >= recall), affordable[-1])


def nearest_search(reach: Sequence[Reached], prices: Prices) -> Reached:
    """How much a search reads that asks for the nearest rows alone."""
    found = cheapest(reach, RECALL, prices, prices.nearest)
    if found.recall < LEAST_RECALL:
        return cheapest(reach, LEAST_RECALL, prices, prices.least_recall)
    return found


def _weights(trial: Trial, step: Reached) -> tuple[Ranking, str]:
    """The best weights where they are clearly better than the default, which must be better than none."""
    geometry, default = (trial.ask_step(weights, step) for weights in (GEOMETRY_ALONE, Ranking()))
    tried = [(Ranking(code, votes), trial.ask_step(Ranking(code, votes), step)) for code, votes in GRID]
    weights, best = max(tried, key=lambda pair: float(pair[1].worth.mean()))
    if not _clearly(best.worth - default.worth):
        weights, best = Ranking(), default
    if not _clearly(best.worth - geometry.worth):
        return GEOMETRY_ALONE, ALONE
    return weights, ""


def _enough(
    trial: Trial, reach: Sequence[Reached], start: Reached, weights: Ranking
) -> tuple[Reached, Ranking, Answers]:
    """The cheapest search that is as good as the one it starts from, and not worse than the exact distance.

    Labels are given up where that helps. If none is as good as the exact distance at a price that a search
    may have, the best of them.
    """
    exact = trial.exact
    best = trial.ask_step(weights, start)
    if _good(best, exact) and trial.share < LEAST_TOLD:
        return start, weights, best
    if _good(best, exact):
        for step in (step for step in reach if trial.cost(step) > trial.cost(start) / 3):
            answers = trial.ask_step(weights, step)
            as_good = _good(answers, exact) and answers.both.mean() >= best.both.mean() - EQUAL
            if trial.cost(step) >= trial.cost(start) or as_good:
                return step, weights, answers
    tried = [(start, weights, best)]
    for step in (step for step in reach if trial.cost(start) < trial.cost(step) <= trial.prices.most):
        for other in (weights, GEOMETRY_ALONE):
            tried.append((step, other, trial.ask_step(other, step)))
            if _good(tried[-1][2], exact):
                return tried[-1]
    return max(tried, key=lambda one: float(one[2].worth.mean()))


def _good(answers: Answers, exact: Answers) -> bool:
    """Whether answers are not worse than those of the exact distance."""
    return bool(
        answers.both.mean() >= exact.both.mean() - ALLOWED
        and answers.precision.mean() >= exact.precision.mean() - ALLOWED
    )


def _clearly(difference: Floats) -> bool:
    """Whether a mean difference is positive by two standard errors."""
    error = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    return float(difference.mean()) > 2 * error and float(difference.mean()) > 0


def _round(values: Floats) -> float:
    return round(float(values.mean()), 4)
