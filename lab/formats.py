"""A report for people and for programs: on the terminal, as JSON, as one HTML page."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from lab import paper_tables, plots
from lab.accuracy import accuracy_tables
from lab.search import curves, search_tables
from lab.stream import stream_tables
from lab.summary import Report, Table

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; background: #fff; margin: 2rem auto;
       max-width: 62rem; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.15rem; margin-top: 2.4rem; }
p.origin, p.note { color: #5c636a; font-size: .86rem; max-width: 56rem; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .22rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e9ecef; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { border-bottom: 2px solid #adb5bd; font-weight: 600; }
td.best { font-weight: 700; }
"""


def tables(report: Report) -> list[Table]:
    """All tables of a report, in reading order."""
    makers = {"search": search_tables.tables, "stream": stream_tables.tables, "paper": paper_tables.tables}
    return makers.get(report.benchmark, accuracy_tables.tables)(report)


def figures(report: Report) -> list[tuple[str, str]]:
    """Titles and SVG of all figures of a report."""
    return curves.figures(report) if report.benchmark == "search" else plots.figures(report)


def print_tables(report: Report, console: Console, shown: Sequence[Table] | None = None) -> None:
    """Print all tables of a report to a terminal, or those given."""
    for table in tables(report) if shown is None else shown:
        console.print(_rich(table))
        console.print(Text(table.note, style="dim"))
        console.print()
    console.print(Text(report.origin(), style="dim"))


def _rich(table: Table) -> RichTable:
    made = RichTable(title=Text(table.title, style="bold"), title_justify="left", box=None, pad_edge=False)
    for i, column in enumerate(table.columns):
        words = column in table.words
        made.add_column(column, justify="left" if i == 0 or words else "right", no_wrap=not words)
    for r, row in enumerate(table.rows):
        cells = (Text(cell, style="bold" if (r, c) in table.best else "") for c, cell in enumerate(row))
        made.add_row(*cells)
    return made


def to_json(report: Report) -> str:
    """Give everything that was measured as one JSON text."""
    return json.dumps(report.to_json(), ensure_ascii=False, indent=1)


def write_json(report: Report, path: Path) -> None:
    """Write everything that was measured."""
    path.write_text(to_json(report) + "\n", encoding="utf-8")


def write_html(report: Report, path: Path) -> None:
    """Write one page with all tables and figures, which loads nothing from elsewhere."""
    path.write_text(page(report), encoding="utf-8")


def page(report: Report) -> str:
    """Give the HTML page."""
    title = html.escape(f"lab {report.benchmark}: {report.data['name']}")
    origin = f'<p class="origin">{html.escape(report.origin())}</p>'
    body = [f"<h1>{title}</h1>", origin]
    for name, svg in figures(report):
        label = html.escape(name, quote=True)
        body.append(f"<h2>{label}</h2>")
        body.append(f'<figure role="img" aria-label="{label}">{svg}</figure>')
        body.append(origin)
    for table in tables(report):
        body.extend([f"<h2>{html.escape(table.title)}</h2>", _html(table)])
        body.append(f'<p class="note">{html.escape(table.note)}</p>')
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _html(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in table.columns)
    lines = []
    for r, row in enumerate(table.rows):
        cells = [
            f'<td class="best">{html.escape(cell)}</td>'
            if (r, c) in table.best
            else f"<td>{html.escape(cell)}</td>"
            for c, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "".join(lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
