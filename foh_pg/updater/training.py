"""From rows to hash functions: the learner of an index, its stages, the comparison before it is served."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.metrics import mean_average_precision
from foh_pg.learners import FOH, Learner, RandomHyperplanes
from foh_pg.model.model import Model, label_lists, label_sets, typical_distance
from foh_pg.tables.index_row import IndexForm, IndexRow
from foh_pg.tables.keys import KeyArray
from foh_pg.tables.source import Rows

# With fewer held-out rows than this a comparison would be left to chance.
LEAST_HELD_OUT = 40

# How much worse than the present model, in mAP on held-out rows, a new one may be and still be served.
MARGIN = 0.02

# A longer label does not fit into the B-tree on foh.label, and would make every run fail.
LONGEST_LABEL = 500


def new_learner(index: IndexRow) -> Learner:
    """The learner that the index asks for, with its options, before any row."""
    seed = int(index.options["seed"])
    if index.labels is None:
        return RandomHyperplanes(index.bits, seed=seed)
    return FOH(index.bits, seed=seed, **_alterable(index))


def restored(index: IndexRow, saved: Mapping[str, Any]) -> Learner:
    """A learner that was saved, with the options that the index has now."""
    learner, wanted = Learner.restored(saved), new_learner(index)
    if type(learner) is not type(wanted):
        # The index had no labels then.
        return wanted
    return learner.set_parameters(**_alterable(index)) if isinstance(learner, FOH) else learner


def _alterable(index: IndexRow) -> dict[str, Any]:
    """Options that a learner may be given while it learns."""
    return {name: float(index.options[name]) for name in ("label_weight", "forget")}


def held_out(index: IndexRow, rows: Rows) -> npt.NDArray[np.bool_]:
    """Which rows never train."""
    return index.keys.shares(rows.keys) < float(index.options["held_out"])


def learn(index: IndexRow, learner: Learner, rows: Rows) -> None:
    """One stage. The learner itself skips rows without labels."""
    labels = None
    if index.labels is not None:
        labels = [[name for name in row if len(name) <= LONGEST_LABEL] for row in label_lists(rows.labels)]
    learner.partial_fit(rows.vectors, labels, names_of(index, rows.keys))


def stages(index: IndexForm, rows: int) -> list[npt.NDArray[np.int64]]:
    """Which of so many rows a build learns from at a time, one step after the other."""
    order = np.arange(rows)
    if float(index.options["forget"]) == 1:
        # Labels often follow the order of the keys. Where the past is forgotten, that order must stay.
        np.random.default_rng(int(index.options["seed"])).shuffle(order)
    return np.array_split(order, max(1, rows // int(index.options["learn_rows"])))


def names_of(index: IndexRow, keys: KeyArray) -> KeyArray:
    """What a learner knows rows by: their keys, or digests of keys that are texts, which may be long."""
    if index.keys.dtype is not object:
        return keys
    digests = [hashlib.sha256(index.keys.to_bytes(key)).digest()[:16] for key in keys.tolist()]
    return np.frombuffer(b"".join(digests), dtype="S16")


def served(index: IndexRow, learner: Learner, scale: float, present: Model | None = None) -> Model:
    """The model that was learned, for this index; geometry and ranking of the present model stay."""
    made = Model.of_learner(learner, float(index.options["label_weight"]), scale)
    made = replace(made, signed=index.labels is not None)
    if present is not None:
        made = replace(made, geometry=present.geometry, ranking=present.ranking)
    return made


def random_model(
    index: IndexRow, mean: npt.NDArray[Any], scale: float, present: Model | None = None
) -> Model:
    """Random hyperplanes through a mean, for this index."""
    made = Model.random(mean, index.bits, int(index.options["seed"]), scale)
    made = replace(made, signed=index.labels is not None)
    return made if present is None else replace(made, geometry=present.geometry)


def scale_of(index: IndexRow, rows: Rows, mean: npt.NDArray[Any]) -> float:
    return 1.0 if index.distance == "cosine" else typical_distance(rows.vectors, mean)


@dataclass(frozen=True)
class Examination:
    """Held-out rows with labels: a quarter of them are queries, the others are the base."""

    rows: Rows
    sets: LabelSets

    @classmethod
    def of(cls, rows: Rows) -> Examination:
        labelled = rows.take(rows.labels.lengths > 0)
        _, [sets] = label_sets(labelled.labels)
        return cls(labelled, sets)

    @property
    def telling(self) -> bool:
        """Whether there are enough rows, of which some share a label."""
        return len(self.rows) >= LEAST_HELD_OUT and len(self.sets.ids) > len(np.unique(self.sets.ids))

    def score(self, model: Model) -> float:
        """mAP of queries without labels among rows stored with theirs, as in the index."""
        first, rest = np.split(np.arange(len(self.rows)), [len(self.rows) // 4])
        queries = model.encode(self.rows.vectors[first])
        stored = model.encode(self.rows.vectors[rest], self.rows.labels.take(rest))
        return mean_average_precision(queries, stored, self.sets.take(first), self.sets.take(rest))


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate is served, and by which figures; `note` says why not."""

    serve: bool
    metrics: dict[str, Any]
    note: str = ""


def compare(index: IndexRow, rows: Rows, candidate: Model, present: Model | None) -> Verdict:
    """Look at a candidate before it is served, beside the present model where that was trained.

    The first model must not be worse than random hyperplanes, a later one not worse than the present one by
    more than MARGIN.
    """
    exam = Examination.of(rows)
    if not exam.telling:
        return Verdict(True, {"held_out": len(exam.rows)})
    found = exam.score(candidate)
    metrics: dict[str, Any] = {"held_out": len(exam.rows), "map": _plain(found)}
    if present is not None and present.trained:
        rival, name, allowed = exam.score(present), "map_present", MARGIN
    else:
        plain = Model.random(candidate.mean, index.bits, int(index.options["seed"]), candidate.scale)
        rival, name, allowed = exam.score(plain), "map_random", 0.0
    metrics[name] = _plain(rival)
    if not found < rival - allowed:
        return Verdict(True, metrics)
    against = "the present one" if name == "map_present" else "random hyperplanes"
    note = (
        f"the new model is worse than {against} on {len(exam.rows)} held-out rows: "
        f"mAP {found:.3f}, not {rival:.3f}"
    )
    return Verdict(False, {**metrics, "refused": True}, note)


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 5)
