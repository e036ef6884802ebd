"""Figures of a search report: what quality costs."""

from __future__ import annotations

from foh_pg.bench.plots import new_figure, to_svg
from foh_pg.bench.summary import Record, Report

_COLORS = {
    "foh, with shortlist": "#c1121f",
    "foh, Hamming only": "#f28482",
    "foh, symmetric codes, with shortlist": "#bc6c25",
    "foh, symmetric codes, Hamming only": "#e07a5f",
    "pgvector HNSW": "#1d3557",
}

_OTHERS = (
    *("#2a9d8f", "#8a6fb0", "#bc8a5f", "#6a994e", "#8d99ae", "#457b9d"),
    *("#ffb703", "#582f0e", "#00b4d8", "#d62ad0", "#606c38", "#212529"),
)


def figures(report: Report) -> list[tuple[str, str]]:
    """Give titles and SVG: precision by label and recall of the nearest over CPU time, k = 10."""
    records = [r for r in report.select("search") if r["k"] == 10]
    return [
        ("Precision by label among the first 10", _curve(records, "precision", "P@10")),
        ("Recall of the exact nearest 10", _curve(records, "recall", "recall@10")),
    ]


def curves(records: list[Record]) -> dict[str, list[Record]]:
    """What is joined by a line: forms that differ in probes or ef_search alone, the cheapest first."""
    found: dict[str, list[Record]] = {}
    for r in sorted(records, key=lambda r: float(r["cpu_ms"])):
        name = ", ".join(filter(None, (r["contender"], r.get("curve"))))
        found.setdefault(name, []).append(r)
    return found


def _curve(records: list[Record], measure: str, label: str) -> str:
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
    return to_svg(figure)
