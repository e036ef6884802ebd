"""The picture of a search report: how near answers are in both senses, and what they cost (matplotlib)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from foh_pg.errors import InputError
from lab.search.ours import BY_BITS, DIALS, LEARNED, NEAREST
from lab.summary import Record, Report

HNSW = "pgvector HNSW"

# Colors that people with color blindness can tell apart (Okabe and Ito). No two lines share both color and
# marker, so that a print in gray can be read as well.
VERMILION, ORANGE, PINK, GREEN = "#d55e00", "#e69f00", "#cc79a7", "#009e73"
BLUE, SKY, BROWN, GRAY, BLACK = "#0072b2", "#56b4e9", "#8c6d31", "#6c757d", "#000000"

# Color and marker of each curve.
_LOOKS = {
    f"foh, {LEARNED}": (VERMILION, "o"),
    f"foh, {BY_BITS}": (ORANGE, "s"),
    f"foh, {NEAREST}": (PINK, "^"),
    f"foh, {DIALS}": (GREEN, "D"),
    HNSW: (BLUE, "v"),
    "exact cosine": (BLACK, "X"),
    "supervised projection, HNSW on halfvec": (SKY, "P"),
    "classify and filter, any": (BROWN, "<"),
    "classify and filter, nearest": (BROWN, ">"),
    "pgvector HNSW on signs": (SKY, "v"),
}

_OTHERS = tuple(
    (color, marker)
    for marker in ("h", "*", "p")
    for color in (GRAY, BLACK, VERMILION, BLUE, GREEN, ORANGE, PINK)
)


def _looks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Color and marker of each curve: its own where it is known, else the next that is free."""
    others = iter(_OTHERS)
    return {name: _LOOKS.get(name) or next(others, (GRAY, ".")) for name in names}


def require() -> None:
    """Say how to get matplotlib, before any work is done."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("a picture needs matplotlib: pip install 'foh_pg[lab]'") from None


def write_png(report: Report, path: Path) -> None:
    """Write the frontier as a picture."""
    frontier([r for r in report.select("search") if r["k"] == 10]).savefig(path, format="png", dpi=150)


def curves(records: Sequence[Record]) -> dict[str, list[Record]]:
    """What is joined by a line: forms that differ in budget, dial or ef_search alone, by their recall.

    The dial leads through the default and through labels 0.
    """
    found: dict[str, list[Record]] = {}
    for r in records:
        name = ", ".join(filter(None, (r["contender"], r.get("curve"))))
        found.setdefault(name, []).append(r)
    if (dials := f"foh, {DIALS}") in found:
        found[dials] += [
            r for r in records if r["contender"] == "foh" and r["form"] in ("default", "labels 0")
        ]
    return {name: sorted(points, key=lambda r: float(r["recall"])) for name, points in found.items()}


def frontier(records: Sequence[Record]) -> Any:
    """Precision by label over recall of the exact nearest: who is further up and to the right is better.

    The larger a point, the dearer its query.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 5.4), layout="constrained")
    axis: Any = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#e9ecef", linewidth=0.8)
    axis.set_axisbelow(True)
    found = curves(records)
    looks = _looks(found)
    least = min((float(r["cpu_ms"]) for r in records), default=1.0) or 1e-3
    for name, points in found.items():
        color, marker = looks[name]
        x, y = [r["recall"] for r in points], [r["precision"] for r in points]
        sizes = [26 * (float(r["cpu_ms"]) / least) ** 0.5 for r in points]
        axis.plot(x, y, "-", color=color, linewidth=1.2, zorder=2)
        # A white edge keeps points apart that lie on each other. Large points may reach beyond the axes.
        axis.scatter(
            x, y, s=sizes, color=color, marker=marker, label=name,
            zorder=3, edgecolors="white", linewidths=0.6, clip_on=False,
        )  # fmt: skip
    axis.set_xlabel("recall@10 of the exact nearest")
    axis.set_ylabel("P@10 by label")
    axis.set_xlim(-0.02, 1.02)
    legend = axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    for handle in legend.legend_handles:
        handle.set_sizes([40])
    return figure
