"""Processor time and memory of a stage as the stream grows: flat, or it is not online."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

from foh_pg.learners import FOH
from lab.studies.learner_data import BATCH, read
from lab.studies.learner_report import parser, report


def resident() -> float:
    """Resident memory of this process in MB, now where the system tells it, else its peak."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**2 if sys.platform == "darwin" else 1024
    )


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, required=True, help="npz with at least 640 000 rows")
    arguments.add_argument("--bits", type=int, default=64)
    arguments.add_argument("--at", type=int, nargs="+", default=[60_000, 120_000, 240_000, 400_000, 600_000])
    options = arguments.parse_args()
    data = read(options.data)
    learner = FOH(options.bits)
    snapshots, memory = {}, {}
    for start in range(0, max(options.at), BATCH):
        if start in options.at:
            snapshots[start], memory[start] = learner.state(), resident()
        learner.partial_fit(data.X[start : start + BATCH], data.Y[start : start + BATCH])
    last = max(options.at)
    snapshots[last], memory[last] = learner.state(), resident()
    times: dict[int, list[float]] = {at: [] for at in options.at}
    # In turns and in processor time, so that whatever else the machine does falls on all of them.
    for turn in range(12):
        for at in options.at:
            restored = FOH.from_state(snapshots[at])
            batch = slice(last + turn * BATCH, last + (turn + 1) * BATCH)
            begin = time.process_time()
            restored.partial_fit(data.X[batch], data.Y[batch])
            times[at].append(time.process_time() - begin)
    first = np.median(times[min(options.at)])
    rows = [
        {
            "rows seen": at,
            "stage CPU ms (median)": float(np.median(times[at]) * 1e3),
            "against the first": float(np.median(times[at]) / first),
            "best of 12 against the first": min(times[at]) / min(times[min(options.at)]),
            "resident MB": memory[at],
            "state MB": sum(array.nbytes for array in snapshots[at].values()) / 2**20,
        }
        for at in options.at
    ]
    report(f"a stage of {BATCH} rows, {data.name}, {options.bits} bits", rows, options.json)


if __name__ == "__main__":
    main()
