"""Figures of a search report: what quality costs, and what is given up for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foh_pg.bench.plots import new_figure, to_svg
from foh_pg.bench.search.ours import BY_BITS, DIALS, LEARNED, NEAREST
from foh_pg.bench.summary import Record, Report

HNSW = "pgvector HNSW"

_COLORS = {
    f"foh, {LEARNED}": "#c1121f",
    f"foh, {BY_BITS}": "#f28482",
    f"foh, {NEAREST}": "#f77f00",
    f"foh, {DIALS}": "#780000",
    HNSW: "#1d3557",
    "exact cosine": "#212529",
    "supervised projection, HNSW on halfvec": "#2a9d8f",
    "classify and filter, any": "#8a6fb0",
    "classify and filter, nearest": "#c77dff",
    "pgvector HNSW on signs": "#6a994e",
}

_OTHERS = (
    *("#bc8a5f", "#8d99ae", "#457b9d", "#bc6c25", "#e07a5f", "#00b4d8"),
    *("#ffb703", "#582f0e", "#d62ad0", "#606c38", "#9d8189", "#6c757d"),
)

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
    others = iter(_OTHERS)
    least = min((float(r["cpu_ms"]) for r in records), default=1.0) or 1e-3
    for name, points in _along(records).items():
        color = _COLORS.get(name) or next(others, "#6c757d")
        x, y = [r["recall"] for r in points], [r["precision"] for r in points]
        sizes = [14 * (float(r["cpu_ms"]) / least) ** 0.5 for r in points]
        axis.plot(x, y, "-", color=color, linewidth=1.2, zorder=2)
        axis.scatter(x, y, s=sizes, color=color, label=name, zorder=3, alpha=0.85, linewidths=0)
    axis.set_xlabel("recall@10 of the exact nearest")
    axis.set_ylabel("P@10 by label")
    axis.set_xlim(-0.02, 1.02)
    legend = axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    for handle in legend.legend_handles:
        handle.set_sizes([28])
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
    others = iter(_OTHERS)
    for name, points in curves(records).items():
        color = _COLORS.get(name) or next(others, "#6c757d")
        x, y = [r["cpu_ms"] for r in points], [r[measure] for r in points]
        axis.plot(x, y, "o-", color=color, label=name, markersize=4)
    axis.set_xscale("log")
    axis.set_xlabel("CPU of the server per query, ms")
    axis.set_ylabel(label)
    axis.set_ylim(0, 1)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    return figure
