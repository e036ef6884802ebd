"""A report for people and for programs: on the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from lab import paper_tables
from lab.accuracy import accuracy_tables
from lab.search import search_tables
from lab.stream import stream_tables
from lab.summary import Report, Table


def tables(report: Report) -> list[Table]:
    """All tables of a report, in reading order."""
    makers = {"search": search_tables.tables, "stream": stream_tables.tables, "paper": paper_tables.tables}
    return makers.get(report.benchmark, accuracy_tables.tables)(report)


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
