"""The last look before a model is served: it must not be worse than random hyperplanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import Labels, Vocabulary
from foh_pg.arrays.metrics import mean_average_precision
from foh_pg.errors import InputError
from foh_pg.learners.base import Learner
from foh_pg.learners.hyperplanes import RandomHyperplanes

# With fewer held-out rows than this the comparison says nothing.
LEAST_ROWS = 20


class Verdict(NamedTuple):
    """Outcome of a comparison on held-out rows.

    Attributes
    ----------
    serve : bool
        Whether the learner may be served.
    learned, random : float
        mAP of its codes and of random hyperplanes; NaN where the rows say nothing.
    """

    serve: bool
    learned: float
    random: float


def compare_with_random(
    learner: Learner, X: npt.ArrayLike, Y: Labels, *, anchored: bool = False, seed: int = 0
) -> Verdict:
    """Compare a learner with random hyperplanes on rows it has not learned from.

    A quarter of the rows are queries against the others. Random hyperplanes go through the learner's own
    mean. Too few rows, or rows of which no two share a label, are no reason to refuse a model.

    Parameters
    ----------
    X, Y : rows and labels
        A held-out sample; a few hundred to two thousand rows are plenty.
    anchored : bool
        Whether stored rows lean on their labels, as they will in the index.

    Examples
    --------
    >>> from foh_pg.learners import FOH
    >>> rng = np.random.default_rng(0)
    >>> label = rng.integers(5, size=800)
    >>> X = rng.standard_normal((5, 16))[label] + 0.5 * rng.standard_normal((800, 16))
    >>> learner = FOH(bits=16).partial_fit(X[:600], label[:600])
    >>> compare_with_random(learner, X[600:], label[600:]).serve
    True
    """
    rows = np.asarray(X)
    sets, names = Vocabulary().read(Y, len(rows))
    labelled = np.flatnonzero(sets.counts)
    if len(labelled) < LEAST_ROWS:
        return Verdict(True, float("nan"), float("nan"))
    if not learner.started:
        raise InputError("the learner has seen no row: there is nothing to compare")
    hot = sets.take(labelled).multi_hot(len(names))
    rows = rows[labelled]
    cut = len(rows) // 4
    random = RandomHyperplanes.through(learner.mean_, learner.bits, seed)
    leaning = [[names.names[j] for j in sets.row(i)] for i in labelled[cut:]] if anchored else None
    stored = learner.encode(rows[cut:], leaning)
    learned = mean_average_precision(learner.encode(rows[:cut]), stored, hot[:cut], hot[cut:])
    chance = mean_average_precision(
        random.encode(rows[:cut]), random.encode(rows[cut:]), hot[:cut], hot[cut:]
    )
    return Verdict(not learned < chance, learned, chance)
