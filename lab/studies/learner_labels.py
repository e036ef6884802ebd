"""Many labels (a synthetic set), and classes that arrive late (a file): mAP against random hyperplanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from foh_pg.learners import FOH, RandomHyperplanes
from lab.studies.learner_data import Data, Split, read, split, synthetic
from lab.studies.learner_quality import fit, scores
from lab.studies.learner_report import parser, report


def many_labels(labels: int, bits: int, seed: int) -> dict[str, Any]:
    """Score all variants on so many equally frequent labels."""
    data = synthetic(labels, seed=seed)
    order = np.random.default_rng(seed).permutation(len(data.X))
    parts = Split(order[:1000], order[1000:], order[1000:])
    default = fit(FOH(bits, seed=seed), data, parts.stream)
    found = {
        "random": scores(fit(RandomHyperplanes(bits, seed=seed), data, parts.stream), data, parts),
        "paper": scores(fit(FOH(bits, preset="paper", seed=seed), data, parts.stream), data, parts),
        "accumulated": scores(default, data, parts),
        "anchored": scores(default, data, parts, anchored=True),
    }
    return {name: score.mean_average_precision for name, score in found.items()}


def late_classes(data: Data, bits: int, seed: int) -> list[dict[str, Any]]:
    """Let the second half of the classes arrive after the first, and compare with shuffled order."""
    parts = split(data, seed)
    late = data.Y[parts.stream] >= (data.Y.max() + 1) // 2
    ordered = np.concatenate([parts.stream[~late], parts.stream[late]])
    rows = []
    for name, options in {
        "paper": {"preset": "paper"},
        "accumulated": {},
        "forget .98": {"forget": 0.98},
    }.items():
        row: dict[str, Any] = {"learner": name, "bits": bits}
        for order, stream in {"shuffled": parts.stream, "late": ordered}.items():
            learner = fit(FOH(bits, seed=seed, **options), data, stream)  # type: ignore[arg-type]
            row[order] = scores(learner, data, parts).mean_average_precision
            row[f"{order} anchored"] = scores(learner, data, parts, anchored=True).mean_average_precision
        rows.append(row | {"lost": row["shuffled"] - row["late"]})
    return rows


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, help="npz with X and Y (class numbers), for the late classes")
    arguments.add_argument("--labels", type=int, nargs="+", default=[10, 50, 200, 1000])
    arguments.add_argument("--bits", type=int, nargs="+", default=[32, 64])
    arguments.add_argument("--seeds", type=int, default=2)
    options = arguments.parse_args()
    rows = []
    for labels in options.labels:
        for bits in options.bits:
            runs = [many_labels(labels, bits, seed) for seed in range(options.seeds)]
            means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
            least = min(min(run["accumulated"], run["anchored"]) - run["random"] for run in runs)
            rows.append({"labels": labels, "bits": bits, **means, "least lead over random": least})
    report(f"mAP by number of labels, mean of {options.seeds} seeds", rows, options.json)
    if options.data is not None:
        data = read(options.data)
        late = [row for seed in range(options.seeds) for row in late_classes(data, max(options.bits), seed)]
        target = options.json and options.json.with_suffix(".late.json")
        report(f"half of the classes arrive late, {data.name}", late, target)


if __name__ == "__main__":
    main()
