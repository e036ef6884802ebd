"""Data on standard output, talk on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import click
import psycopg


def say(message: str) -> None:
    """Tell the person; never read by programs."""
    click.echo(message, err=True)


def fail(error: BaseException) -> None:
    """One line about an error that the user can act on."""
    # Messages of our own SQL begin with "foh: ", for people who read them in psql.
    say(f"foh-pg: {one_line(error).removeprefix('foh: ')}")


def one_line(error: BaseException) -> str:
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        parts = [error.diag.message_primary, error.diag.message_detail, error.diag.message_hint]
        text = ". ".join(part.rstrip(".") for part in parts if part)
    else:
        text = str(error)
    return " ".join(text.split())


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, default=plain, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def plain(value: Any) -> Any:
    """The JSON form of what PostgreSQL returns beyond numbers and strings."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def print_table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> None:
    """A table for reading; its columns are those of the first row unless given."""
    # Imported here, so that programs that ask for JSON do not wait for it.
    from rich.console import Console
    from rich.table import Table

    names = list(columns if columns is not None else rows[0] if rows else ())
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        numeric = rows and all(isinstance(row[name], (int, float, Decimal)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell(row[name]) for name in names))
    # A pipe has no width: lines are then as long as they must be.
    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False, markup=False)
    console.print(table)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    return str(value)
