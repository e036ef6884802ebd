"""What a search in SQL would answer to some queries, for the choice of a ranking.

Usually the whole table was offered to the queries. Of a table that is too large for that a part was, and what
a search of the whole reaches is estimated: of so many nearest rows each is here with that probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.model.model import Model
from foh_pg.model.ranking import LOOKED, LOOKED_TIMES, PROBES, SHORTLIST, VOTERS, Ranking, Reached
from foh_pg.tables.index_row import IndexForm
from foh_pg.tables.source import Rows
from foh_pg.updater.gathering import MOST_PROBES, Gathered, K
from foh_pg.updater.places import Places, binomial
from foh_pg.updater.placing import held_of
from foh_pg.updater.prices import Prices

# How many lists and rows are tried in the search for what reaches a recall.
PROBES_TRIED = (
    1,
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    20,
    24,
    28,
    32,
    40,
    48,
    56,
    64,
    72,
    80,
    96,
    128,
    192,
    256,
    384,
    MOST_PROBES,
)
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
    """Queries to an index in memory.

    Parameters
    ----------
    seen : Gathered
        What is known of the rows that were offered to the queries.
    table : int, optional
        How many rows the table has beside the queries, if more than were offered.
    """

    def __init__(self, seen: Gathered, table: int | None = None) -> None:
        self.index, self.seen = seen.index, seen
        table = max(table or 0, seen.rows)
        self.share = max(LEAST_SHARE, seen.rows / max(table, 1))
        self.prices = Prices.of(table, seen.queries.vectors.shape[1])
        near, nearest, alike = seen.by_bits, seen.nearest, seen.alike
        self.near, self.nearest = near, nearest["row"][:, :K]
        self.relevant = near["relevant"]
        # How far the ten nearest are, and which of them share a label with the query.
        self._exact_distances, self._exact_relevant = nearest["far"][:, :K], nearest["relevant"][:, :K]
        self.kind, self.kind_there = alike["row"], alike["row"] >= 0
        # Which of the rows that are near by bits are among the nearest, and among the nearest of a kind.
        there = near["row"] >= 0
        self._is_nearest, self._is_kind = (
            (near["row"][:, :, None] == rows[:, None]).any(axis=2) & there
            for rows in (self.nearest, self.kind)
        )
        self._listed = dict[int, Bools]()
        self._last: tuple[tuple[int, int], Looked] | None = None

    @classmethod
    def of(
        cls,
        index: IndexForm,
        model: Model,
        rows: Rows,
        queries: Rows,
        levels: clustering.BitLevels | None = None,
        *,
        table: int | None = None,
        labelled: bool = True,
    ) -> Trial:
        """Queries to rows that are all at hand; by default centers are made for these rows."""
        if levels is None:
            rng = np.random.default_rng(int(index.options["seed"]))
            levels = model.levels(rng, rows.vectors, clustering.target_centers(len(rows)))
        most = (
            MOST_PROBES if table is None or table <= len(rows) else round(MOST_PROBES * LEAST_SHARE**-SPREAD)
        )
        seen = Gathered(index, model, queries, levels, labelled, most)
        held = held_of(model, rows)
        seen.offer(rows, held, clustering.find_homes(held["geometry"], levels, model.layout, quick=True))
        return cls(seen, table)

    def listed(self, probes: int) -> Bools:
        """Which of the rows that are kept of each query are in the lists that a search reads."""
        if probes not in self._listed:
            read = np.take_along_axis(self.seen.lists.by(probes), self.near["home"], axis=1)
            self._listed[probes] = read & (self.near["row"] >= 0)
        return self._listed[probes]

    @cached_property
    def exact(self) -> Answers:
        """What the exact distance alone answers."""
        both = (self.kind[:, :, None] == self.nearest[:, None]).any(axis=2) & self.kind_there
        return Answers(
            precision=self._exact_relevant.mean(axis=1),
            recall=np.ones(len(self.nearest)),
            both=both.sum(axis=1) / np.maximum(1, self.kind_there.sum(axis=1)),
            distance=self._exact_distances.mean(axis=1),
        )

    def ask(self, ranking: Ranking) -> Answers:
        """Answer every query as the search in SQL would that is given these weights, probes and shortlist.

        Among the rows of a table of which a part is here more are nearer by bits than a row that is wanted.
        By how much fewer are found there is known of searches without labels (see `recalls`), and counted
        for all.
        """
        answers = self._answers(ranking)
        if self.share >= 1:
            return answers
        there = self._answers(replace(ranking, code=0.0, votes=0.0)).recall.mean()
        probes, shortlist = (
            int(np.abs(np.array(tried) - wanted).argmin())
            for tried, wanted in (
                (self.probes_tried, ranking.probes or PROBES),
                (SHORTLISTS_TRIED, ranking.shortlist or SHORTLIST),
            )
        )
        found = min(1.0, self._recalls_now[probes, shortlist] / max(float(there), 1e-9))
        return replace(answers, recall=found * answers.recall, both=found * answers.both)

    def _answers(self, ranking: Ranking) -> Answers:
        """What is found here: as sql/index/near.sql finds it."""
        shortlist = max(K, ranking.shortlist or SHORTLIST)
        looked = max(LOOKED, LOOKED_TIMES * shortlist)
        found = self.looked(round((ranking.probes or PROBES) * self.share**-SPREAD), looked)
        lean = found.lean(ranking)
        best = np.argsort(found.estimates * (1 + lean), axis=1, kind="stable")[:, :shortlist]
        distances, leans = (np.take_along_axis(values, best, axis=1) for values in (found.distances, lean))
        order = np.argsort(score(distances, leans), axis=1, kind="stable")[:, :K]
        return self._judge(np.take_along_axis(found.kept, np.take_along_axis(best, order, axis=1), axis=1))

    @cached_property
    def _recalls_now(self) -> Floats:
        return self.recalls(self.share)

    def looked(self, probes: int, count: int) -> Looked:
        """The result of the first ranking of every query: the `count` rows nearest by geometry bits."""
        if self._last is None or self._last[0] != (probes, count):
            listed = self.listed(probes)
            place = np.cumsum(listed, axis=1)
            query, at = np.nonzero(listed & (place <= count))
            kept = np.full((len(listed), count), -1, dtype=np.int64)
            kept[query, place[query, at] - 1] = at
            self._last = (probes, count), Looked.of(self, kept)
        return self._last[1]

    def reach(self) -> tuple[Reached, ...]:
        """What recall of the exact ten the cheapest searches reach, now and with twice as many rows.

        The cheapest comes first. With more rows more of them are nearer by bits than a row that is wanted, so
        where bits tell rows apart badly, as in few dimensions, more must be read.
        """
        recall = np.minimum(self._recalls_now, self.recalls(self.share / 2))
        # The cheapest that seems to reach a recall is likelier flattered than not: say rather too little.
        recall -= np.sqrt(np.maximum(0, recall * (1 - recall)) / (K * max(1, len(self.near))))
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
        return [probes for probes in PROBES_TRIED if probes <= len(self.seen.levels.centers)]

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
        by_estimate = np.argsort(self.near["bits"], axis=1, kind="stable")
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
        query, rank, at = np.nonzero(self.nearest[:, :, None] == self.near["row"][:, None])
        return query, rank, at

    @cached_property
    def _tied(self) -> Ints:
        """How many rows are as far away as each of the nearest, itself included."""
        far = self.seen.nearest["far"][:, : 3 * K]
        apart = np.abs(far[:, :K, None] - far[:, None])
        return np.asarray((apart <= TIE * np.abs(far[:, None])).sum(axis=2))

    def _judge(self, kept: Ints) -> Answers:
        """Judge answers: places among the rows that are kept of each query, -1 where there are fewer."""
        missing, query = kept < 0, np.arange(len(kept))[:, None]
        far = np.where(missing, 0.0, self.near["distance"][query, kept])

        def count(among: Bools) -> Ints:
            return np.asarray((among[query, kept] & ~missing).sum(axis=1))

        return Answers(
            precision=count(self.relevant) / kept.shape[1],
            recall=count(self._is_nearest) / max(1, self.nearest.shape[1]),
            both=count(self._is_kind) / np.maximum(1, self.kind_there.sum(axis=1)),
            distance=far.sum(axis=1) / np.maximum(1, (~missing).sum(axis=1)),
        )


@dataclass(frozen=True)
class Looked:
    """What is known of the rows that take part in the second look: arrays (queries, rows).

    Missing rows are infinitely far.
    """

    # Places among the rows that are kept of each query.
    kept: Ints
    estimates: Floats
    distances: Floats
    codes: Floats
    # Which of 64 labels each row has, one bit for each.
    labels: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, trial: Trial, kept: Ints) -> Looked:
        """From places among the rows that are kept of each query, -1 where there are fewer."""
        missing = kept < 0
        near = trial.near[np.arange(len(kept))[:, None], kept]
        return cls(
            kept=kept,
            estimates=np.where(missing, np.inf, near["bits"] / trial.index.geometry),
            distances=np.where(missing, np.inf, near["distance"]),
            codes=near["code"] / trial.index.bits,
            labels=np.where(missing, 0, near["labels"]).astype(np.uint64),
        )

    def lean(self, ranking: Ranking) -> Floats:
        """By how many times its distance each row is put back: second_look in sql/index/near.sql."""
        if ranking.by_geometry_alone:
            return np.zeros(self.kept.shape)
        labelled = self.labels > 0
        order = np.where(labelled, self.estimates + ranking.code * self.codes, np.inf)
        voters = np.argsort(order, axis=1, kind="stable")[:, :VOTERS]
        # A row without labels has no vote, even where fewer than nine have one.
        voting = np.ascontiguousarray(np.take_along_axis(self.labels, voters, axis=1))[:, :, None]
        votes = np.unpackbits(voting.view(np.uint8), axis=2).sum(axis=1)
        likely = (2 * votes >= votes.max(axis=1, keepdims=True)) & (votes > 0)
        other = labelled & ((self.labels & np.packbits(likely, axis=1).view(np.uint64)) == 0)
        return np.asarray(ranking.votes * other)


def _returned(tied: Ints, share: float) -> Floats:
    """How likely a row that was found is returned, where so many rows here are at its distance.

    The tenth may be any of several rows at one distance. On average (n - 1 / n) / 6 rows of one such group of
    n in ten are then others than those that are wanted.
    """
    group = np.minimum(1 + (tied - 1) / share, 6 * K)
    return np.asarray(1 - (group - 1 / group) / (6 * K))


def score(distances: Floats, leans: Floats) -> Floats:
    """What rows are ranked by, as score in sql/index/search.sql has it."""
    with np.errstate(invalid="ignore"):
        return np.asarray(distances + leans * np.abs(distances))
