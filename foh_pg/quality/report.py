"""One page about an index, for `foh-pg status --html`: how good it is, and what its runs did.

The page has its style and drawings inside, and loads nothing from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from typing import Any

import psycopg
from psycopg.rows import dict_row

import foh_pg
from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from foh_pg.errors import BuildError, IndexNotFound
from foh_pg.model.ranking import ranking_text
from foh_pg.quality.history import PastRun, Quality, age, quality, read_history

STAT = "SELECT * FROM foh.index_stat WHERE name = %(name)s"
# Of the last runs, so many are drawn and so many are listed.
DRAWN_RUNS = 200
LISTED_RUNS = 15
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 240, 58, 30, 30
# Colors that people with color blindness can tell apart (Okabe and Ito).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#6c757d")
STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; background: #fff; margin: 2rem auto;
       max-width: 60rem; padding: 0 1.5rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .3rem; }
p.note, dt { color: #5c636a; font-size: .86rem; margin: .2rem 0; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .8rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: #495057; }
svg line { stroke: #e9ecef; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .22rem .7rem; text-align: left; border-bottom: 1px solid #e9ecef; }
td.error { color: #b02a37; }
"""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """Lines over the versions of the index. `at`: when the last point was measured."""

    title: str
    lines: dict[str, Points]
    note: str
    at: datetime | None


@dataclass(frozen=True)
class Content:
    """What the page shows: the row of foh.index_stat, and the last runs, the oldest first."""

    stat: dict[str, Any]
    runs: list[PastRun]
    read_at: datetime


