"""The page: HTML with its style and drawings inside, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

import foh_pg
from foh_pg.model.ranking import ranking_text
from foh_pg.quality.history import PastRun, age
from foh_pg.quality.report.content import Content
from foh_pg.quality.report.figures import Figure, figures
from foh_pg.quality.report.svg import number, percent

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; background: #fff; margin: 2rem auto;
       max-width: 60rem; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .3rem; }
p.note { color: #5c636a; font-size: .86rem; margin: .2rem 0; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .8rem;
     margin: 1.2rem 0; }
dl div { border-top: 2px solid #0072b2; padding-top: .3rem; }
dl div.long { grid-column: span 3; }
dl div.long dd { font-size: .95rem; }
dt { color: #5c636a; font-size: .8rem; }
dd { margin: 0; font-size: 1.15rem; font-weight: 600; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: #495057; }
svg text.axis { fill: #212529; font-weight: 600; }
svg .grid { stroke: #e9ecef; }
svg .line { fill: none; stroke-width: 1.8; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88rem; }
th, td { padding: .22rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e9ecef; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
th:last-child, td:last-child { text-align: left; white-space: normal; min-width: 14rem; }
td.error { color: #b02a37; }
"""

LAST_RUNS = 15
LONG = ' class="long"'


def page(content: Content) -> str:
    """Give the page."""
    return document(f"Index {content.stat['name']}", body(content))


def body(content: Content) -> str:
    """What the page shows, without the frame of a document."""
    title = escape(f"Index {content.stat['name']}")
    when = content.read_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="note">on {escape(content.stat["source"])}, as of {when}; foh-pg {foh_pg.__version__}</p>',
        facts(content.stat),
        *(section(figure, content.read_at) for figure in figures(content)),
        "<h2>The last runs</h2>",
        table(content.runs[-LAST_RUNS:]),
    ]
    return "\n".join(parts)


def document(title: str, body: str, *, style: str = STYLE, head: str = "") -> str:
    """A whole document; `body` and `head` are HTML, `title` is text."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{style}</style>{head}</head>\n<body>\n{body}\n</body></html>\n"
    )


def facts(stat: dict[str, Any]) -> str:
    shown = {
        "status": stat["status"],
        "version": str(stat["version"]),
        "hash functions": "learned" if stat["trained"] else "random",
        "bits": str(stat["bits"]),
        "ranks by": ranking_text(stat["ranking"]),
        "rows in lists": number(stat["rows"]),
        "lists": number(stat["centers"]),
        "stale bits": percent(stat["stale"]),
        "waiting in the stream": number(stat["stream"]),
        "oldest has waited": f"{stat['lag_seconds']:.0f} s" if stat["stream"] else "–",
        "size": f"{(stat['bytes'] or 0) / 1e6:.1f} MB",
    }
    return (
        "<dl>"
        + "".join(
            f"<div{LONG if len(value) > 20 else ''}><dt>{name}</dt><dd>{escape(value)}</dd></div>"
            for name, value in shown.items()
        )
        + "</dl>"
    )


def section(figure: Figure, now: datetime) -> str:
    said = [figure.note] if figure.at is None else [figure.note, age([figure.at], now)]
    note = f'<p class="note">{escape(" ".join(filter(None, said)))}</p>' if any(said) else ""
    return f"<section><h2>{escape(figure.title)}</h2>{figure.svg}{note}</section>"


def table(runs: list[PastRun]) -> str:
    if not runs:
        return '<p class="note">No run yet.</p>'
    heads = ("run", "kind", "began (UTC)", "version", "rows", "lists", "rows encoded", "seconds")
    return runs_table(heads, [line(run) for run in reversed(runs)])


def runs_table(heads: Sequence[str], rows: Sequence[str], attributes: str = "") -> str:
    """A table of runs, which end with what went wrong; the rows are HTML."""
    head = "".join(f'<th scope="col">{name}</th>' for name in (*heads, "error or notes"))
    return (
        f'<div class="wide"><table{attributes}><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def run_row(cells: Sequence[str], kind: str, said: str) -> str:
    plain = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr>{plain}<td class="{kind}">{escape(said)}</td></tr>'


def line(run: PastRun) -> str:
    ended = run.error or "; ".join(run.metrics.get("notes", []))
    if run.finished_at is None:
        ended = ended or "did not end"
    cells = (
        str(run.id),
        run.kind,
        run.started_at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        str(run.version),
        str(run.rows),
        str(run.lists),
        str(run.rows_encoded),
        f"{run.seconds:.2f}",
    )
    return run_row(cells, "error" if run.error or run.finished_at is None else "note", ended)
