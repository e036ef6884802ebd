"""Figures of a report as inline SVG (matplotlib)."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from foh_pg.errors import InputError
from lab.relevance import RECALL_LEVELS
from lab.summary import Report, row_name, rows_of

# Colors that people with color blindness can tell apart (Okabe and Ito). No two lines of a figure share both
# color and marker, so that a print in gray can be read as well.
VERMILION, ORANGE, PINK, GREEN = "#d55e00", "#e69f00", "#cc79a7", "#009e73"
BLUE, SKY, BROWN, GRAY, BLACK = "#0072b2", "#56b4e9", "#8c6d31", "#6c757d", "#000000"

# Color and marker of each method, the same in all figures; FOH is the one to find.
_LOOKS = {
    "foh": (VERMILION, "o"),
    "foh-paper": (ORANGE, "s"),
    "hmoh": (BLUE, "v"),
    "bsodh": (SKY, "^"),
    "mihash": (GREEN, "D"),
    "osh": (PINK, "P"),
    "osh-boosted": (PINK, "X"),
    "adapthash": (BROWN, "<"),
    "okh": (BROWN, ">"),
    "sketchhash": (GREEN, "h"),
    "random": (GRAY, "."),
}


def require() -> None:
    """Say how to get matplotlib, before any work is done."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'foh_pg[lab]'") from None


def figures(report: Report) -> list[tuple[str, str]]:
    """Give titles and SVG of all figures."""
    made = [("mAP by length of codes", _by_bits(report))]
    made.append(("Precision and recall", _curves(report)))
    if report.select("arrival"):
        made.append(("Labels mixed and one after another", _arrival(report)))
    made.append(("Accuracy and training time", _training(report)))
    return made


def new_figure(columns: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, sharey=True)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#e9ecef", linewidth=0.8)
        axis.set_axisbelow(True)
    return figure, axes


def to_svg(figure: Any) -> str:
    import matplotlib

    buffer = io.StringIO()
    # Text stays text: it is smaller, and can be searched and read aloud.
    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    return re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)


def _style(name: str) -> dict[str, Any]:
    method, _, anchored = name.partition(", ")
    strong = method in ("foh", "hmoh", "foh-paper")
    color, marker = _LOOKS.get(method, (GRAY, "*"))
    return {
        "color": color,
        "marker": marker,
        "markersize": 5,
        "linestyle": "--" if anchored else "-",
        "linewidth": 2.4 if method == "foh" else 1.8 if strong else 1.2,
        "zorder": 3 if method == "foh" else 2,
        "label": name,
    }


def _reference_lines(axis: Any, report: Report) -> None:
    styles = {"exact cosine": ":", "supervised projection": "-.", "classify and filter": (0, (1, 3))}
    for name in rows_of(report.select("reference")):
        value = np.mean([r["map"] for r in report.select("reference") if row_name(r) == name])
        axis.axhline(value, color="#212529", linewidth=1, linestyle=styles.get(name, ":"), label=name)


def _by_bits(report: Report) -> str:
    figure, (axis,) = new_figure(1, 8.6, 4.6)
    records, bits = report.select("table"), report.settings["bits"]
    for name in rows_of(records):
        means = [np.mean([r["map"] for r in records if row_name(r) == name and r["bits"] == k]) for k in bits]
        axis.plot(range(len(bits)), means, **_style(name))
    _reference_lines(axis, report)
    axis.set_xticks(range(len(bits)), [str(k) for k in bits])
    axis.set_xlabel("bits")
    axis.set_ylabel("mAP over the whole base")
    axis.set_ylim(0, None)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    return to_svg(figure)


def _curves(report: Report) -> str:
    wanted = [k for k in report.settings["bits"] if k in (32, 48, 64)] or report.settings["bits"][:1]
    figure, axes = new_figure(len(wanted), 3.2 * len(wanted) + 2.4, 3.8)
    for axis, k in zip(axes, wanted, strict=True):
        records = [r for r in report.select("table") if r["bits"] == k]
        for name in rows_of(records):
            mean = np.mean([r["curve"] for r in records if row_name(r) == name], axis=0)
            axis.plot(RECALL_LEVELS, mean, markevery=max(1, len(mean) // 5), **_style(name))
        cosine = [r["curve"] for r in report.select("reference") if r["method"] == "exact cosine"]
        axis.plot(RECALL_LEVELS, np.mean(cosine, axis=0), color="#212529", ls=":", lw=1, label="exact cosine")
        axis.set_title(f"{k} bits", fontsize=10)
        axis.set_xlabel("recall")
    axes[0].set_ylabel("precision")
    axes[0].set_ylim(0, 1)
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    return to_svg(figure)


def _arrival(report: Report) -> str:
    ordered = report.select("arrival")
    bits = ordered[0]["bits"]
    mixed = [r for r in report.select("table") if r["bits"] == bits]
    names = [name for name in rows_of(ordered) if not name.endswith("anchored")]
    figure, (axis,) = new_figure(1, 8.6, 0.32 * len(names) + 1.2)
    for place, name in enumerate(reversed(names)):
        before = np.mean([r["map"] for r in mixed if row_name(r) == name])
        after = np.mean([r["map"] for r in ordered if row_name(r) == name])
        style = _style(name)
        color, marker = style["color"], style["marker"]
        axis.plot([before, after], [place, place], color=color, linewidth=2, zorder=2)
        axis.plot(before, place, marker, color="white", markeredgecolor=color, markersize=7, zorder=3)
        axis.plot(after, place, marker, color=color, markersize=7, zorder=3)
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.set_xlim(0, None)
    axis.set_xlabel(f"mAP at {bits} bits: open, labels mixed; filled, one after another")
    return to_svg(figure)


def _training(report: Report) -> str:
    bits = report.settings["bits"]
    chosen = 32 if 32 in bits else bits[0]
    records = [r for r in report.select("table") if r["bits"] == chosen and r["codes"] == "symmetric"]
    figure, (axis,) = new_figure(1, 8.6, 4.2)
    points = {}
    for name in rows_of(records):
        mine = [r for r in records if row_name(r) == name]
        points[name] = np.mean([r["rows_per_second"] for r in mine]), np.mean([r["map"] for r in mine])
        style = _style(name)
        axis.plot(*points[name], style["marker"], color=style["color"], markersize=8)
    axis.set_xscale("log")
    axis.set_xlabel(f"rows learned per second ({chosen} bits)")
    axis.set_ylabel("mAP over the whole base")
    axis.set_ylim(0, 1.1 * max(y for _, y in points.values()))
    axis.margins(x=0.2)
    _name_points(axis, points)
    return to_svg(figure)


def _name_points(axis: Any, points: dict[str, tuple[Any, Any]]) -> None:
    """Write a name beside each point, at the first place where it covers neither point nor name."""
    width, height = 530.0, 240.0  # of the plot in points, roughly
    (left, right), (low, high) = np.log10(axis.get_xlim()), axis.get_ylim()
    at = {
        name: (width * (np.log10(x) - left) / (right - left), height * (y - low) / (high - low))
        for name, (x, y) in points.items()
    }
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at.values()]
    for name, (x, y) in at.items():
        wide = 5.2 * len(name)
        for dx, dy in [(dx, dy) for dy in (-3, 7, -13, 17, -23) for dx in (7, -7 - wide)]:
            box = (x + dx, y + dy, x + dx + wide, y + dy + 9)
            if not any(_overlap(box, other) for other in taken):
                break
        taken.append(box)
        axis.annotate(name, points[name], textcoords="offset points", xytext=(dx, dy), fontsize=9)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
