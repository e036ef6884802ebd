"""A part of the table in memory that answers as the search in SQL does, for the choice of a ranking.

The part may be small: the lists of the index then hold a share of their rows here. What a search of the whole
table reaches is estimated from that share: of so many nearest rows each is here with that probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlog1py, xlogy  # type: ignore[import-untyped]

from foh_pg import clustering
from foh_pg.arrays.codes import hamming_blocks, hamming_pairs
from foh_pg.model.model import Model
from foh_pg.model.ranking import LOOKED, LOOKED_TIMES, PROBES, SHORTLIST, VOTERS, Ranking, Reached
from foh_pg.tables.index_row import IndexForm
from foh_pg.tables.source import Rows
from foh_pg.updater.prices import Prices
from foh_pg.updater.scan import exact_distances, sharing

K = 10

# Rows of the base: more of a large table, where the nearest rows tell more.
BASE_ROWS = 30_000
BASE_SHARE = 1 / 3
MOST_BASE_ROWS = 100_000

# Rows of the base whose distances are computed at a time.
BASE_CHUNK = 10_000

# Of each query the nearest rows by bits are kept, in all lists: well more than any search reads.
KEPT = 1500

# How many lists and rows are tried in the search for what reaches a recall.
PROBES_TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 96, 128, 192, 256, 384, 512)
SHORTLISTS_TRIED = (10, 12, 16, 20, 24, 30, 40, 50, 60, 80, 100, 150, 200, 300)
# A step that costs more must reach so much more.
LEAST_GAIN = 0.004

# Distances that differ by less than this share are equal, but for rounding.
TIE = 1e-6

# Where fewer of the rows are here, the nearest of them are too far away to tell what a search would reach.
LEAST_SHARE = 1 / 8

# Where only a share of the rows is here, those wanted lie in share ** -SPREAD times as many lists.
SPREAD = 0.4

# For each row of the table that is not here beside one that is, so many fewer count as nearest.
FEWER = 2 / 3

# The places of rows in the whole table that are told apart: each of the first, then steps that grow.
PLACES_EXACT = 60
PLACES_STEP = 1.05
PLACES_STEPS = 120
# After so many rounds the places change little, and are still smooth.
ROUNDS = 60

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
    """Rows on the lists of an index in memory, and the queries put to it.

    Parameters
    ----------
    levels : BitLevels, optional
        The centers of the index; by default centers are made for these rows.
    share : float
        How much of the table the base is.
    """

    def __init__(
        self,
        index: IndexForm,
        model: Model,
        base: Rows,
        queries: Rows,
        levels: clustering.BitLevels | None = None,
        share: float = 1.0,
    ) -> None:
        self.index, self.model, self.share = index, model, max(LEAST_SHARE, min(1.0, share))
        self.prices = Prices.of(round(len(base) / min(1.0, share)), base.vectors.shape[1])
        if levels is None:
            rng = np.random.default_rng(int(index.options["seed"]))
            levels = model.levels(rng, base.vectors, clustering.target_centers(len(base)))
        self.levels = levels
        geometry = model.geometry_bits(base.vectors)
        homes = clustering.find_homes(geometry, levels, model.layout, quick=True)
        # In the order of the lists, as a search reads them.
        order = np.argsort(homes, kind="stable")
        self.base, self.queries, self.vectors = base.take(order), queries, queries.vectors
        self.geometry, self.looks = geometry[order], model.query_looks(self.vectors)
        self._keep_nearest_by_bits(homes[order])
        self.relevant = sharing(queries, self.base)
        self.distances = np.empty((len(self.vectors), len(base)), dtype=np.float32)
        for start in range(0, len(base), BASE_CHUNK):
            chunk = slice(start, start + BASE_CHUNK)
            self.distances[:, chunk] = exact_distances(index, self.vectors, self.base.vectors[chunk])
        self.nearest = _smallest(self.distances, K)
        self._looked: dict[tuple[int, int], Looked] = {}

    @classmethod
    def of(
        cls,
        index: IndexForm,
        model: Model,
        rows: Rows,
        asking: Ints,
        levels: clustering.BitLevels,
        table: int,
    ) -> Trial:
        """Rows `asking` of a sample put to some of the others; there are `table` rows in all."""
        others, base = np.setdiff1d(np.arange(len(rows)), asking), base_rows(table)
        if len(others) > base:
            rng = np.random.default_rng(int(index.options["seed"]))
            others = np.sort(rng.choice(others, base, replace=False))
        share = len(others) / max(table - len(asking), len(others))
        return cls(index, model, rows.take(others), rows.take(asking), levels, share)

    def _keep_nearest_by_bits(self, homes: Ints) -> None:
        """Keep the nearest rows by bits of every query, and which lists these are in."""
        # Sixteen bits are sorted by counting, which is stable and fast.
        near = [
            np.argsort(far, axis=1, kind="stable")[:, :KEPT]
            for _, far in hamming_blocks(self.looks[0], self.geometry)
        ]
        self.near = np.concatenate(near)
        self.bits = estimated(self.looks, self.geometry, self.near)
        self.homes, self._listed = homes, dict[int, Bools]()
        self._read = clustering.ListsRead(self.looks, self.levels)

    def listed(self, probes: int) -> Bools:
        """Which of the rows that are kept of each query are in the lists that a search reads."""
        if probes not in self._listed:
            self._listed[probes] = np.take_along_axis(self._read.by(probes), self.homes[self.near], axis=1)
        return self._listed[probes]

    @cached_property
    def codes(self) -> npt.NDArray[np.uint8]:
        return self.model.encode(self.base.vectors, self.base.labels)

    @cached_property
    def query_codes(self) -> npt.NDArray[np.uint8]:
        return self.model.encode(self.vectors)

    @cached_property
    def signatures(self) -> Bools:
        return np.unpackbits(self.model.signatures(self.base.labels), axis=1).astype(bool)

    @cached_property
    def kind(self) -> Ints:
        """The ten nearest rows that share a label with each query."""
        return _smallest(np.where(self.relevant, self.distances, np.inf), K)

    @cached_property
    def kind_there(self) -> Bools:
        """Which of these there are: fewer than ten rows may share a label with a query."""
        return np.take_along_axis(self.relevant, self.kind, axis=1)

    @property
    def exact(self) -> Answers:
        """What the exact distance alone answers."""
        return self._judge(self.nearest)

    def ask(self, ranking: Ranking, k: int = K) -> Answers:
        """Answer every query as sql/index/near.sql would."""
        shortlist = max(k, ranking.shortlist or SHORTLIST)
        looked = max(LOOKED, LOOKED_TIMES * shortlist)
        found = self.looked(round((ranking.probes or PROBES) * self.share**-SPREAD), looked)
        lean = found.lean(ranking)
        best = np.argsort(found.estimates * (1 + lean), axis=1, kind="stable")[:, :shortlist]
        distances, leans = (np.take_along_axis(values, best, axis=1) for values in (found.distances, lean))
        order = np.argsort(score(distances, leans), axis=1, kind="stable")[:, :k]
        return self._judge(np.take_along_axis(found.rows, np.take_along_axis(best, order, axis=1), axis=1))

    def ask_step(self, weights: Ranking, step: Reached) -> Answers:
        """Answer every query with so many lists and rows, as the whole table would.

        Among the rows of the whole table more are nearer by bits than a row that is wanted. By how much fewer
        are found there is known of searches without labels (see `recalls`), and counted for all.
        """
        answers = self.ask(replace(weights, probes=step.probes, shortlist=step.shortlist))
        found = self._found_in_table(step)
        return replace(answers, recall=found * answers.recall, both=found * answers.both)

    def _found_in_table(self, step: Reached) -> float:
        """What share of the nearest rows that a search finds here it finds in the whole table."""
        if self.share >= 1:
            return 1.0
        here = self.ask(Ranking(code=0.0, votes=0.0, probes=step.probes, shortlist=step.shortlist))
        at = self.probes_tried.index(step.probes), SHORTLISTS_TRIED.index(step.shortlist)
        return float(min(1.0, self._recalls_now[at] / max(float(here.recall.mean()), 1e-9)))

    @cached_property
    def _recalls_now(self) -> Floats:
        return self.recalls(self.share)

    def looked(self, probes: int, count: int) -> Looked:
        """The result of the first ranking of every query: the `count` rows nearest by geometry bits."""
        if (probes, count) not in self._looked:
            listed = self.listed(probes)
            place = np.cumsum(listed, axis=1)
            query, at = np.nonzero(listed & (place <= count))
            kept = np.full((len(self.vectors), count), -1, dtype=np.int64)
            kept[query, place[query, at] - 1] = at
            self._looked[probes, count] = Looked.of(self, kept)
        return self._looked[probes, count]

    def reach(self) -> tuple[Reached, ...]:
        """What recall of the exact ten the cheapest searches reach, now and with twice as many rows.

        The cheapest comes first. With more rows more of them are nearer by bits than a row that is wanted, so
        where bits tell rows apart badly, as in few dimensions, more must be read.
        """
        recall = np.minimum(self._recalls_now, self.recalls(self.share / 2))
        # The cheapest that seems to reach a recall is likelier flattered than not: say rather too little.
        recall -= np.sqrt(np.maximum(0, recall * (1 - recall)) / (K * max(1, len(self.vectors))))
        steps = sorted(
            (
                Reached(float(recall[i, j]), probes, shortlist)
                for i, probes in enumerate(self.probes_tried)
                for j, shortlist in enumerate(SHORTLISTS_TRIED)
            ),
            key=lambda step: (self.cost(step), -step.recall),
        )
        kept: list[Reached] = []
        for step in steps:
            if not kept or step.recall >= kept[-1].recall + LEAST_GAIN:
                kept.append(step._replace(recall=round(step.recall, 4)))
        return tuple(kept)

    def cost(self, step: Reached) -> float:
        return self.prices.cost(step.probes, step.shortlist)

    @property
    def probes_tried(self) -> list[int]:
        return [probes for probes in PROBES_TRIED if probes <= len(self.levels.centers)]

    def recalls(self, share: float) -> Floats:
        """What a table reaches of which the base is that share: an array (probes tried, shortlists tried)."""
        query, rank, at = self._found
        places = Places(share)
        shortlists = np.array(SHORTLISTS_TRIED)
        looked = np.maximum(LOOKED, LOOKED_TIMES * shortlists)
        # How likely the first, the second, ... row here is one of the nearest of the table. Fewer than ten
        # count as nearest, so that those here are little farther away on average than the ten of the table.
        wanted = max(1, round(K - FEWER * (1 / share - 1)))
        exactly = binomial(np.arange(1, K + 1), wanted, share)
        likely = np.cumsum(exactly[::-1])[::-1][: self.nearest.shape[1]]
        counts = likely[rank] * _returned(self._tied[query, rank], share)
        by_estimate = np.argsort(self.bits, axis=1, kind="stable")
        place = np.argsort(by_estimate, axis=1)[query, at]
        hits = np.zeros((len(self.probes_tried), len(SHORTLISTS_TRIED)))
        for i, probes in enumerate(self.probes_tried):
            listed = self.listed(probes)
            there = listed[query, at]
            first = np.cumsum(listed, axis=1)[query, at] - 1
            again = np.cumsum(np.take_along_axis(listed, by_estimate, axis=1), axis=1)[query, place] - 1
            # A row is looked at again where it is among the nearest by bits, and read if in the shortlist.
            within = [
                places.within(before[there], counts[there], bounds)
                for before, bounds in ((first, looked), (again, shortlists))
            ]
            hits[i] = counts[there] @ np.minimum(*within)
        return np.asarray(hits / (likely.sum() * max(1, len(self.nearest))))

    @cached_property
    def _found(self) -> tuple[Ints, Ints, Ints]:
        """Query and rank of each of the nearest rows, and its place among those nearest by bits."""
        query, rank, at = np.nonzero(self.nearest[:, :, None] == self.near[:, None])
        return query, rank, at

    @cached_property
    def _tied(self) -> Ints:
        """How many rows are as far away as each of the nearest, itself included."""
        near = _smallest(self.distances, 3 * K)
        far = np.take_along_axis(self.distances, near, axis=1)
        apart = np.abs(far[:, : self.nearest.shape[1], None] - far[:, None])
        return np.asarray((apart <= TIE * np.abs(far[:, None])).sum(axis=2))

    def _judge(self, rows: Ints) -> Answers:
        """Judge answers: rows of the base, -1 where there are fewer."""
        missing, query = rows < 0, np.arange(len(rows))[:, None]
        far = np.where(missing, 0.0, self.distances[query, rows])
        both = (rows[:, :, None] == self.kind[:, None]).any(axis=1) & self.kind_there
        nearest = (rows[:, :, None] == self.nearest[:, None]).any(axis=1)
        return Answers(
            precision=(self.relevant[query, rows] & ~missing).sum(axis=1) / rows.shape[1],
            recall=nearest.mean(axis=1),
            both=both.sum(axis=1) / np.maximum(1, self.kind_there.sum(axis=1)),
            distance=far.sum(axis=1) / np.maximum(1, (~missing).sum(axis=1)),
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
    def of(cls, trial: Trial, kept: Ints) -> Looked:
        """From places among the rows that are kept of each query, -1 where there are fewer."""
        missing, query = kept < 0, np.arange(len(kept))[:, None]
        rows = np.where(missing, -1, trial.near[query, kept])
        return cls(
            rows=rows,
            estimates=np.where(missing, np.inf, trial.bits[query, kept] / trial.index.geometry),
            distances=np.where(missing, np.inf, trial.distances[query, rows]),
            codes=hamming_pairs(trial.query_codes, trial.codes, rows) / trial.index.bits,
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


class Places:
    """How many rows of a table come before one of which so many come before it in a part of the table.

    Where a quarter of the rows is here, a row before which are two may well be the second or the twentieth of
    the table. That alone would say of every place that it is more uncertain than the places are: most rows
    that are wanted are among the first. So the places that rows have in the table are estimated first, as the
    likeliest that explain all those that are seen here, in rounds of expectation and maximization.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        rough = np.round(PLACES_EXACT * PLACES_STEP ** np.arange(PLACES_STEPS))
        places = np.unique(np.append(np.arange(PLACES_EXACT), rough).astype(np.int64))
        self.places = places[places <= max(PLACES_EXACT, KEPT / share)]
        self.chances = binomial(np.arange(KEPT)[:, None], self.places[None], share)

    def within(self, before: Ints, weights: Floats, bounds: Ints) -> Floats:
        """How likely fewer than each bound come before each row: an array (rows, bounds)."""
        if self.share >= 1 or not weights.sum():
            return np.asarray(before[:, None] < bounds, dtype=np.float64)
        seen, at = np.unique(before, return_inverse=True)
        # The least number keeps a row in its place that none of these places explains.
        chances = self.chances[seen] + np.finfo(np.float64).tiny
        counts = np.bincount(at, weights=weights) / weights.sum()
        places = np.full(len(self.places), 1 / len(self.places))
        for _ in range(ROUNDS):
            places *= (counts / (chances @ places)) @ chances
        of_seen = chances * places
        of_seen /= of_seen.sum(axis=1, keepdims=True)
        return np.asarray((of_seen @ (self.places[:, None] < bounds))[at])


