"""An index of ours in memory, on the rows of a split: learned, weighed and asked as the real one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.clustering import Metric
from foh_pg.geometry import Geometry, default_bits
from foh_pg.learners import FOH
from foh_pg.model.model import Model, label_lists
from foh_pg.model.ranking import Ranking
from foh_pg.postgres.binary_copy import Ragged
from foh_pg.quality.protocol import Split
from foh_pg.tables.source import Rows
from foh_pg.updater.asking import wanted_queries
from foh_pg.updater.training import stages
from foh_pg.updater.trial import Trial
from foh_pg.updater.weighing import weigh


@dataclass(frozen=True)
class Form:
    """An index with default options."""

    bits: int
    geometry: int
    distance: Metric = "cosine"
    options: Mapping[str, Any] = field(default_factory=lambda: {"seed": 0, "forget": 1.0, "learn_rows": 2000})


@dataclass(frozen=True)
class Indexed:
    """What an index on the base of a split would have learned."""

    index: Form
    model: Model
    ranking: Ranking
    note: str

    @classmethod
    def learn(cls, split: Split, bits: int) -> Indexed:
        """Learn from most of the base, and choose the ranking on the rest of it, as a build does."""
        X, learner = split.data.X, FOH(bits)
        index = Form(bits, default_bits(X.shape[1]))
        rows = rows_of(split, split.base)
        asking = np.arange(len(rows)) >= len(rows) - wanted_queries(len(rows))
        studied = rows.take(~asking)
        for stage in stages(index, len(studied)):
            part = studied.take(stage)
            # By name: the rows that the model is asked for later have names.
            learner.partial_fit(part.vectors, list(label_lists(part.labels)))
        model = replace(Model.of_learner(learner, 1.0, 1.0), signed=True)
        geometry = Geometry.fit(X[split.base], index.geometry, index.distance, 0)
        model = replace(model, geometry=geometry)
        weighed = weigh(index, model, rows, asking)
        return cls(index, model, weighed.ranking, weighed.note)

    def trial(self, split: Split) -> Trial:
        """The queries of the split put to its base."""
        return Trial(self.index, self.model, rows_of(split, split.base), rows_of(split, split.queries))

    def hidden_trial(self, split: Split, made: Trial, hidden: float) -> Trial:
        """The same where only the judge knows the labels of a share of the base."""
        known = split.hide_labels(hidden)
        without = Trial(self.index, self.model, rows_of(known, known.base), rows_of(split, split.queries))
        without.relevant, without.kind, without.kind_there = made.relevant, made.kind, made.kind_there
        return without


def rows_of(split: Split, places: npt.NDArray[np.int64]) -> Rows:
    """Rows of a split as an updater reads them."""
    sets: LabelSets = split.data.sets.take(places)
    names = np.array(split.data.label_names, dtype=object)
    return Rows(places, split.data.X[places], Ragged(names[sets.ids], sets.offsets))
