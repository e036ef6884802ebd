"""The chance of a suggested label, learned from rows whose labels are drawn as their neighbors vote."""

from __future__ import annotations

import numpy as np

from foh_pg.arrays.ragged import Ragged
from foh_pg.model.model import Model
from foh_pg.tables.source import Rows
from foh_pg.updater.chances import _votes, learn_chances, odds

ASKING, OF_A_KIND = 3000, 60


def rows(labels: np.ndarray) -> Rows:
    """A row for each label, all of one vector, so that only votes tell rows apart."""
    each = Ragged(labels.astype(object), np.arange(len(labels) + 1))
    return Rows(np.arange(len(labels)), np.ones((len(labels), 4), dtype=np.float32), each)


def test_a_label_comes_true_as_often_as_neighbors_vote_for_it() -> None:
    """Also where all of them agree: a chance that follows the share alone stays far below."""
    draw = np.random.default_rng(0)
    base = rows(np.repeat(["a", "b"], OF_A_KIND))
    # How likely a near row is to be called a differs from query to query, from never to always.
    inclined = draw.random((ASKING, 1))
    called_a = np.arange(2 * OF_A_KIND) < OF_A_KIND
    far = draw.random((ASKING, 2 * OF_A_KIND)) / np.where(called_a, inclined, 1 - inclined)
    near = np.argsort(far, axis=1)
    names, shares, _ = _votes(rows(np.full(ASKING, "a")), base.labels, near)
    share = shares.toarray()[:, names.index("a")]
    queries = rows(np.where(draw.random(ASKING) < share, "a", "b"))

    learned = learn_chances(Model.random(np.zeros(4), 8, 0), queries, base.labels, near)

    assert learned is not None
    said = np.linspace(0.05, 1.0, 20)
    chances = 1 / (1 + np.exp(-(learned[0] + learned[1] * odds(said))))
    assert np.abs(chances - said).max() < 0.06
