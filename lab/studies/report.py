"""How the figures of a study come out: a table on stdout, JSON where asked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with the arguments all figures share."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=Path, help="write the figures to this file too")
    return made


def report(title: str, rows: Sequence[dict[str, Any]], path: Path | None) -> None:
    """Print rows of figures, and write them as JSON."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column, justify="left" if isinstance(rows[0][column], str) else "right")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    # Into a file or a pipe the table is as wide as it needs.
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)
    if path is not None:
        path.write_text(json.dumps({"title": title, "rows": list(rows)}, indent=1) + "\n")
