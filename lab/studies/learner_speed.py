"""One stage of 2 000 rows after 18 000: processor time, the share of BLAS, and a plain transcription."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg  # type: ignore[import-untyped]

from foh_pg.learners import FOH
from lab.studies import authors
from lab.studies.learner_data import BATCH, Data, read, synthetic
from lab.studies.learner_report import parser, report

EXISTING = 18_000


def timed(function: Callable[[], Any]) -> float:
    """Milliseconds of processor time of one call."""
    begin = time.process_time()
    function()
    return (time.process_time() - begin) * 1e3


def trained(data: Data, bits: int, preset: str) -> FOH:
    """Learn from the rows before the measured batch."""
    learner = FOH(bits, preset=preset)  # type: ignore[arg-type]
    for start in range(0, EXISTING, BATCH):
        learner.partial_fit(data.X[start : start + BATCH], data.Y[start : start + BATCH])
    return learner


def transcription(data: Data, learner: FOH) -> Callable[[], Any]:
    """Prepare the same stage for the plain transcription."""
    rows = learner._prepare(data.X[: EXISTING + BATCH].astype(np.float64)).T
    hot = np.eye(int(data.Y.max()) + 1)[data.Y[: EXISTING + BATCH]].T
    W, P = learner.stage_projection_, learner.label_projection_
    Be = authors.sgn(W.T @ rows[:, :EXISTING])
    Xs, Le, Ls = np.ascontiguousarray(rows[:, EXISTING:]), hot[:, :EXISTING], hot[:, EXISTING:]
    return lambda: authors.stage(W, P, Be, Le, Xs, Ls)


def blas_alone(data: Data, learner: FOH) -> Callable[[], Any]:
    """Prepare the matrix products and solves of one default stage, by themselves."""
    rows = learner._prepare(data.X[EXISTING : EXISTING + BATCH].astype(np.float32))
    W = learner.stage_projection_.astype(np.float32)
    codes = np.ascontiguousarray(np.where(rows @ W >= 0, 1, -1).astype(np.float32).T)
    gram = learner.gram_ + np.eye(len(learner.gram_))

    def run() -> None:
        rows @ W
        coupling = codes @ codes.T
        for row in coupling:
            row @ codes
        rows.T @ rows
        cross = (rows.T @ codes.T).astype(np.float64)
        factor = linalg.cho_factor(gram, lower=True, check_finite=False)
        linalg.cho_solve(factor, cross, check_finite=False)

    return run


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, help="npz with X and Y (class numbers); synthetic without it")
    arguments.add_argument("--bits", type=int, default=64)
    arguments.add_argument("--turns", type=int, default=7)
    options = arguments.parse_args()
    data = read(options.data) if options.data else synthetic(10, dimensions=512)
    learners = {preset: trained(data, options.bits, preset) for preset in ("accumulated", "paper")}
    saved = {preset: learner.state() for preset, learner in learners.items()}
    batch = slice(EXISTING, EXISTING + BATCH)
    plain, blas = transcription(data, learners["paper"]), blas_alone(data, learners["accumulated"])
    times: dict[str, list[float]] = {"accumulated": [], "paper": [], "transcription": [], "BLAS alone": []}
    for _ in range(options.turns):
        for preset in learners:
            fresh = FOH.from_state(saved[preset])
            times[preset].append(timed(lambda fresh=fresh: fresh.partial_fit(data.X[batch], data.Y[batch])))  # type: ignore[misc]
        times["transcription"].append(timed(plain))
        times["BLAS alone"].append(timed(blas))
    medians = {name: float(np.median(values)) for name, values in times.items()}
    rows = [
        {
            "stage": name,
            "CPU ms (median)": median,
            "CPU ms (best)": min(times[name]),
            "transcription takes times": medians["transcription"] / median,
            "BLAS share of default": medians["BLAS alone"] / medians["accumulated"]
            if name == "accumulated"
            else "",
        }
        for name, median in medians.items()
    ]
    title = f"{BATCH} rows after {EXISTING}, {data.X.shape[1]} dimensions, {options.bits} bits"
    report(title, rows, options.json)


if __name__ == "__main__":
    main()
