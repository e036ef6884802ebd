"""The weights of a ranking, chosen on rows that never train.

Held-out rows, without their labels, are queries to a small index in memory. It answers as the search in SQL
would, under every weighting of a grid. The defaults stay unless another weighting is clearly better; labels
that do not clearly help take no part; and where the answers are worse by label than those of the exact
distance, a search reads more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg import clustering
from foh_pg.arrays.codes import hamming
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.model import Model, label_lists
from foh_pg.tables.ranking import Ranking
from foh_pg.tables.run import Run
from foh_pg.tables.session import Session
from foh_pg.tables.source import Rows, read_sample
from foh_pg.updater.scan import exact_distances
from foh_pg.updater.training import held_out

# At most this many rows are queries; with fewer than LEAST_QUERIES nothing is chosen.
QUERIES = 300
LEAST_QUERIES = 40
# Rows of the small index: more for a large table, where the nearest rows tell more about the labels.
BASE_ROWS = 20_000
BASE_SHARE = 1 / 8
MOST_BASE_ROWS = 100_000
# Rows of the base whose distances are computed at a time.
BASE_CHUNK = 10_000

K = 10
# As in sql/internal/objects/_names.sql, and the votes of the nearest row with labels, of the next, and so on
# as in sql/index/search/fragment_second_look.sql.
SHORTLIST = 16
SHORTLIST_NEAREST = 32
LOOKED = 48
VOTES = np.array([4, 2, 2, 1, 1, 1, 1, 1, 1, 1])

GRID = tuple(product((0.0, 0.4, 0.8, 1.2, 1.6, 2.4), (0.0, 0.2, 0.4, 0.8, 1.2)))
GEOMETRY_ALONE = Ranking(0.0, 0.0)
# How much more a search may read, the cheapest first: times the default probes, and the shortlist.
BUDGETS = ((1, SHORTLIST_NEAREST), (1, 50), (2, 50), (4, 100))

# How far precision by label may be below that of the exact distance.
ALLOWED = 0.01

# What recall counts beside precision: answers should be near by label and by distance.
RECALL_SHARE = 0.2

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weighed:
    """A ranking, the figures that it was chosen by, and what a person should know of the choice."""

    ranking: Ranking
    metrics: dict[str, Any]
    note: str = ""


def weigh(
    index: IndexForm, model: Model, rows: Rows, held_out: npt.NDArray[np.bool_], table: int | None = None
) -> Weighed:
    """Choose how to rank, by precision at ten on held-out rows, and a little by recall of the exact ten.

    Parameters
    ----------
    rows : Rows
        A sample of the table.
    held_out : array of bool
        Which of them never trained.
    table : int, optional
        How many rows the table has, if more than the sample.
    """
    asking = np.flatnonzero(held_out & (rows.labels.lengths > 0))[:QUERIES]
    if not model.signed or len(asking) < LEAST_QUERIES or len(rows) < 2 * len(asking) + K:
        return Weighed(model.ranking, {"asked": len(asking)})
    trial = Trial.of(index, model, rows, asking, base_rows(table or len(rows)))
    geometry, default = trial.ask(GEOMETRY_ALONE), trial.ask(Ranking())
    ranking, chosen = GEOMETRY_ALONE, geometry
    note = "labels do not clearly help on held-out rows: searches rank by geometry alone"
    if _clearly(default.precision - geometry.precision):
        ranking, chosen, note = *_best(trial, default), ""
    ranking, chosen, times = _enough(trial, ranking, chosen)
    if times is not None:
        probes = times * clustering.default_probes(clustering.target_centers(table or len(rows)))
        ranking = replace(ranking, probes=probes if times > 1 else None)
        which = "by geometry alone, " if ranking.by_geometry_alone else ""
        reads_more = f"to be as good as the exact distance, searches rank {which}with {probes} probes "
        reads_more += f"and a shortlist of {shortlist_of(ranking)}"
        note = "; ".join(part for part in (note, reads_more) if part)
    metrics = {
        "asked": len(asking),
        "p10": _round(chosen.precision),
        "recall10": _round(chosen.recall),
        "p10_exact": _round(trial.exact),
        "p10_geometry": _round(geometry.precision),
        "p10_default": _round(default.precision),
    }
    return Weighed(ranking, metrics, note)


def with_ranking(run: Run, index: IndexRow, model: Model, sample: Rows, rows: int) -> Model:
    """The model with the ranking that held-out rows of a sample ask for; `rows` are in the table in all."""
    with run.phase("weigh"):
        weighed = weigh(index, model, sample, held_out(index, sample), rows)
    if "p10" in weighed.metrics:
        run.metrics["ranking"] = {**weighed.ranking.to_dict(), **weighed.metrics}
    run.note(weighed.note, about="ranking")
    return replace(model, ranking=replace(weighed.ranking, rows=rows))


def shortlist_of(ranking: Ranking) -> int:
    """How many rows a search ranks with the exact distance: more where labels do not count."""
    return ranking.shortlist or (SHORTLIST_NEAREST if ranking.by_geometry_alone else SHORTLIST)


def outdated(ranking: Ranking, rows: int) -> bool:
    """Whether the table has doubled since the choice was made."""
    return rows >= 2 * max(ranking.rows, LEAST_QUERIES)


def base_rows(rows: int) -> int:
    """How many rows the small index has, for a table of `rows` rows."""
    return int(np.clip(rows * BASE_SHARE, BASE_ROWS, MOST_BASE_ROWS))


def read_sample_to_weigh(session: Session, index: IndexRow, rows: int) -> Rows:
    """Rows of the whole table, as many as a choice needs."""
    with session.snapshot():
        return read_sample(session, index, min(1.0, 1.1 * base_rows(rows) / max(rows, 1)))


@dataclass(frozen=True)
class Answers:
    """Precision and recall of each query, and the mean distance of what it was answered."""

    precision: Floats
    recall: Floats
    distance: Floats

    @property
    def worth(self) -> Floats:
        """What answers are compared by: precision, and a little recall."""
        return self.precision + RECALL_SHARE * self.recall


def _best(trial: Trial, default: Answers) -> tuple[Ranking, Answers]:
    """The best weighting among those that are clearly better than the default, else the default."""
    ranking, best = Ranking(), default
    for code, votes in GRID:
        tried = trial.ask(Ranking(code, votes))
        if _clearly(tried.worth - default.worth) and tried.worth.mean() > best.worth.mean():
            ranking, best = Ranking(code, votes), tried
    return ranking, best


def _enough(trial: Trial, ranking: Ranking, answers: Answers) -> tuple[Ranking, Answers, int | None]:
    """Read more where the exact distance alone is better by label; give labels up where that helps.

    Returns the ranking, its answers, and how many times the default probes it reads; None: it reads no more.
    """
    wanted = float(trial.exact.mean()) - ALLOWED
    if float(answers.precision.mean()) >= wanted:
        return ranking, answers, None
    best = ranking, answers, 1
    for times, shortlist in BUDGETS:
        for weights in (ranking, GEOMETRY_ALONE):
            tried = replace(weights, probes=times * trial.probes, shortlist=shortlist)
            found = trial.ask(tried)
            if found.precision.mean() > best[1].precision.mean():
                best = tried, found, times
        if float(best[1].precision.mean()) >= wanted:
            break
    return best


def _clearly(difference: Floats) -> bool:
    """Whether a mean difference is positive by two standard errors."""
    error = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    return float(difference.mean()) > 2 * error and float(difference.mean()) > 0


def _round(values: Floats) -> float:
    return round(float(values.mean()), 4)


class Trial:
    """A small index in memory, and the queries put to it."""

    def __init__(self, index: IndexForm, model: Model, base: Rows, queries: Rows) -> None:
        self.index, self.model, self.base = index, model, base
        self.vectors = queries.vectors
        self.relevant = _sharing(queries, base)
        unit = {"cosine": 1.0, "l2": model.scale, "ip": model.scale**2}[index.distance]
        self.distances = np.empty((len(self.vectors), len(base)), dtype=np.float32)
        for start in range(0, len(base), BASE_CHUNK):
            chunk = slice(start, start + BASE_CHUNK)
            self.distances[:, chunk] = exact_distances(index, self.vectors, base.vectors[chunk]) / unit
        self.nearest = nearest = _smallest(self.distances, K)
        self.exact = np.array([self.relevant[i, row].mean() for i, row in enumerate(nearest)])
        base_codes = model.encode(base.vectors, base.labels)
        codes = model.encode(self.vectors)
        self.geometry = model.geometry_bits(base.vectors)
        self.query_geometry = model.query_geometry_bits(self.vectors)
        self.bits = index.geometry
        self.codes, self.query_codes = base_codes, codes
        self.signatures = np.unpackbits(model.signatures(base.labels), axis=1).astype(bool)
        rng = np.random.default_rng(int(index.options["seed"]))
        self.levels = model.levels(rng, base.vectors, clustering.target_centers(len(base)))
        homes = clustering.find_homes(self.geometry, *self.levels)[:, 0]
        self.order = np.argsort(homes, kind="stable")
        self.bounds = np.searchsorted(homes[self.order], np.arange(len(self.levels.centers) + 1))
        self.probes = clustering.default_probes(len(self.levels.centers))
        most = self.probes * max(times for times, _ in BUDGETS)
        self.centers = clustering.find_homes(
            self.query_geometry, *self.levels, homes=most, looked=clustering.near_areas(most)
        )
        self._looked: dict[tuple[int, int], Looked] = {}

    @classmethod
    def of(
        cls, index: IndexForm, model: Model, rows: Rows, asking: npt.NDArray[np.int64], base: int = BASE_ROWS
    ) -> Trial:
        others = np.setdiff1d(np.arange(len(rows)), asking)
        if len(others) > base:
            rng = np.random.default_rng(int(index.options["seed"]))
            others = np.sort(rng.choice(others, base, replace=False))
        return cls(index, model, rows.take(others), rows.take(asking))

    def looked(self, probes: int, count: int) -> Looked:
        """The result of the first ranking of every query: the `count` rows nearest by geometry bits."""
        if (probes, count) not in self._looked:
            rows = np.full((len(self.vectors), count), -1, dtype=np.int64)
            for query in range(len(self.vectors)):
                found = self._first(query, probes)[:count]
                rows[query, : len(found)] = found
            self._looked[probes, count] = Looked.of(self, rows)
        return self._looked[probes, count]

    def _first(self, query: int, probes: int) -> npt.NDArray[np.int64]:
        lists = self.centers[query, :probes]
        rows = np.concatenate([self.order[self.bounds[at] : self.bounds[at + 1]] for at in lists])
        bits = hamming(self.query_geometry[query : query + 1], self.geometry[rows])[0]
        return rows[np.argsort(bits, kind="stable")]

    def ask(self, ranking: Ranking, k: int = K) -> Answers:
        """Answer every query as sql/index/search/ would; recall is that of the exact ten."""
        shortlist = max(k, shortlist_of(ranking))
        found = self.looked(ranking.probes or self.probes, max(LOOKED, 2 * shortlist))
        lean = found.lean(ranking)
        best = np.argsort(found.estimates + lean, axis=1, kind="stable")[:, :shortlist]
        scores = np.take_along_axis(found.distances + lean, best, axis=1)
        answer = np.take_along_axis(best, np.argsort(scores, axis=1, kind="stable")[:, :k], axis=1)
        shares = np.take_along_axis(found.relevant, answer, axis=1).sum(axis=1) / k
        far = np.take_along_axis(found.distances, answer, axis=1)
        distance = np.nanmean(np.where(np.isfinite(far), far, np.nan), axis=1)
        hits = (found.rows[np.arange(len(answer))[:, None], answer][:, :, None] == self.nearest[:, None]).any(
            axis=2
        )
        return Answers(shares, hits.sum(axis=1) / self.nearest.shape[1], distance)


@dataclass(frozen=True)
class Looked:
    """What is known of the rows that take part in the second look: arrays (queries, rows).

    Voices are the share of the votes that the labels of a row have. Missing rows are infinitely far.
    """

    rows: npt.NDArray[np.int64]
    estimates: Floats
    distances: Floats
    codes: Floats
    voices: Floats
    relevant: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, trial: Trial, rows: npt.NDArray[np.int64]) -> Looked:
        missing = rows < 0
        query = np.arange(len(rows))[:, None]
        bits = _differing(trial.query_geometry, trial.geometry, rows)
        signatures = trial.signatures[rows] & ~missing[:, :, None]
        labelled = np.asarray(signatures.any(axis=2), dtype=bool)
        place = labelled.cumsum(axis=1) - 1
        given = np.where(labelled & (place < len(VOTES)), VOTES[np.minimum(place, len(VOTES) - 1)], 0)
        votes = np.einsum("qrb,qr->qb", signatures, given) / np.maximum(1, given.sum(axis=1))[:, None]
        # A row without labels may have those of any voter.
        unknown = (votes**2).sum(axis=1) / np.maximum(votes.sum(axis=1), 1e-9)
        shared = np.minimum(1, np.einsum("qrb,qb->qr", signatures, votes))
        return cls(
            rows=rows,
            estimates=np.where(missing, np.inf, 2 * bits / trial.bits),
            distances=np.where(missing, np.inf, trial.distances[query, rows]),
            codes=_differing(trial.query_codes, trial.codes, rows) / trial.index.bits,
            voices=np.where(labelled, shared, unknown[:, None]),
            relevant=trial.relevant[query, rows] & ~missing,
        )

    def lean(self, ranking: Ranking) -> Floats:
        """What code and labels add to the distance."""
        lean: Floats = ranking.code * self.codes
        if ranking.votes:
            lean = lean - ranking.votes * self.voices
        return lean


def _smallest(values: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Where the smallest values of each row are, in order."""
    found = np.argpartition(values, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(values, found, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(found, order, axis=1))


def _differing(
    queries: npt.NDArray[np.uint8], base: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64]
) -> Floats:
    """Differing bits of each query and its rows."""
    return np.stack([hamming(queries[i : i + 1], base[row])[0] for i, row in enumerate(rows)]).astype(
        np.float64
    )


def _sharing(queries: Rows, base: Rows) -> npt.NDArray[np.bool_]:
    """Whether each query shares a label with each row of the base."""
    names: dict[str, int] = {}
    sides = []
    for rows in (queries, base):
        lists = [[names.setdefault(name, len(names)) for name in row] for row in label_lists(rows.labels)]
        columns = np.array([number for row in lists for number in row], dtype=np.int64)
        bounds = np.concatenate([[0], np.cumsum([len(row) for row in lists])])
        sides.append((np.ones(len(columns), dtype=np.float32), columns, bounds))
    left, right = (sparse.csr_matrix(side, shape=(len(side[2]) - 1, len(names))) for side in sides)
    return np.asarray((left @ right.T).toarray() > 0)
