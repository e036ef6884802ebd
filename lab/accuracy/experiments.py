"""How well codes rank by label: the paper's tables, on any data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foh_pg.learners import Learner
from lab import relevance
from lab.accuracy import methods, pooling
from lab.accuracy.methods import Method
from lab.accuracy.references import references
from lab.classifying import filter_by_label, fit
from lab.dataset import Dataset
from lab.protocol import Protocol, Split

Record = dict[str, Any]

# The last table of the paper: centers renewed every so many batches.
EVERY = (1, 2, 3, 4, 5)

# Shares of rows without labels, in the stream and in the base.
HIDDEN = (0.0, 0.5, 0.9)

# What can be measured beside the main table, and what of it the paper has.
EXTRAS = ("ablation", "pool", "updating", "hidden", "arrival")
EXTRAS_OF_THE_PAPER = ("ablation", "pool", "updating")


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    # bits, seeds: every method is trained for each of them.
    bits: Sequence[int] = (16, 32, 48, 64, 128)
    seeds: Sequence[int] = (0, 1, 2)
    # The rows of the main table.
    methods: Sequence[Method] = field(default_factory=lambda: methods.choose(["all"]))
    # How the data set is cut up.
    protocol: Protocol = field(default_factory=Protocol)
    # Which experiments are made beside the main table.
    extras: Sequence[str] = EXTRAS

    @property
    def extra_bits(self) -> list[int]:
        """Bits of the ablations: the paper's 32 and 48 where they are measured, else the first."""
        return [k for k in self.bits if k in (32, 48)] or list(self.bits[:1])

    def describe(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            "bits": list(self.bits),
            "seeds": list(self.seeds),
            "methods": {m.name: {"learner": m.learner, **m.options} for m in self.methods},
            "protocol": dict(vars(self.protocol)),
        }


@dataclass(frozen=True)
class Step:
    """One piece of work, small enough for a progress bar."""

    description: str
    run: Callable[[], list[Record]]


def plan(data: Dataset, settings: Settings) -> Iterator[Step]:
    """Give all steps; `count_steps` says how many there are."""
    for seed in settings.seeds:
        split = Split.draw(data, settings.protocol, seed)
        yield Step(f"references, seed {seed}", lambda s=split: list(_references(s)))  # type: ignore[misc]
        for bits in settings.bits:
            for method in settings.methods:
                yield _step("table", method, split, bits)
        yield from _extra_steps(split, settings)


def count_steps(data: Dataset, settings: Settings) -> int:
    """Count the steps of a plan without running any."""
    bits = len(settings.extra_bits)
    steps = {
        "ablation": bits * len(methods.ablations(data.multi_label)),
        "pool": bits,
        "updating": 1,
        "hidden": len(HIDDEN),
        "arrival": len(settings.methods),
    }
    per_seed = 1 + len(settings.bits) * len(settings.methods) + sum(steps[name] for name in settings.extras)
    return per_seed * len(settings.seeds)


def _extra_steps(split: Split, settings: Settings) -> Iterator[Step]:
    made = {
        "ablation": _ablation_steps,
        "pool": _pool_steps,
        "updating": _updating_steps,
        "hidden": _hidden_steps,
        "arrival": _arrival_steps,
    }
    for name in settings.extras:
        yield from made[name](split, settings)


def _ablation_steps(split: Split, settings: Settings) -> Iterator[Step]:
    for bits in settings.extra_bits:
        for method in methods.ablations(split.data.multi_label):
            yield _step("ablation", method, split, bits)


def _pool_steps(split: Split, settings: Settings) -> Iterator[Step]:
    for bits in settings.extra_bits:
        yield Step(
            f"pool, {bits} bits, seed {split.seed}",
            lambda b=bits: list(_pools(split, b)),  # type: ignore[misc]
        )


def _updating_steps(split: Split, settings: Settings) -> Iterator[Step]:
    bits = settings.extra_bits[0]
    yield Step(f"centers renewed, {bits} bits, seed {split.seed}", lambda: list(_updating(split, bits)))


def _hidden_steps(split: Split, settings: Settings) -> Iterator[Step]:
    bits = settings.extra_bits[0]
    for share in HIDDEN:
        yield Step(
            f"{share:.0%} without labels, {bits} bits, seed {split.seed}",
            lambda s=share: list(_hidden(split, bits, s)),  # type: ignore[misc]
        )


def _arrival_steps(split: Split, settings: Settings) -> Iterator[Step]:
    ordered = by_label(split)
    for method in settings.methods:
        yield _step("arrival", method, ordered, settings.extra_bits[0])


def _step(experiment: str, method: Method, split: Split, bits: int) -> Step:
    return Step(
        f"{method.name}, {bits} bits, seed {split.seed}",
        lambda: list(evaluate(experiment, method, split, bits)),
    )


def train(method: Method, split: Split, bits: int) -> tuple[Learner, float]:
    """Feed the stream to a new learner; return it and the seconds of CPU that learning took."""
    learner = method.make(bits, split.seed)
    seconds = 0.0
    for rows, labels in split.batches():
        # CPU time, because a benchmark rarely has the machine to itself.
        started = time.process_time()
        learner.partial_fit(rows, labels)
        seconds += time.process_time() - started
    return learner, seconds


