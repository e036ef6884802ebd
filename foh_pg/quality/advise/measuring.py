"""How good each way to rank is, on queries held out of a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.metrics import mean_of
from foh_pg.learners import RandomHyperplanes
from foh_pg.quality import relevance
from foh_pg.quality.advise.indexing import Indexed
from foh_pg.quality.advise.sampling import Sample
from foh_pg.quality.advise.sizes import foh_megabytes, hnsw_megabytes
from foh_pg.quality.classifier import Classifier, filter_by_label, nearest_of_label
from foh_pg.quality.dataset import Dataset
from foh_pg.quality.protocol import Protocol, Split
from foh_pg.quality.relevance import Relevance

# How our search ranks: by the weights chosen on held-out rows; with the dial at 0, and at 1.
LEARNED, NEAREST, LABELS = "as learned", "labels 0", "labels 1"
# As learned, with as many rows without labels as the table has.
SOME_LABELLED = "as learned, some without labels"
# The greatest factor of the dial, as in sql/shared/names.sql.
FULL_DIAL = 50

NEAREST_OF_LABEL = "classify, nearest of the label"
# Both on a quarter of the rows: how much each gains from more rows, since a table is more than its sample.
QUARTER = "exact cosine, 1/4 of the rows"
LEARNED_QUARTER = "as learned, 1/4 of the rows"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Figure:
    """One way to rank, and how good it is."""

    way: str
    bits: int | None
    ranked_by: str
    # For each k, of each query the share of relevant rows among the first k.
    shares: Mapping[int, npt.NDArray[np.float64]]
    megabytes: float | None
    # recall, distance, both: of the first ten; distance is the mean cosine distance, for the others see
    # `foh_pg.arrays.metrics.judge`.
    recall: float | None = None
    distance: float | None = None
    both: float | None = None

    @property
    def precision(self) -> dict[int, float]:
        """P@k: means over the queries."""
        return {k: float(shares.mean()) for k, shares in self.shares.items()}

    def describe(self) -> dict[str, Any]:
        """Give plain numbers."""
        return {
            "way": self.way,
            "bits": self.bits,
            "ranked_by": self.ranked_by,
            "P@10": _rounded(self.precision.get(10)),
            "P@100": _rounded(self.precision.get(100)),
            "recall@10": _rounded(self.recall),
            "both@10": _rounded(self.both),
            "distance": _rounded(self.distance),
            "MB": self.megabytes,
        }


def judgeable(sample: Sample) -> npt.NDArray[np.int64]:
    """Rows of the sample that have labels, since relevance is judged by labels."""
    rows: npt.NDArray[np.int64] = np.flatnonzero(sample.sets.counts > 0)
    return rows


def measure(sample: Sample, bits: Sequence[int], queries: int, progress: Progress | None) -> Iterator[Figure]:
    """Hold out queries, learn from the other labelled rows, and rank these in every way."""
    rows = judgeable(sample)
    data = Dataset(str(sample.table), sample.X[rows], sample.sets.take(rows), sample.label_names)
    split = Split.draw(data, Protocol(queries=queries, stream=len(rows)), 0)
    tell = progress or (lambda phase, done, total: None)
    tell("references", 0, 1 + len(bits))
    yield from _references(split, sample)
    for done, length in enumerate(bits, 1):
        tell(f"{length} bits", done, 1 + len(bits))
        yield from _codes(split, sample, length)


def _references(split: Split, sample: Sample) -> Iterator[Figure]:
    X, base, queries = split.data.X, split.base, split.queries
    relevant = Relevance.of(split.data, queries, base)
    perfect = [(0, -relevant.block(0, len(queries)).astype(np.float32))]
    yield Figure("best possible", None, "the labels", relevance.measure(perfect, split).shares, None)
    fewer = _quarter(split)
    cosine = relevance.measure(relevance.by_vectors(X[queries], X[fewer.base]), fewer)
    yield Figure(QUARTER, None, "distance", cosine.shares, None)
    cosine = relevance.measure(relevance.by_vectors(X[queries], X[base]), split)
    yield _figure("exact cosine", None, "distance", cosine, hnsw_megabytes(sample))
    classifier = Classifier.fit(split)
    asked = classifier.project(X[queries])
    projected = relevance.measure(relevance.by_vectors(asked, classifier.project(X[base])), split)
    yield _figure("supervised projection", None, "scores of labels", projected, None)
    filtered = relevance.measure(filter_by_label(asked + classifier.shares, split), split)
    yield _figure("classify and filter", None, "likeliest label", filtered, None)
    nearest = relevance.measure(nearest_of_label(asked + classifier.shares, split), split)
    yield _figure(NEAREST_OF_LABEL, None, "distance", nearest, None)


def _codes(split: Split, sample: Sample, bits: int) -> Iterator[Figure]:
    X, base, size = split.data.X, split.base, foh_megabytes(sample, bits)
    random = split.teach(RandomHyperplanes(bits))
    coded = relevance.measure(
        relevance.by_codes(random.encode(X[split.queries]), random.encode(X[base])), split
    )
    yield _figure("random hyperplanes", bits, "code", coded, None)
    index = Indexed.learn(split, bits)
    learned = index.ranking
    most = replace(learned, votes=FULL_DIAL * learned.votes)
    trial = index.trial(split)
    nearest = replace(learned, votes=0.0, probes=learned.nearest_probes, shortlist=learned.nearest_shortlist)
    asked = {LEARNED: (trial, learned), NEAREST: (trial, nearest), LABELS: (trial, most)}
    asked[LEARNED_QUARTER] = (index.trial(_quarter(split)), learned)
    if sample.share < 1:
        asked[SOME_LABELLED] = (index.hidden_trial(split, trial, 1 - sample.share), learned)
    for ranked_by, (trial, weights) in asked.items():
        answers = {k: trial.ask(weights, k) for k in (10, 100) if k <= len(trial.base)}
        first = answers[10]
        yield Figure(
            "foh",
            bits,
            ranked_by,
            {k: found.precision for k, found in answers.items()},
            size,
            float(first.recall.mean()),
            float(first.distance.mean()),
            mean_of(first.both.tolist()),
        )


def _quarter(split: Split) -> Split:
    return replace(split, base=split.base[: len(split.base) // 4])


def _figure(
    way: str, bits: int | None, ranked_by: str, quality: relevance.Quality, megabytes: float | None
) -> Figure:
    near = quality.recall, quality.distance, quality.both
    return Figure(way, bits, ranked_by, quality.shares, megabytes, *near)


def _rounded(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(value, 4)
