"""How good each way to rank is, on queries held out of a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foh_pg.arrays.vocabulary import Vocabulary
from foh_pg.clustering import BitLevels, Metric, target_centers
from foh_pg.geometry import Geometry, default_bits
from foh_pg.learners import FOH
from foh_pg.model.model import Model, label_lists, typical_distance
from foh_pg.model.ranking import Ranking
from foh_pg.model.signature import SIGNATURE_BITS
from foh_pg.quality.advise.sampling import Sample
from foh_pg.quality.classifier import Classifier, surprise
from foh_pg.tables.source import Rows
from foh_pg.updater.asking import wanted_queries
from foh_pg.updater.gathering import K
from foh_pg.updater.scan import exact_distances, sharing
from foh_pg.updater.training import stages
from foh_pg.updater.trial import LEAST_SHARE, Answers, Trial
from foh_pg.updater.weighing import weigh

# Lengths of codes that are tried.
BITS = (32, 64, 128)
# Rows that ask, and the share of rows with labels that they are at the most.
QUERIES = 300
ASKING = 0.1
# How our search ranks: by the weights chosen on held-out rows; with the dial at 0, and at 1.
LEARNED, NEAREST, LABELS = "as learned", "labels 0", "labels 1"
EXACT, FILTERED = "exact distance", "classify and filter"
# The greatest factor of the dial, as in sql/shared/names.sql.
FULL_DIAL = 50

# Bytes of a row besides its bits: its entry in a list and its item, with headers and keys; those of the entry
# alone; of a center; and of pages that no table fills. Measured at 500 to 100 000 rows.
FOH_ROW = 110
FOH_ENTRY = 32
FOH_CENTER = 900
FOH_PAGES = 500_000
# Of a row besides its vector: headers, ten heap pointers, and 2 m = 32 neighbors of 6 bytes each.
HNSW_ROW = 300
PAGE = 8192
# By so much PostgreSQL makes a table longer that many rows are copied into.
GROWTH = 64 * PAGE

SIZES = (
    f"MB is an estimate for the whole table: rows x ((geometry bits + {SIGNATURE_BITS} + bits) / 8 + "
    f"{FOH_ROW}) bytes for this index, of which lists grow by {GROWTH}, and rows ^ (2/3) centers of "
    f"{FOH_CENTER} bytes; for pgvector's HNSW with m = 16, whole rows of 4 x dimensions + {HNSW_ROW} bytes "
    f"(halfvec: 2 x) on pages of {PAGE}."
)

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Figure:
    """One way to rank, and how good its answers are."""

    way: str
    answers: Answers
    bits: int | None = None
    ranked_by: str = "distance"
    megabytes: float | None = None

    @property
    def precision(self) -> float:
        return float(self.answers.precision.mean())

    @property
    def both(self) -> float:
        return float(self.answers.both.mean())

    @property
    def recall(self) -> float:
        return float(self.answers.recall.mean())

    def describe(self) -> dict[str, Any]:
        """Give plain numbers."""
        return {
            "way": self.way,
            "bits": self.bits,
            "ranked_by": self.ranked_by,
            "P@10": round(self.precision, 4),
            "recall@10": round(self.recall, 4),
            "both@10": round(self.both, 4),
            "distance": round(float(self.answers.distance.mean()), 4),
            "MB": self.megabytes,
        }


def measure(sample: Sample, distance: Metric, progress: Progress | None) -> Iterator[Figure]:
    """Hold out queries, learn from the other labelled rows, and rank these in every way."""
    rows = Rows(np.arange(len(sample.X)), sample.X, sample.labels).take(sample.labels.lengths > 0)
    asking = np.arange(len(rows)) < min(QUERIES, int(ASKING * len(rows)))
    queries, base = rows.take(asking), rows.take(~asking)
    # The more rows a table has, the more of them are nearer by bits than a row that is wanted.
    table = min(round(sample.labelled * len(base) / len(rows)), round(len(base) / LEAST_SHARE))
    for done, bits in enumerate(BITS):
        if progress is not None:
            progress(f"{bits} bits", done, len(BITS))
        index = Form(bits, default_bits(base.vectors.shape[1]), distance)
        model, levels, learned = learn(index, base, table)
        trial = Trial.of(index, model, base, queries, levels, table=table)
        if done == 0:
            yield Figure(EXACT, trial.exact, megabytes=hnsw_megabytes(sample))
            filtered = of_likeliest_label(trial, base)
            yield Figure(FILTERED, filtered, ranked_by="likeliest label")
        dials = {
            LEARNED: learned,
            NEAREST: replace(
                learned, votes=0.0, probes=learned.nearest_probes, shortlist=learned.nearest_shortlist
            ),
            LABELS: replace(learned, votes=FULL_DIAL * learned.votes),
        }
        size = foh_megabytes(sample, bits)
        for dial, ranking in dials.items():
            yield Figure("foh", trial.ask(ranking), bits, dial, size)


# -- an index of ours in memory ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """An index with default options."""

    bits: int
    geometry: int
    distance: Metric = "cosine"
    options: Mapping[str, Any] = field(default_factory=lambda: {"seed": 0, "forget": 1.0, "learn_rows": 2000})


def learn(index: Form, rows: Rows, table: int) -> tuple[Model, BitLevels, Ranking]:
    """Learn from most of the rows, and choose the ranking on the rest of them, as a build does."""
    learner = FOH(index.bits)
    asking = np.arange(len(rows)) >= len(rows) - wanted_queries(len(rows))
    studied = rows.take(~asking)
    for stage in stages(index, len(studied)):
        part = studied.take(stage)
        # By name: the rows that the model is asked for later have names.
        learner.partial_fit(part.vectors, list(label_lists(part.labels)))
    geometry = Geometry.fit(rows.vectors, index.geometry, index.distance, 0)
    mean = rows.vectors.mean(axis=0, dtype=np.float64)
    scale = 1.0 if index.distance == "cosine" else typical_distance(rows.vectors, mean)
    model = replace(Model.of_learner(learner, 1.0, scale), signed=True, geometry=geometry)
    levels = model.levels(np.random.default_rng(0), rows.vectors, target_centers(table))
    return model, levels, weigh(index, model, rows, asking, levels, table).ranking


def of_likeliest_label(trial: Trial, base: Rows) -> Answers:
    """Ten rows for each query by what a classifier says of its labels, in any order, as a filter has them."""
    sets, names = Vocabulary().read(list(label_lists(base.labels)))
    hot = sets.multi_hot(len(names), np.float32)
    classifier, queries = Classifier.of(base.vectors, hot), trial.seen.queries
    scores = surprise(classifier.project(queries.vectors) + classifier.shares) @ hot.T
    drawn = np.random.default_rng(0).permutation(len(hot))
    rows = drawn[np.argsort(-scores[:, drawn], axis=1, kind="stable")[:, :K]]
    of_kind = (rows[:, :, None] == trial.kind[:, None]).any(axis=1) & trial.kind_there
    return Answers(
        precision=np.take_along_axis(sharing(queries, base), rows, axis=1).mean(axis=1),
        recall=(rows[:, :, None] == trial.nearest[:, None]).any(axis=1).mean(axis=1),
        both=of_kind.sum(axis=1) / np.maximum(1, trial.kind_there.sum(axis=1)),
        distance=np.array(
            [
                exact_distances(trial.index, query[None], base.vectors[found]).mean()
                for query, found in zip(queries.vectors, rows, strict=True)
            ]
        ),
    )


# -- what an index on the whole table would take -------------------------------------------------------------


def foh_megabytes(sample: Sample, bits: int) -> float:
    """Estimate the size of our index on the whole table."""
    dimensions = int(sample.X.shape[1])
    marks = (default_bits(dimensions) + SIGNATURE_BITS + bits) / 8
    lists = sample.rows * (marks + FOH_ENTRY)
    empty = -lists % GROWTH if lists > GROWTH else 0
    centers = target_centers(max(1, sample.rows)) * FOH_CENTER
    return round((sample.rows * (marks + FOH_ROW) + empty + centers + FOH_PAGES) / 1e6, 2)


def hnsw_megabytes(sample: Sample) -> float:
    """Estimate the size of an HNSW index of pgvector on the whole table."""
    width = 2 if sample.table.embedding_type == "halfvec" else 4
    per_page = max(1, PAGE // (width * int(sample.X.shape[1]) + HNSW_ROW))
    return round(sample.rows * PAGE / per_page / 1e6, 2)
