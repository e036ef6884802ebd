"""What searches read and reach at several sizes of a table, counted in memory, without a server.

Run as ``python -m lab study reach --data PATH --rows 1000000 10000000``. The rows are those of
`lab.studies.size`, and so are the queries. Centers come from a sample as large as a build's, and lengths of
lists are estimated by it. `reach` is the share of the exact ten that the probed lists hold.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.clustering import unit
from foh_pg.geometry import Geometry, default_bits
from foh_pg.updater.plan import ROWS_PER_CENTER, SAMPLE_BYTES, SAMPLE_ROWS
from lab.data import load
from lab.dataset import Dataset
from lab.studies.learner_report import parser, report
from lab.studies.size import K, chunks, made

Row = dict[str, Any]
Floats = npt.NDArray[np.float32]


def main() -> None:
    """Count and print."""
    arguments = read_arguments()
    data = load(arguments.data)
    asked = np.random.default_rng(0).permutation(len(data.X))[: arguments.queries]
    found = [count(data, asked, rows, arguments) for rows in arguments.rows]
    report(f"{data.name}, repeated with noise", found, arguments.json)


def read_arguments() -> argparse.Namespace:
    asked = parser(__doc__)
    asked.add_argument("--data", required=True, help="an .npz file of rows and labels")
    asked.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    asked.add_argument("--centers", type=int, help="how many, in place of as many as the rows ask for")
    asked.add_argument("--queries", type=int, default=300)
    asked.add_argument("--noise", type=float, default=0.3, help="its length beside that of a row")
    return asked.parse_args()


def count(data: Dataset, asked: npt.NDArray[np.int64], rows: int, arguments: argparse.Namespace) -> Row:
    """What the queries read and reach at one size."""
    centers = clustering.target_centers(rows, arguments.centers)
    wanted = min(max(SAMPLE_ROWS, ROWS_PER_CENTER * centers), SAMPLE_BYTES // (4 * data.X.shape[1]))
    queries = unit(data.X[asked].astype(np.float32))
    sample, nearest = read(data, queries, asked, rows, min(1.0, wanted / rows), arguments.noise)
    means = clustering.make_levels(np.random.default_rng(0), sample, centers)
    geometry = Geometry.fit(sample, default_bits(sample.shape[1]), "cosine", 0)
    bits = geometry.encode(sample)
    levels = clustering.by_bits(means, sample, geometry.encode, geometry.layout)
    near = geometry.encode(nearest.reshape(-1, nearest.shape[2]))
    homes = clustering.find_homes(near, levels, geometry.layout).reshape(len(asked), K)
    lengths = (
        np.bincount(clustering.find_homes(bits, levels, geometry.layout), minlength=centers)
        * rows
        / len(sample)
    )
    probes = clustering.default_probes(len(levels.centers))
    areas = clustering.near_areas(probes, len(levels.areas))
    lists = clustering.read_by(geometry.query_looks(queries), levels, probes)
    reached = np.take_along_axis(lists, homes, axis=1)
    return {
        "rows": rows,
        "centers": len(levels.centers),
        "probes": probes,
        "areas compared": len(levels.areas),
        "centers compared": round(areas * len(levels.centers) / len(levels.areas)),
        "entries read": round(float((lists @ lengths).mean())),
        "reach": round(float(reached.mean()), 3),
    }


def read(
    data: Dataset, queries: Floats, asked: npt.NDArray[np.int64], rows: int, share: float, noise: float
) -> tuple[Floats, Floats]:
    """A sample of the rows, and the exact ten of each query."""
    rng = np.random.default_rng(1)
    drawn: list[Floats] = []
    best = np.full((len(queries), K), -np.inf, dtype=np.float32)
    nearest = np.zeros((len(queries), K, queries.shape[1]), dtype=np.float32)
    for places in chunks(rows):
        kept = places[~np.isin(places % len(data.X), asked)]
        units = unit(made(data, kept, noise)[1].astype(np.float32))
        drawn.append(units[rng.random(len(units)) < share])
        products = queries @ units.T
        for i in np.flatnonzero(products.max(axis=1) > best.min(axis=1)).tolist():
            near = np.argsort(-products[i])[:K]
            values, vectors = (
                np.append(best[i], products[i, near]),
                np.append(nearest[i], units[near], axis=0),
            )
            first = np.argsort(-values, kind="stable")[:K]
            best[i], nearest[i] = values[first], vectors[first]
    return np.concatenate(drawn), nearest


if __name__ == "__main__":
    main()
