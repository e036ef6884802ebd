"""mAP of both presets and of label-anchored codes, with the paper's protocol, paired over seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.codes import nearest
from foh_pg.arrays.metrics import mean_average_precision
from foh_pg.arrays.vocabulary import Vocabulary
from foh_pg.clustering import unit
from foh_pg.learners import FOH, Learner, RandomHyperplanes
from lab.studies.learner_data import BATCH, Data, Split, read, split
from lab.studies.learner_report import parser, report


def fit(learner: Learner, data: Data, stream: npt.NDArray[np.int64]) -> Learner:
    """Feed the stream in batches."""
    for start in range(0, len(stream), BATCH):
        batch = stream[start : start + BATCH]
        learner.partial_fit(data.X[batch], data.Y[batch])
    return learner


class Scores(NamedTuple):
    """mAP over the whole base, and the share of relevant rows among the first 10 and 100."""

    mean_average_precision: float
    precision_at: dict[int, float]


def scores(learner: Learner, data: Data, parts: Split, *, anchored: bool = False) -> Scores:
    """Evaluate over the whole base, stored rows with or without their labels."""
    asked_labels, labels = data.Y[parts.queries], data.Y[parts.base]
    stored = learner.encode(data.X[parts.base], labels if anchored else None)
    asked = learner.encode(data.X[parts.queries])
    found = nearest(asked, stored, 100)[0]
    return Scores(mean_average_precision(asked, stored, asked_labels, labels), precision(data, parts, found))


def precision(data: Data, parts: Split, found: npt.NDArray[np.int64]) -> dict[int, float]:
    """Share of rows that share a label with the query among the first 10 and 100, given in order of rank."""
    stored, names = Vocabulary().read(data.Y[parts.base])
    has = stored.multi_hot(len(names), bool)
    wanted = names.find(data.Y[parts.queries]).multi_hot(len(names), bool)
    hits = np.array([has[rows][:, query].any(axis=1) for rows, query in zip(found, wanted, strict=True)])
    return {k: float(hits[:, :k].mean()) for k in (10, 100)}


def cosine(data: Data, parts: Split) -> dict[int, float]:
    """Precision of exact cosine ranking at 10 and 100."""
    queries, base = unit(data.X[parts.queries]), unit(data.X[parts.base])
    found = np.empty((len(queries), 100), dtype=np.int64)
    for start in range(0, len(queries), 100):
        near = queries[start : start + 100] @ base.T
        best = np.argpartition(-near, 100, axis=1)[:, :100]
        order = np.argsort(-np.take_along_axis(near, best, axis=1), axis=1)
        found[start : start + 100] = np.take_along_axis(best, order, axis=1)
    return precision(data, parts, found)


def measure(data: Data, bits: int, seed: int) -> dict[str, Scores]:
    """Score every variant on one split with one seed."""
    parts = split(data, seed)
    paper = fit(FOH(bits, preset="paper", seed=seed), data, parts.stream)
    default = fit(FOH(bits, seed=seed), data, parts.stream)
    return {
        "random": scores(fit(RandomHyperplanes(bits, seed=seed), data, parts.stream), data, parts),
        "paper": scores(paper, data, parts),
        "accumulated": scores(default, data, parts),
        "anchored": scores(default, data, parts, anchored=True),
    }


def gain(differences: list[float]) -> dict[str, float]:
    """Sum up paired differences."""
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else float("nan")
    return {"gain": float(np.mean(differences)), "least gain": min(differences), "spread": spread}


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, required=True, help="npz with X and Y")
    arguments.add_argument("--bits", type=int, nargs="+", default=[16, 32, 48, 64, 128])
    arguments.add_argument("--seeds", type=int, default=5)
    options = arguments.parse_args()
    data = read(options.data)
    exact = [cosine(data, split(data, seed)) for seed in range(options.seeds)]
    rows = []
    for bits in options.bits:
        runs = [measure(data, bits, seed) for seed in range(options.seeds)]
        row: dict[str, Any] = {"bits": bits}
        for name in runs[0]:
            row[name] = float(np.mean([run[name].mean_average_precision for run in runs]))
        row |= gain(
            [run["accumulated"].mean_average_precision - run["paper"].mean_average_precision for run in runs]
        )
        for k in (10, 100):
            for name in ("accumulated", "anchored"):
                row[f"P@{k} {name}"] = float(np.mean([run[name].precision_at[k] for run in runs]))
            row[f"P@{k} cosine"] = float(np.mean([found[k] for found in exact]))
        rows.append(row)
        print(bits, {name: round(value, 4) for name, value in row.items()}, file=sys.stderr, flush=True)
    report(f"mAP over the base, {data.name}, mean of {options.seeds} seeds", rows, options.json)


if __name__ == "__main__":
    main()