def read_content(connection: psycopg.Connection[Any], name: str) -> Content:
    """Read everything in one snapshot."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(row_factory=dict_row) as cursor:
            stat = cursor.execute(STAT, {"name": name}).fetchone()
        if stat is None:
            raise IndexNotFound.named(name)
        if stat["rows"] is None:
            raise BuildError(f"index {name!r}: {stat['status']}")
        return Content(stat, read_history(connection, name, DRAWN_RUNS), datetime.now(timezone.utc))


def page(content: Content) -> str:
    """The whole document."""
    stat, title = content.stat, escape(f"Index {content.stat['name']}")
    when = content.read_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title>\n<style>{STYLE}</style></head>\n<body>",
        f"<h1>{title}</h1>",
        f'<p class="note">on {escape(stat["source"])}, as of {when}; foh-pg {foh_pg.__version__}</p>',
        facts(stat),
        *(section(chart, content) for chart in charts(content.runs)),
        "<h2>The last runs</h2>",
        table(content.runs[-LISTED_RUNS:]),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def facts(stat: dict[str, Any]) -> str:
    shown = {
        "status": stat["status"],
        "version": stat["version"],
        "hash functions": "learned" if stat["trained"] else "random",
        "bits": stat["bits"],
        "ranks by": ranking_text(stat["ranking"]),
        "rows in lists": stat["rows"],
        "lists": stat["centers"],
        "stale bits": f"{stat['stale']:.2%}",
        "waiting in the stream": stat["stream"],
        "oldest has waited": f"{stat['lag_seconds']:.0f} s",
        "size": f"{(stat['bytes'] or 0) / 1e6:.1f} MB",
    }
    cells = (f"<div><dt>{name}</dt><dd>{escape(str(value))}</dd></div>" for name, value in shown.items())
    return f"<dl>{''.join(cells)}</dl>"


def charts(runs: Sequence[PastRun]) -> Iterator[Chart]:
    points = quality(runs)
    yield evaluated(points)
    seen = [point for point in points if point.held_out_map is not None]
    yield Chart(
        "Quality as the updater saw it",
        {"mAP": [(p.version, p.held_out_map) for p in seen if p.held_out_map is not None]},
        "mAP of recent held-out rows among each other, before the model was served.",
        last(point.at for point in seen),
    )
    updates = [run for run in runs if run.kind == "update" and run.phases]
    at = last(run.started_at for run in updates)
    yield Chart(
        "Bits flipped by a run, and left stale after it",
        {
            "% flipped": [(r.version, 100 * r.metrics["flipped"]) for r in updates if "flipped" in r.metrics],
            "% stale": [(r.version, 100 * r.stale) for r in updates if r.stale is not None],
        },
        "Share of the stored bits that the hash functions have changed since each list was encoded, before "
        "and after the stalest lists were encoded again; estimated from a few members of each list.",
        at,
    )
    yield Chart(
        "Rows encoded again",
        {"rows": [(run.version, run.rows_encoded) for run in updates]},
        "Rows in the lists that a run encoded again, beside its new rows.",
        at,
    )
    yield Chart("Time", {"seconds": [(r.version, r.seconds) for r in updates]}, "Seconds of each run.", at)


def evaluated(points: Sequence[Quality]) -> Chart:
    """What foh-pg evaluate measured, and in words what it measured last."""
    names = {"p10": "P@10", "recall10": "recall@10", "both10": "both@10"}
    lines = {name: scores(points, "index", key) for key, name in names.items()}
    lines["P@10 of the exact distance"] = scores(points, "exact", "p10")
    note = f"{PRECISION_IS}, {RECALL_IS}, {BOTH_IS}."
    measured = [point.evaluated for point in points if point.evaluated]
    if measured:
        kept = measured[-1].get("kept", {}).items()
        note += " Of the exact ten are left: " + ", ".join(f"{share:.1%} ({step})" for step, share in kept)
    at = last(point.evaluated_at for point in points if point.evaluated_at is not None)
    return Chart("Quality by foh-pg evaluate", lines, note, at)


def scores(points: Iterable[Quality], way: str, name: str) -> Points:
    known = ((point.version, point.score(way, name)) for point in points)
    return [(version, value) for version, value in known if value is not None]


def last(times: Iterable[datetime]) -> datetime | None:
    return max(times, default=None)


def section(chart: Chart, content: Content) -> str:
    lines = {name: points for name, points in chart.lines.items() if points}
    if not lines or chart.at is None:
        said = f"Nothing was measured yet: foh-pg update and foh-pg evaluate {content.stat['name']} do it."
        drawn = ""
    else:
        said, drawn = f"{chart.note} {age(chart.at, content.read_at)}", drawing(chart.title, lines)
    return f'<section><h2>{escape(chart.title)}</h2>{drawn}<p class="note">{escape(said)}</p></section>'


def drawing(title: str, lines: dict[str, Points]) -> str:
    """An SVG drawing of lines from zero on, with the versions on the horizontal axis."""
    versions = [version for points in lines.values() for version, _ in points]
    first, span = min(versions), max(versions) - min(versions)
    top = rounded_up(max(value for points in lines.values() for _, value in points))

    def place(version: float, value: float) -> tuple[str, str]:
        x = LEFT + ((version - first) / span if span else 0.5) * (WIDTH - LEFT - 14)
        return f"{x:.1f}", f"{HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = []
    for step in range(5):
        _, y = place(first, top * step / 4)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{y}" text-anchor="end">{top * step / 4:.4g}</text>')
    for version in sorted({first, max(versions)}):
        x, _ = place(version, 0)
        parts.append(f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="middle">version {version:.0f}</text>')
    for number, (name, points) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        parts.append(
            f'<text x="{LEFT + 180 * number}" y="14" style="fill: {color}">&#9632; {escape(name)}</text>'
        )
        path = " ".join(",".join(place(*point)) for point in points)
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="1.8" points="{path}"/>')
        for version, value in points:
            x, y = place(version, value)
            about = escape(f"{name}, version {version:.0f}: {value:.4g}")
            parts.append(f'<circle cx="{x}" cy="{y}" r="2.6" fill="{color}"><title>{about}</title></circle>')
    label = escape(title, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def rounded_up(value: float) -> float:
    """The next number of one digit, or of one digit and a half.

    >>> [rounded_up(value) for value in (0, 0.71, 87, 1200)]
    [1.0, 0.8, 90.0, 1500.0]
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return round(next(power * half / 2 for half in range(2, 21) if power * half / 2 >= value * 0.9999), 10)


def table(runs: Sequence[PastRun]) -> str:
    heads = ("run", "kind", "began (UTC)", "version", "rows", "lists", "rows encoded", "seconds", "notes")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    lines = "".join(line(run) for run in reversed(runs))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def line(run: PastRun) -> str:
    failed = run.error or (None if run.finished_at else "did not end")
    began = run.started_at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    cells = (
        run.id,
        run.kind,
        began,
        run.version,
        run.rows,
        run.lists,
        run.rows_encoded,
        f"{run.seconds:.2f}",
    )
    plain = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
    kind, said = ("error", failed) if failed else ("note", "; ".join(run.metrics.get("notes", [])))
    return f'<tr>{plain}<td class="{kind}">{escape(said)}</td></tr>'