def evaluate(experiment: str, method: Method, split: Split, bits: int) -> Iterator[Record]:
    """Train a method and rank the base by its codes: symmetric ones, and label-anchored if it has them."""
    learner, seconds = train(method, split, bits)
    X, base = split.data.X, split.base
    asked = learner.encode(X[split.queries])
    common = {
        "experiment": experiment,
        "method": method.name,
        "bits": bits,
        "seed": split.seed,
        "data": split.data.name,
        **_sizes(split),
        "bytes_per_row": -(-bits // 8),
        "train_seconds": round(seconds, 4),
        "rows_per_second": round(len(split.stream) / seconds, 1),
    }
    quality = relevance.measure(relevance.by_codes(asked, learner.encode(X[base])), split)
    yield {**common, "codes": "symmetric", "stored_labels": False, **_figures(quality)}
    if getattr(learner, "label_projection_", None) is not None and method.role != "ablation":
        anchored = learner.encode(X[base], split.data.labels(base))
        quality = relevance.measure(relevance.by_codes(asked, anchored), split)
        yield {**common, "codes": "anchored", "stored_labels": True, **_figures(quality)}


def _hidden(split: Split, bits: int, share: float) -> Iterator[Record]:
    """Codes and the classifier where some rows have no labels: known to nobody, but to the judge."""
    known = split.hide_labels(share)
    common = {"experiment": "hidden", "bits": bits, "seed": split.seed, "data": split.data.name}
    common["hidden"] = share
    X, base = split.data.X, split.base
    learner, _ = train(methods.choose(["foh"])[0], known, bits)
    asked = learner.encode(X[split.queries])
    for kind, labels in (("symmetric", None), ("anchored", known.data.labels(base))):
        quality = relevance.measure(relevance.by_codes(asked, learner.encode(X[base], labels)), split)
        yield {**common, "method": "foh", "codes": kind, **_figures(quality)}
    classifier = fit(known)
    chances = classifier.project(X[split.queries]) + classifier.shares
    quality = relevance.measure(filter_by_label(chances, known), split)
    yield {**common, "method": "classify and filter", "codes": "none", **_figures(quality)}


def _references(split: Split) -> Iterator[Record]:
    for reference in references(split):
        yield {
            "experiment": "reference",
            "method": reference.name,
            "codes": "none",
            "stored_labels": reference.stored_labels,
            "bits": None,
            "seed": split.seed,
            "data": split.data.name,
            **_sizes(split),
            "bytes_per_row": reference.bytes_per_row,
            "train_seconds": round(reference.seconds, 4),
            **_figures(reference.quality),
        }


def _pools(split: Split, bits: int) -> Iterator[Record]:
    """FOH-Q of the paper: the same codes without a pool, with the paper's pool, with ours."""
    for name in ("foh-paper", "foh"):
        learner, _ = train(methods.choose([name])[0], split, bits)
        common = {"experiment": "pool", "method": name, "bits": bits, "seed": split.seed}
        common["data"] = split.data.name
        codes = learner.encode(split.data.X[split.base])
        asked = learner.encode(split.data.X[split.queries])
        quality = relevance.measure(relevance.by_codes(asked, codes), split)
        yield {
            **common,
            "pool": "none (FOH-Q)",
            "map_of_candidates": round(quality.mean_average_precision, 5),
            "precision_at": {str(k): round(quality.precision_at[k], 5) for k in (10, 100)},
            "candidates": len(split.base),
            "reachable": 1.0,
        }
        yield {**common, "pool": "paper", **pooling.paper_pool(learner, split).describe()}
        yield {**common, "pool": "homes", **pooling.homes_pool(learner, split).describe()}


def _updating(split: Split, bits: int) -> Iterator[Record]:
    for name in ("foh-paper", "foh"):
        learner = methods.choose([name])[0].make(bits, split.seed)
        common = {"experiment": "updating", "method": name, "bits": bits, "seed": split.seed}
        for every, pooled in pooling.updating(learner, split, EVERY).items():
            yield {**common, "data": split.data.name, "every": every, **pooled.describe()}


def by_label(split: Split) -> Split:
    """The same split with a stream in which labels come one after another.

    A row goes by the label of its own that comes first in a random order of all labels.
    """
    rng = np.random.Generator(np.random.PCG64([split.seed, 1]))
    rank = rng.permutation(len(split.data.label_names))
    sets = split.data.sets
    first = np.array([rank[sets.row(int(i))].min(initial=len(rank)) for i in split.stream])
    return replace(split, stream=split.stream[np.argsort(first, kind="stable")])


def _sizes(split: Split) -> Record:
    """How many rows came to be what; small data sets fall short of the protocol."""
    return {
        "queries": len(split.queries),
        "base": len(split.base),
        "stream": len(split.stream),
        "batch": split.batch,
    }


def _figures(quality: relevance.Quality) -> Record:
    """Plain numbers, rounded to what they are worth."""
    return {
        "map": round(quality.mean_average_precision, 5),
        "precision_at": {str(k): round(value, 5) for k, value in quality.precision_at.items()},
        "recall10": round(quality.recall, 5),
        "both10": round(quality.both, 5),
        "distance10": round(quality.distance, 5),
    }