def binomial(count: Ints, of: Ints | int, share: float) -> Floats:
    """How likely so many of so many rows are in a part that is that share of the table.

    scipy.stats has the same function, and takes longer to import than everything else of an updater.
    """
    others = np.maximum(of - count, 0)
    logarithm = gammaln(of + 1.0) - gammaln(count + 1.0) - gammaln(others + 1.0)
    logarithm += xlogy(count, share) + xlog1py(others, -share)
    return np.asarray(np.where(count <= of, np.exp(logarithm), 0.0))


def _returned(tied: Ints, share: float) -> Floats:
    """How likely a row that was found is returned, where so many rows here are at its distance.

    The tenth may be any of several rows at one distance. On average (n - 1 / n) / 6 rows of one such group of
    n in ten are then others than those that are wanted.
    """
    group = np.minimum(1 + (tied - 1) / share, 6 * K)
    return np.asarray(1 - (group - 1 / group) / (6 * K))


def estimated(
    looks: Sequence[npt.NDArray[np.uint8]], base: npt.NDArray[np.uint8], rows: Ints
) -> npt.NDArray[np.int32]:
    """How far rows are from each query by three looks at their bits: fragment found in sql/index/near.sql."""
    own = np.arange(len(rows))[:, None]
    plain, above, below = (hamming_pairs(look, base, rows).astype(np.int32) for look in looks)
    return np.asarray(plain + above + below - hamming_pairs(looks[1], looks[2], own))


def base_rows(rows: int) -> int:
    """How many rows of a table of `rows` rows queries are put to."""
    return int(np.clip(rows * BASE_SHARE, BASE_ROWS, MOST_BASE_ROWS))


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
