"""The preset "paper" against the results of the authors' own program, stage by stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from foh_pg.arrays.codes import unpack
from foh_pg.learners import FOH
from lab.studies.learner_report import parser, report


def compare(path: Path) -> list[dict[str, Any]]:
    """Run one golden file and measure every stage."""
    with np.load(path, allow_pickle=False) as file:
        golden = {name: file[name] for name in file.files}
    X, Y = golden["in_Xtrain"], golden["in_Ytrain"]
    Y = Y[:, 0].astype(np.int64) if Y.shape[1] == 1 else Y
    step, bits = int(golden["opt_n_t"][0]), int(golden["in_nbits"].item())
    learner = FOH(
        bits,
        preset="paper",
        center=False,
        initial_projection=golden["in_W0"],
        initial_label_projection=golden["in_P0"],
    )
    rows = []
    # The last batch of the multi-label run is of another size, and inherits codes for a part of its rows
    # only.
    for t in range(10):
        batch = slice(t * step, (t + 1) * step)
        learner.partial_fit(X[batch], Y[batch])
        if t:
            expected = golden["out_W_trace"][:, :, t - 1]
            error = np.abs(learner.stage_projection_ - expected).max() / np.abs(expected).max()
            rows.append(
                {"file": path.stem, "stage": t, "relative error of W": float(error), "codes that differ": ""}
            )
    if "out_Be" in golden:
        different = np.count_nonzero(unpack(learner.encode(X), bits) != golden["out_Htrain"].astype(bool))
        rows[-1]["codes that differ"] = f"{different} bits of {golden['out_Htrain'].size}"
    return rows


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument(
        "--data", type=Path, required=True, help="folder with digits16_foh.npz and digitsml16_foh.npz"
    )
    options = arguments.parse_args()
    files = [options.data / f"{name}.npz" for name in ("digits16_foh", "digitsml16_foh")]
    report(
        "W of every stage against the authors'",
        [row for path in files for row in compare(path)],
        options.json,
    )


if __name__ == "__main__":
    main()
