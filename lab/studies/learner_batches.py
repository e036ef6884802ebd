"""mAP by the size of the batches that a stream comes in, and by what is done about small ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

from foh_pg.learners import FOH
from lab.studies.learner_data import Data, Split, read, split
from lab.studies.learner_quality import scores
from lab.studies.learner_report import parser, report

ROWS = 5000


def fitted(data: Data, parts: Split, bits: int, batch: int) -> FOH:
    """Learn from the first rows of the stream in batches of one size."""
    learner = FOH(bits)
    for start in range(0, ROWS, batch):
        rows = parts.stream[start : start + batch]
        learner.partial_fit(data.X[rows], data.Y[rows])
    return learner


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, required=True, help="npz with X and Y")
    arguments.add_argument("--bits", type=int, default=32)
    arguments.add_argument("--batches", type=int, nargs="+", default=[2000, 100, 20])
    options = arguments.parse_args()
    data = read(options.data)
    parts = split(data, 0)
    rows: list[dict[str, Any]] = []
    for batch in options.batches:
        row: dict[str, Any] = {"batch": batch}
        for name, evidence in {"as it is": 1000, "fitted to the batch alone": 0}.items():
            with mock.patch("foh_pg.learners.stage.EVIDENCE_ROWS", evidence):
                learner = fitted(data, parts, options.bits, batch)
            row[name] = scores(learner, data, parts).mean_average_precision
            row[f"{name}, anchored"] = scores(learner, data, parts, anchored=True).mean_average_precision
        rows.append(row)
    report(f"mAP by size of batch, {ROWS} rows of {data.name}, {options.bits} bits", rows, options.json)


if __name__ == "__main__":
    main()
