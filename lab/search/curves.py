"""Figures of a search report: what quality costs, and what is given up for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lab.plots import (
    BLACK,
    BLUE,
    BROWN,
    GRAY,
    GREEN,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    new_figure,
    to_svg,
)
from lab.search.ours import BY_BITS, DIALS, LEARNED, NEAREST
from lab.summary import Record, Report

HNSW = "pgvector HNSW"

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


FRONTIER = "Near in both senses: P@10 over recall@10"
NEAREST_ONLY = "Nearest vectors and nothing else: recall@10 over CPU"


def figures(report: Report) -> list[tuple[str, str]]:
    """Give titles and SVG of all figures, k = 10."""
    return [(title, to_svg(figure)) for title, figure in drawn(report)]


def write_png(report: Report, path: Path) -> None:
    """Write the frontier as a picture."""
    [figure] = [figure for title, figure in drawn(report) if title == FRONTIER]
    figure.savefig(path, format="png", dpi=150)


def drawn(report: Report) -> list[tuple[str, Any]]:
    """Titles and figures: the frontier, precision and recall over CPU, and recall with labels left out."""
    records = [r for r in report.select("search") if r["k"] == 10]
    # Every point of the dial costs the same: no curve over CPU.
    priced = [r for r in records if r.get("curve") != DIALS]
    nearest = [r for r in records if r["contender"] == HNSW or r.get("curve") == NEAREST]
    return [
        (FRONTIER, frontier(records)),
        ("Precision by label among the first 10", _over_cpu(priced, "precision", "P@10")),
        ("Recall of the exact nearest 10", _over_cpu(priced, "recall", "recall@10")),
        (NEAREST_ONLY, _over_cpu(nearest, "recall", "recall@10")),
    ]


def curves(
    records: Sequence[Record], order: Callable[[Record], float] = lambda r: float(r["cpu_ms"])
) -> dict[str, list[Record]]:
    """What is joined by a line: forms that differ in budget, dial or ef_search alone, the cheapest first."""
    found: dict[str, list[Record]] = {}
    for r in sorted(records, key=order):
        name = ", ".join(filter(None, (r["contender"], r.get("curve"))))
        found.setdefault(name, []).append(r)
    return found


def frontier(records: Sequence[Record]) -> Any:
    """Precision by label over recall of the exact nearest: who is further up and to the right is better.

    The larger a point, the dearer its query.
    """
    figure, (axis,) = new_figure(1, 9.6, 5.4)
    found = _along(records)
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


def _along(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Curves by recall. The dial leads through the default and through labels 0."""
    found = curves(records, lambda r: float(r["recall"]))
    dials = f"foh, {DIALS}"
    if dials in found:
        ends = [r for r in records if r["contender"] == "foh" and r["form"] in ("default", "labels 0")]
        found[dials] = sorted([*found[dials], *ends], key=lambda r: float(r["recall"]))
    return found


def _over_cpu(records: Sequence[Record], measure: str, label: str) -> Any:
    figure, (axis,) = new_figure(1, 8.6, 4.4)
    found = curves(records)
    looks = _looks(found)
    for name, points in found.items():
        color, marker = looks[name]
        x, y = [r["cpu_ms"] for r in points], [r[measure] for r in points]
        axis.plot(x, y, marker=marker, color=color, label=name, markersize=5)
    axis.set_xscale("log")
    axis.set_xlabel("CPU of the server per query, ms")
    axis.set_ylabel(label)
    axis.set_ylim(0, 1)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    return figure
