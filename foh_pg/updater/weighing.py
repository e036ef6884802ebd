"""How a search ranks and how much it reads, chosen on rows that the model has not learned from.

These rows, without their labels, are queries to an index in memory, which answers as the search in SQL
would. A build offers all rows of the table to them; an update offers a sample, of a table that is not too
large the whole. The choice is by `both`: the share of the ten nearest rows that share a label with the query.
The default weights stay unless others are clearly better; labels that do not clearly help take no part; and
where the answers are worse than those of the exact distance, a search reads more. What recall the cheapest
searches reach is kept, so that a search can be asked for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from foh_pg.clustering import BitLevels, target_centers
from foh_pg.model.model import Model
from foh_pg.model.ranking import RECALL, Ranking, Reached
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.centers import Centers
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.source import Rows, read_sample
from foh_pg.updater.asking import QUERIES, hold_out_enough, spread
from foh_pg.updater.chances import learn_chances
from foh_pg.updater.gathering import Gathered, K
from foh_pg.updater.prices import LEAST_RECALL, SHARE_EXACT, Prices
from foh_pg.updater.trial import Answers, Bools, Floats, Ints, Trial

# With fewer queries nothing is chosen.
LEAST_QUERIES = 40

GRID = tuple(product((0.0, 0.1, 0.2, 0.4), (0.3, 1.0, 3.0)))
GEOMETRY_ALONE = Ranking(code=0.0, votes=0.0)

# Rows that an update reads to choose again, as far as these bytes of vectors allow: a part of a larger table.
SAMPLE_ROWS = 200_000
SAMPLE_BYTES = 512 << 20
# A smaller part of a table does not tell whether a cheaper search is as good: its nearest rows lie farther
# off, so that labels seem to gain more than they do.
LEAST_TOLD = 0.5

# How far precision and `both` may be below those of the exact distance, and answers below those of a dearer
# search.
ALLOWED = 0.01
EQUAL = 0.005
# They are to be as good for other queries, too: so many standard errors less must be good enough. Of several
# searches the cheapest that seems as good is likelier flattered than not.
SURE = 1.0

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
    held_out: Bools,
    levels: BitLevels | None = None,
    table: int | None = None,
) -> Weighed:
    """Choose how to rank and how much to read, by rows that are all at hand.

    Parameters
    ----------
    held_out : array of bool
        Which of the rows the model has not learned from.
    levels : BitLevels, optional
        The centers of the index; by default some are made.
    table : int, optional
        How many rows the table has, if more than these.
    """
    table = max(table or 0, len(rows))
    if levels is None:
        rng = np.random.default_rng(int(index.options["seed"]))
        levels = model.levels(rng, rows.vectors, target_centers(table))
    asking, labelled = queries_among(model, rows, held_out)
    others = rows.take(np.setdiff1d(np.arange(len(rows)), asking))
    trial = Trial.of(
        index, model, others, rows.take(asking), levels, table=table - len(asking), labelled=labelled
    )
    return choose(trial)


def queries_among(model: Model, rows: Rows, held_out: Bools) -> tuple[Ints, bool]:
    """Which rows ask, and whether their labels count."""
    asking = spread(np.flatnonzero(held_out & (rows.labels.lengths > 0)), QUERIES)
    if model.signed and len(asking) >= LEAST_QUERIES:
        return asking, True
    # Recall has nothing to do with labels: any row can ask.
    return spread(np.arange(len(rows)), min(QUERIES, len(rows) // 10)), False


def choose(trial: Trial) -> Weighed:
    """Choose how to rank and how much to read; nothing where too few rows ask or were offered."""
    seen, present = trial.seen, trial.seen.model.ranking
    if len(seen.queries) < LEAST_QUERIES or seen.rows < len(seen.queries) + K:
        return Weighed(present, {"asked": len(seen.queries)})
    reach = trial.reach()
    nearest = nearest_search(reach, trial.prices)
    known = replace(
        present,
        nearest_probes=nearest.probes,
        nearest_shortlist=nearest.shortlist,
        reach=reach,
        centers=len(seen.levels.centers),
    )
    if not seen.labelled:
        return Weighed(known, {"asked": len(seen.queries), "recall10": nearest.recall})
    return _with_labels(trial, known)


def _with_labels(trial: Trial, known: Ranking) -> Weighed:
    prices = trial.prices
    start = cheapest(known.reach, RECALL, prices, prices.labels)
    weights, note = _weights(trial, start)
    step, weights, answers = _enough(trial, known.reach, start, weights)
    exact = trial.exact
    if not _good(answers, exact):
        short = (
            f"searches of up to {SHARE_EXACT:g} times the cost of HNSW find {answers.both.mean():.2f} of the "
            f"nearest rows of the right kind, the exact distance {exact.both.mean():.2f}: a higher recall, "
            "as an option or an argument, finds more"
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
        "asked": len(trial.seen.queries),
        "both10": _round(answers.both),
        "p10": _round(answers.precision),
        "recall10": _round(answers.recall),
        "both10_exact": _round(exact.both),
        "p10_exact": _round(exact.precision),
    }
    seen = trial.seen
    near = np.searchsorted(seen.named, seen.nearest["row"])
    chosen = replace(
        known,
        code=weights.code,
        votes=weights.votes,
        probes=step.probes,
        shortlist=step.shortlist,
        chances=learn_chances(seen.model, seen.queries, seen.labels, near),
    )
    nearest = prices.cost(known.nearest_probes or 1, known.nearest_shortlist or K)
    if chosen.by_geometry_alone and trial.cost(step) < nearest:
        # A search in which labels take no part is one for the nearest rows.
        chosen = replace(chosen, probes=known.nearest_probes, shortlist=known.nearest_shortlist)
    elif chosen.by_geometry_alone:
        chosen = replace(chosen, nearest_probes=step.probes, nearest_shortlist=step.shortlist)
    return Weighed(chosen, metrics, note)


def hold_queries(run: Run, index: IndexRow, model: Model, sample: Rows, levels: BitLevels) -> Gathered | None:
    """Rows of a sample as queries, to which all rows of the table are to be offered; None without centers."""
    if len(levels.centers) == 0:
        return None
    with run.phase("weigh"):
        held, asked = hold_out_enough(index, model, sample)
        asking, labelled = queries_among(asked, sample, held)
        return Gathered(index, asked, sample.take(asking), levels, labelled)


def with_ranking(run: Run, model: Model, seen: Gathered, rows: int) -> Model:
    """The model with the ranking that is best for these queries; `rows` are in the table in all."""
    with run.phase("weigh"):
        return _noted(run, model, choose(Trial(seen)), rows)


def weigh_by_sample(
    session: Session, run: Run, index: IndexRow, model: Model, centers: Centers, rows: int
) -> Model:
    """The model with a ranking chosen on rows that are read for that."""
    wanted = min(SAMPLE_ROWS, SAMPLE_BYTES // (4 * index.dimensions))
    with run.phase("weigh"):
        with session.snapshot():
            sample = read_sample(session, index, min(1.0, wanted / max(rows, 1)))
        held, asked = hold_out_enough(index, model, sample)
        return _noted(run, model, weigh(index, asked, sample, held, centers.levels, rows), rows)


def _noted(run: Run, model: Model, weighed: Weighed, rows: int) -> Model:
    """The model with what was chosen, which the run tells."""
    if len(weighed.metrics) > 1:
        ranking = weighed.ranking.to_dict()
        run.metrics["ranking"] = {**{name: ranking[name] for name in ("code", "votes")}, **weighed.metrics}
    run.note(weighed.note, about="ranking")
    return replace(model, ranking=replace(weighed.ranking, rows=rows))


def outdated(ranking: Ranking, rows: int) -> bool:
    """Whether the table has doubled since the choice was made."""
    return rows >= 2 * max(ranking.rows, LEAST_QUERIES)


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
    """The best weights that are clearly better than the default, which must be better than none."""
    geometry, default = (_ask(trial, weights, step) for weights in (GEOMETRY_ALONE, Ranking()))
    tried = [(Ranking(code, votes), _ask(trial, Ranking(code, votes), step)) for code, votes in GRID]
    better = [pair for pair in tried if _clearly(pair[1].worth - default.worth)]
    weights, best = max(better or [(Ranking(), default)], key=lambda pair: float(pair[1].worth.mean()))
    if not _clearly(best.worth - geometry.worth):
        return GEOMETRY_ALONE, ALONE
    return weights, ""


def _enough(
    trial: Trial, reach: Sequence[Reached], start: Reached, weights: Ranking
) -> tuple[Reached, Ranking, Answers]:
    """The cheapest search that is as good as the one it starts from, and surely as the exact distance.

    Labels are given up where that helps. If none is as good as the exact distance at a price that a search
    may have, the best of them, or one that is nearly as good and cheaper.
    """
    exact, costs = trial.exact, trial.cost(start)
    first = _ask(trial, weights, start)
    if _good(first, exact, SURE):
        # Those that cost less, and the search itself.
        for step in (
            step for step in reach if costs / 3 < trial.cost(step) < costs and trial.share >= LEAST_TOLD
        ):
            answers = _ask(trial, weights, step)
            if _good(answers, exact, SURE) and answers.both.mean() >= first.both.mean() - EQUAL:
                return step, weights, answers
        return start, weights, first
    tried = [(start, weights, first)]
    for step in (step for step in reach if costs < trial.cost(step) <= trial.prices.most):
        for other in (weights, GEOMETRY_ALONE):
            tried.append((step, other, _ask(trial, other, step)))
            if _good(tried[-1][2], exact, SURE):
                return tried[-1]
    enough = max(float(answers.worth.mean()) for *_, answers in tried) - EQUAL
    return next(one for one in tried if float(one[2].worth.mean()) >= enough)


def _ask(trial: Trial, weights: Ranking, step: Reached) -> Answers:
    return trial.ask(replace(weights, probes=step.probes, shortlist=step.shortlist))


def _good(answers: Answers, exact: Answers, errors: float = 0.0) -> bool:
    """Whether answers are not worse than those of the exact distance, by so many standard errors."""
    return all(
        float(difference.mean()) - errors * _error(difference) >= -ALLOWED
        for difference in (answers.both - exact.both, answers.precision - exact.precision)
    )


def _clearly(difference: Floats) -> bool:
    """Whether a mean difference is positive by two standard errors."""
    return float(difference.mean()) > 2 * _error(difference) and float(difference.mean()) > 0


def _error(difference: Floats) -> float:
    return float(difference.std(ddof=1)) / float(np.sqrt(len(difference)))


def _round(values: Floats) -> float:
    return round(float(values.mean()), 4)
