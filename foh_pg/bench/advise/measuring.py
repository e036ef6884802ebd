"""How good each way to rank is, on queries held out of a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.bench import methods, ranking
from foh_pg.bench.accuracy import train
from foh_pg.bench.advise.sampling import Sample
from foh_pg.bench.advise.sizes import foh_megabytes, hnsw_megabytes
from foh_pg.bench.data import Dataset
from foh_pg.bench.ranking import Relevance
from foh_pg.bench.references import Classifier, filter_by_label
from foh_pg.bench.split import Protocol, Split
from foh_pg.codes import CodeArray

# Rows that the search ranks with the exact distance (option `shortlist`).
SHORTLIST = 50

# Shows how much exact cosine gains from more rows: a table is more than its sample.
QUARTER = "exact cosine, 1/4 of the rows"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Figure:
    """One way to rank, and how good it is.

    Attributes
    ----------
    shares : dict of int to array (queries,)
        Of each query, the share of relevant rows among the first k.
    """

    way: str
    bits: int | None
    ranked_by: str
    shares: Mapping[int, npt.NDArray[np.float64]]
    megabytes: float | None

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
            "MB": self.megabytes,
        }


def judgeable(sample: Sample) -> npt.NDArray[np.int64]:
    """Rows of the sample with labels: nobody knows what the others are relevant to."""
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
    relevance = Relevance.of(split.data, queries, base)
    perfect = [(0, -relevance.block(0, len(queries)).astype(np.float32))]
    yield Figure("best possible", None, "the labels", ranking.measure(perfect, split).shares, None)
    fewer = replace(split, base=base[: len(base) // 4])
    cosine = ranking.measure(ranking.by_vectors(X[queries], X[fewer.base]), fewer)
    yield Figure(QUARTER, None, "distance", cosine.shares, None)
    cosine = ranking.measure(ranking.by_vectors(X[queries], X[base]), split)
    yield Figure("exact cosine", None, "distance", cosine.shares, hnsw_megabytes(sample))
    classifier = Classifier.fit(split)
    chances = classifier.project(X[queries]) + classifier.shares
    filtered = ranking.measure(filter_by_label(chances, split), split)
    yield Figure("classify and filter", None, "likeliest label", filtered.shares, None)


def _codes(split: Split, sample: Sample, bits: int) -> Iterator[Figure]:
    X, base, size = split.data.X, split.base, foh_megabytes(sample, bits)
    random, _ = train(methods.choose(["random"])[0], split, bits)
    foh, _ = train(methods.choose(["foh"])[0], split, bits)
    labels = split.data.labels(base)
    for way, learner, stored in (
        ("random hyperplanes", random, random.encode(X[base])),
        ("foh, symmetric", foh, foh.encode(X[base])),
        ("foh, anchored", foh, foh.encode(X[base], labels)),
    ):
        asked = learner.encode(X[split.queries])
        for ranked_by, blocks in (
            ("code", ranking.by_codes(asked, stored)),
            ("code and distance", blended(asked, stored, split, bits)),
        ):
            yield Figure(way, bits, ranked_by, ranking.measure(blocks, split).shares, size)


def blended(asked: CodeArray, stored: CodeArray, split: Split, bits: int) -> ranking.Blocks:
    """Rank as the search does: the nearest by code, these by code and cosine distance, then the rest."""
    X = split.data.X
    exact = ranking.by_vectors(X[split.queries], X[split.base])
    for (start, hamming), (_, negated) in zip(ranking.by_codes(asked, stored), exact, strict=True):
        scores = hamming / bits
        first = np.argsort(hamming, axis=1, kind="stable")[:, :SHORTLIST]
        near = np.take_along_axis(scores + 1 + negated, first, axis=1)
        # A score is at most 3: the shortlist stays before all others.
        np.put_along_axis(scores, first, near - 4, axis=1)
        yield start, scores


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
