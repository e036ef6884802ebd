"""Bits that change from stage to stage on rows that do not: what a stored code is worth keeping for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from foh_pg.arrays.codes import hamming_rows
from foh_pg.learners import FOH
from lab.studies.learner_data import BATCH, read
from lab.studies.learner_report import parser, report

VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"preset": "paper"},
    "accumulated": {},
    "accumulated, forget .98": {"forget": 0.98},
    "accumulated, forget .9": {"forget": 0.9},
}


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, required=True, help="npz with X and Y")
    arguments.add_argument("--bits", type=int, default=64)
    arguments.add_argument("--stages", type=int, default=28)
    options = arguments.parse_args()
    data = read(options.data)
    order = np.random.default_rng(0).permutation(len(data.X))
    sample, stream = order[:2000], order[2000:]
    stages = min(options.stages, len(stream) // BATCH)
    learners = {name: FOH(options.bits, **given) for name, given in VARIANTS.items()}
    before: dict[str, Any] = {}
    rows = []
    for stage in range(stages):
        batch = stream[stage * BATCH : (stage + 1) * BATCH]
        row: dict[str, Any] = {"stage": stage + 1}
        for name, learner in learners.items():
            learner.partial_fit(data.X[batch], data.Y[batch])
            codes = (learner.encode(data.X[sample]), learner.encode(data.X[sample], data.Y[sample]))
            if name in before:
                flips = [
                    100 * hamming_rows(*pair).mean() / options.bits
                    for pair in zip(before[name], codes, strict=True)
                ]
                row[f"{name} %"] = float(flips[0])
                if name == "accumulated":
                    row["its anchored codes %"] = float(flips[1])
            before[name] = codes
        if stage:
            rows.append(row)
    report(f"bits flipped per stage of {BATCH} rows, {data.name}, {options.bits} bits", rows, options.json)


if __name__ == "__main__":
    main()
