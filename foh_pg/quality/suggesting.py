"""How good suggested labels are, beside a plain vote of the nearest rows and beside a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.metrics import standard_error
from foh_pg.model.model import label_lists
from foh_pg.model.ranking import LABEL_VOTERS
from foh_pg.quality.classifier import Classifier
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.source import Rows, read_sample
from foh_pg.updater.training import held_out

# Labels suggested for each row, and the ranks at which a right one is looked for.
SUGGESTED = 3
TENTHS = 10
# Rows that the classifier learns from, and labels that it tells apart, at the most.
TAUGHT_ROWS = 20_000
TAUGHT_LABELS = 1000

ASK = """
SELECT l.label, l.chance
FROM {labels_answer}(%(query)s::real[]::{vector}.vector, %(k)s, %(own)s::{key_type}) l
"""

# Labels with their chances, the likeliest first; a vote or a classifier knows no chances.
Suggestions = list[list[tuple[str, float | None]]]
Labels = Mapping[Any, frozenset[str]]


def ask(session: Session, run: Run, index: IndexRow, rows: Rows) -> Suggestions:
    """What the index suggests for each row, which has no vote itself."""
    found: Suggestions = []
    for i, (key, vector) in enumerate(zip(index.keys.parameters(rows.keys), rows.vectors, strict=True)):
        asked = {"query": vector.astype(np.float64).tolist(), "k": SUGGESTED, "own": key}
        found.append([(str(label), float(chance)) for label, chance in session.rows(ASK, asked)])
        run.step(i + 1, len(rows))
    return found


def vote(nearest: Sequence[Sequence[Any]], labels: Labels) -> Suggestions:
    """The labels that most of the nearest rows with labels have; of as many rows as vote in an index."""
    found: Suggestions = []
    for keys in nearest:
        voters = [labels[key] for key in keys if labels.get(key)][:LABEL_VOTERS]
        counts: dict[str, int] = {}
        for names in voters:
            for name in sorted(names):
                counts[name] = counts.get(name, 0) + 1
        best = sorted(counts, key=lambda name: -counts[name])[:SUGGESTED]
        found.append([(name, None) for name in best])
    return found


def classify(session: Session, index: IndexRow, rows: Rows, table: int) -> Suggestions:
    """What a ridge classifier says that has learned from rows that train, or from a sample of them."""
    sample = read_sample(session, index, min(1.0, TAUGHT_ROWS / max(1, table)))
    sample = sample.take(~held_out(index, sample) & (sample.labels.lengths > 0))
    if not len(sample):
        return [[] for _ in range(len(rows))]
    names, counts = np.unique(sample.labels.values.astype(np.str_), return_counts=True)
    names = np.sort(names[np.argsort(-counts, kind="stable")[:TAUGHT_LABELS]])
    sets = LabelSets.named(label_lists(sample.labels), {name: i for i, name in enumerate(names.tolist())})
    classifier = Classifier.of(sample.vectors, sets.multi_hot(len(names), np.float32))
    scores = classifier.project(rows.vectors) + classifier.shares
    best = np.argsort(-scores, axis=1, kind="stable")[:, :SUGGESTED]
    return [[(str(names[at]), None) for at in row] for row in best]


def judge(own: Sequence[frozenset[str]], suggested: Suggestions) -> dict[str, float | None]:
    """How often the first label is right, and one of the first three; and how far chances are off.

    `calibration`: the mean difference between the chances and how often they were right, over tenths of the
    chance; `calibration_by_luck`: what it would be were every chance true. None where there are no chances.

    >>> judge([frozenset("a")] * 2, [[("a", 0.7), ("b", 0.2)], [("b", 0.7), ("a", 0.2)]])["calibration"]
    0.25
    """
    first = [bool(row) and row[0][0] in labels for labels, row in zip(own, suggested, strict=True)]
    any_of = [any(name in labels for name, _ in row) for labels, row in zip(own, suggested, strict=True)]
    pairs = [
        (chance, name in labels)
        for labels, row in zip(own, suggested, strict=True)
        for name, chance in row
        if chance is not None
    ]
    return {
        "top1": round(float(np.mean(first)), 5),
        "top1_error": round(standard_error([float(hit) for hit in first]), 5),
        "top3": round(float(np.mean(any_of)), 5),
        "top3_error": round(standard_error([float(hit) for hit in any_of]), 5),
        **dict(zip(("calibration", "calibration_by_luck"), _calibration(pairs), strict=True)),
    }


def _calibration(pairs: Sequence[tuple[float, bool]]) -> tuple[float | None, float | None]:
    """How far chances are from what came true, and how far true ones would be on as many suggestions.

    >>> draw = np.random.default_rng(0).random((2, 2000))
    >>> off, by_luck = _calibration(list(zip(draw[0].tolist(), (draw[1] < draw[0]).tolist(), strict=True)))
    >>> abs(off - by_luck) < 0.01
    True
    """
    if not pairs:
        return None, None
    chances, right = (np.array(values, dtype=np.float64) for values in zip(*pairs, strict=True))
    tenth = np.clip((chances * TENTHS).astype(int), 0, TENTHS - 1)
    off = np.bincount(tenth, chances, TENTHS) - np.bincount(tenth, right, TENTHS)
    # The mean size of a normal error of that variance.
    luck = np.sqrt(2 / np.pi * np.bincount(tenth, chances * (1 - chances), TENTHS))
    return round(float(np.abs(off).sum() / len(pairs)), 5), round(float(luck.sum() / len(pairs)), 5)
