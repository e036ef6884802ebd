"""A small index in memory that answers as the search in SQL does, for the choice of a ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.arrays.codes import hamming
from foh_pg.model.model import Model
from foh_pg.model.ranking import LOOKED, LOOKED_TIMES, PROBES, SHORTLIST, VOTERS, Ranking, Reached
from foh_pg.tables.index_row import IndexForm
from foh_pg.tables.source import Rows
from foh_pg.updater.scan import exact_distances, sharing

K = 10

# Rows of the base whose distances are computed at a time.
BASE_CHUNK = 10_000

# How many lists and rows are tried in the search for what reaches a recall.
PROBES_TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512)
SHORTLISTS_TRIED = (10, 12, 16, 20, 24, 30, 40, 50, 60, 80, 100, 150, 200, 300)
# A step that costs more must reach so much more.
LEAST_GAIN = 0.004

# What precision counts beside `both`, so that it decides where the other is equal.
PRECISION_SHARE = 0.2

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """How good the answers are, for each query.

    Precision is the share of rows that share a label with the query; recall the share of the exact ten
    nearest that were found; both the share of the ten nearest rows that share a label with the query;
    distance the mean of all.
    """

    precision: Floats
    recall: Floats
    both: Floats
    distance: Floats

    @property
    def worth(self) -> Floats:
        """What answers are compared by."""
        return self.both + PRECISION_SHARE * self.precision


class Trial:
    """A small index in memory, and the queries put to it."""

    def __init__(self, index: IndexForm, model: Model, base: Rows, queries: Rows) -> None:
        self.index, self.model, self.base, self.queries = index, model, base, queries
        self.vectors = queries.vectors
        self.relevant = sharing(queries, base)
        self.distances = np.empty((len(self.vectors), len(base)), dtype=np.float32)
        for start in range(0, len(base), BASE_CHUNK):
            chunk = slice(start, start + BASE_CHUNK)
            self.distances[:, chunk] = exact_distances(index, self.vectors, base.vectors[chunk])
        self.nearest = _smallest(self.distances, K)
        self.kind = _smallest(np.where(self.relevant, self.distances, np.inf), K)
        # Fewer than ten rows may share a label with a query.
        self.kind_there = np.take_along_axis(self.relevant, self.kind, axis=1)
        self.codes, self.query_codes = model.encode(base.vectors, base.labels), model.encode(self.vectors)
        self.geometry, self.query_geometry = (
            model.geometry_bits(base.vectors),
            model.query_geometry_bits(self.vectors),
        )
        self.signatures = np.unpackbits(model.signatures(base.labels), axis=1).astype(bool)
        rng = np.random.default_rng(int(index.options["seed"]))
        self.levels = model.levels(rng, base.vectors, clustering.target_centers(len(base)))
        homes = clustering.find_homes(self.geometry, *self.levels, numbers=model.geometry_numbers)[:, 0]
        self.order = np.argsort(homes, kind="stable")
        self.bounds = np.searchsorted(homes[self.order], np.arange(len(self.levels.centers) + 1))
        most = min(max(PROBES_TRIED), len(self.levels.centers))
        self.centers = clustering.find_homes(
            self.query_geometry, *self.levels, homes=most, looked=clustering.near_areas(most)
        )
        self._looked: dict[tuple[int, int], Looked] = {}

    @classmethod
    def of(cls, index: IndexForm, model: Model, rows: Rows, asking: Ints, base: int) -> Trial:
        """Rows `asking` of a sample put to at most `base` of the others."""
        others = np.setdiff1d(np.arange(len(rows)), asking)
        if len(others) > base:
            rng = np.random.default_rng(int(index.options["seed"]))
            others = np.sort(rng.choice(others, base, replace=False))
        return cls(index, model, rows.take(others), rows.take(asking))

    @property
    def exact(self) -> Answers:
        """What the exact distance alone answers."""
        return self._judge(self.nearest)

    def ask(self, ranking: Ranking, k: int = K) -> Answers:
        """Answer every query as sql/index/near.sql would."""
        shortlist = max(k, ranking.shortlist or SHORTLIST)
        looked = shortlist if ranking.by_geometry_alone else max(LOOKED, LOOKED_TIMES * shortlist)
        found = self.looked(ranking.probes or PROBES, looked)
        lean = found.lean(ranking)
        best = np.argsort(found.estimates * (1 + lean), axis=1, kind="stable")[:, :shortlist]
        distances, leans = (np.take_along_axis(values, best, axis=1) for values in (found.distances, lean))
        order = np.argsort(score(distances, leans), axis=1, kind="stable")[:, :k]
        return self._judge(np.take_along_axis(found.rows, np.take_along_axis(best, order, axis=1), axis=1))

    def looked(self, probes: int, count: int) -> Looked:
        """The result of the first ranking of every query: the `count` rows nearest by geometry bits."""
        if (probes, count) not in self._looked:
            rows = np.full((len(self.vectors), count), -1, dtype=np.int64)
            for query in range(len(self.vectors)):
                listed, _, bits = self._listed(query, probes)
                found = listed[np.argsort(bits, kind="stable")][:count]
                rows[query, : len(found)] = found
            self._looked[probes, count] = Looked.of(self, rows)
        return self._looked[probes, count]

    def reach(self) -> tuple[Reached, ...]:
        """What recall of the exact ten the cheapest searches reach; the cheapest first."""
        tried = [probes for probes in PROBES_TRIED if probes <= self.centers.shape[1]]
        hits = np.zeros((len(tried), len(SHORTLISTS_TRIED)))
        for query, nearest in enumerate(self.nearest):
            rows, lists, bits = self._listed(query, tried[-1])
            # Rows at the same number of bits come in the order of the lists.
            far = bits.astype(np.int64) * len(rows) + np.arange(len(rows))
            place = {row: at for at, row in enumerate(rows.tolist())}
            for row in nearest.tolist():
                if row not in place:
                    continue
                # Rows that are nearer by bits, by the list that they are in.
                at = place[row]
                nearer = np.cumsum(np.bincount(lists[far < far[at]], minlength=tried[-1]))
                seen = np.array([probes > lists[at] for probes in tried])
                ahead = nearer[np.array(tried) - 1]
                hits += seen[:, None] & (ahead[:, None] < np.array(SHORTLISTS_TRIED)[None])
        recall = hits / max(1, self.nearest.size)
        steps = sorted(
            (
                Reached(float(recall[i, j]), probes, shortlist)
                for i, probes in enumerate(tried)
                for j, shortlist in enumerate(SHORTLISTS_TRIED)
            ),
            key=lambda step: (step.cost, -step.recall),
        )
        kept: list[Reached] = []
        for step in steps:
            if not kept or step.recall >= kept[-1].recall + LEAST_GAIN:
                kept.append(step._replace(recall=round(step.recall, 4)))
        return tuple(kept)

    def _listed(self, query: int, probes: int) -> tuple[Ints, Ints, Ints]:
        """The rows in the nearest lists, which list each is in, and how many of their bits differ."""
        spans = [(self.bounds[at], self.bounds[at + 1]) for at in self.centers[query, :probes]]
        rows = np.concatenate([self.order[start:end] for start, end in spans])
        lists = np.repeat(np.arange(len(spans)), [end - start for start, end in spans])
        return rows, lists, hamming(self.query_geometry[query : query + 1], self.geometry[rows])[0]

    def _judge(self, rows: Ints) -> Answers:
        """Judge answers: rows of the base, -1 where there are fewer."""
        missing, query = rows < 0, np.arange(len(rows))[:, None]
        far = np.where(missing, np.nan, self.distances[query, rows])
        both = (rows[:, :, None] == self.kind[:, None]).any(axis=1) & self.kind_there
        nearest = (rows[:, :, None] == self.nearest[:, None]).any(axis=1)
        return Answers(
            precision=(self.relevant[query, rows] & ~missing).sum(axis=1) / rows.shape[1],
            recall=nearest.mean(axis=1),
            both=both.sum(axis=1) / np.maximum(1, self.kind_there.sum(axis=1)),
            distance=np.nanmean(far, axis=1),
        )


@dataclass(frozen=True)
class Looked:
    """What is known of the rows that take part in the second look: arrays (queries, rows).

    Missing rows are infinitely far.
    """

    rows: Ints
    estimates: Floats
    distances: Floats
    codes: Floats
    # Which of 64 labels each row has (queries, rows, 64).
    signatures: Bools

    @classmethod
    def of(cls, trial: Trial, rows: Ints) -> Looked:
        missing = rows < 0
        bits = _differing(trial.query_geometry, trial.geometry, rows)
        return cls(
            rows=rows,
            estimates=np.where(missing, np.inf, 2 * bits / trial.index.geometry),
            distances=np.where(missing, np.inf, trial.distances[np.arange(len(rows))[:, None], rows]),
            codes=_differing(trial.query_codes, trial.codes, rows) / trial.index.bits,
            signatures=trial.signatures[rows] & ~missing[:, :, None],
        )

    def lean(self, ranking: Ranking) -> Floats:
        """By how many times its distance each row is put back: second_look in sql/index/near.sql."""
        if ranking.by_geometry_alone:
            return np.zeros(self.rows.shape)
        labelled = self.signatures.any(axis=2)
        order = np.where(labelled, self.estimates + ranking.code * self.codes, np.inf)
        voters = np.argsort(order, axis=1, kind="stable")[:, :VOTERS]
        # A row without labels has no vote, even where fewer than nine have one.
        votes = np.take_along_axis(self.signatures, voters[:, :, None], axis=1).sum(axis=1)
        likely = (2 * votes >= votes.max(axis=1, keepdims=True)) & (votes > 0)
        other = labelled & ~(self.signatures & likely[:, None]).any(axis=2)
        return np.asarray(ranking.votes * other)


def score(distances: Floats, leans: Floats) -> Floats:
    """What rows are ranked by, as score in sql/index/search.sql has it."""
    with np.errstate(invalid="ignore"):
        return np.asarray(distances + leans * np.abs(distances))


def _smallest(values: npt.NDArray[Any], count: int) -> Ints:
    """Where the smallest values of each row are, in order."""
    count = min(count, values.shape[1])
    found = np.argpartition(values, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(values, found, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(found, order, axis=1))


def _differing(queries: npt.NDArray[np.uint8], base: npt.NDArray[np.uint8], rows: Ints) -> Floats:
    """Differing bits of each query and its rows."""
    return np.stack([hamming(queries[i : i + 1], base[row])[0] for i, row in enumerate(rows)]).astype(
        np.float64
    )
