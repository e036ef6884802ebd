"""How likely a label is that the neighbors of a row suggest, learned on rows that never train.

Two things tell the labels of a row: what its neighbors are called, and the code that was learned from labels.
Neighbors are better where labels follow the vectors closely, the code where many rows stand behind a label.
A logistic regression weighs both: its three numbers are all that is kept. sql/index/labels.sql applies them.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]

from foh_pg import hashing
from foh_pg.learners.similarity import label_matrix
from foh_pg.model.model import Model, Vectors, label_sets
from foh_pg.model.ranking import LABEL_DOUBT, LABEL_RANK, LABEL_VOTERS
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.source import Rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A regression on fewer suggestions, right and wrong ones, would be left to chance.
LEAST = 40
# Newton's method is at its end long before; the weight of |b|^2 keeps a perfect separation finite.
STEPS = 30
RIDGE = 1e-3


def judging(keys: KeyArray) -> npt.NDArray[np.bool_]:
    """Which held-out rows judge suggested labels: chances are learned from the others alone.

    The last byte of a digest parts them. Keys.shares, which says what is held out, takes the first ones.
    """
    last = (hashlib.sha256(repr(key).encode()).digest()[-1] for key in keys.tolist())
    return np.fromiter((byte < 128 for byte in last), dtype=bool, count=len(keys))


def learn_chances(
    model: Model, queries: Rows, labels: Ragged, near: Ints
) -> tuple[float, float, float] | None:
    """What the chance of a label is computed from: foh.model.chances; None where too little is known.

    The rows nearest to each query, the nearest first, vote for its labels: `near` (queries, rows) says which
    of those whose labels are given.
    """
    teaching = ~judging(queries.keys)
    if not teaching.any():
        return None
    queries, near = queries.take(teaching), near[teaching]
    names, shares, right = _votes(queries, labels, near)
    asked, suggested = shares.nonzero()
    hit = np.asarray(right[asked, suggested]).reshape(-1)
    if min(hit.sum(), len(hit) - hit.sum()) < LEAST:
        return None
    lean = leans(model, queries.vectors)
    numbers = np.array([model.numbers.get(name, -1) for name in names])[suggested]
    leaning = np.where(numbers >= 0, lean[asked, numbers], 0.0) if lean.shape[1] else np.zeros(len(asked))
    votes = odds(np.asarray(shares[asked, suggested]).reshape(-1))
    learned = _regress(np.stack([np.ones(len(hit)), votes, leaning], axis=1), hit)
    # Votes that speak against a label are an accident of few rows.
    return None if learned[1] <= 0 else (float(learned[0]), float(learned[1]), float(learned[2]))


def odds(shares: Floats) -> Floats:
    """The logarithm of what speaks for a label over what speaks against it.

    By the share alone, chances would be too low where nearly all neighbors agree.

    >>> odds(np.array([0.525, 1.0])).round(1).tolist()
    [0.0, 3.0]
    """
    return np.asarray(np.log(shares / (1 + LABEL_DOUBT - shares)))


def leans(model: Model, vectors: Vectors) -> Floats:
    """How far the learned code of each row leans to each label of the dictionary."""
    projected = vectors.astype(np.float64) @ model.weights.T.astype(np.float64) - model.bias
    away = hashing.lengths(vectors, model.mean).astype(np.float64)[:, None]
    code = np.divide(projected, away, out=np.zeros_like(projected), where=away > 0)
    return np.asarray(code @ model.label_projection.reshape(-1, model.bits).T.astype(np.float64))


def _votes(queries: Rows, labels: Ragged, near: Ints) -> tuple[list[str], Any, Any]:
    """The labels, each one's share of the votes, and whether the query has it: sparse (queries, labels)."""
    names, sets = label_sets(labels, queries.labels)
    hot, own = (label_matrix(one, len(names), np.float64) for one in sets)
    rank = np.cumsum(labels.lengths[near] > 0, axis=1)
    votes = (labels.lengths[near] > 0) & (rank <= LABEL_VOTERS)
    weights = np.where(votes, 1.0 / (LABEL_RANK + rank), 0.0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    asked = np.repeat(np.arange(len(near)), near.shape[1])
    voting = sparse.csr_matrix((weights.ravel(), (asked, near.ravel())), shape=(len(near), labels.rows))
    voting.eliminate_zeros()
    return names, voting @ hot, own


def _regress(values: Floats, hit: Floats) -> Floats:
    """Logistic regression by Newton's method."""
    spread = np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
    scaled = values / spread
    found = np.zeros(values.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ found, -50, 50)))
        slope = scaled.T @ (hit - chance) - RIDGE * len(hit) * found
        curve = (scaled * (chance * (1 - chance))[:, None]).T @ scaled
        curve[np.diag_indices_from(curve)] += RIDGE * len(hit)
        found = found + np.linalg.solve(curve, slope)
    return np.asarray(found / spread)
