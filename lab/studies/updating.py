"""What the benchmarks of updating share: they measure on a server of their own, print a table, write JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from foh_pg.arrays.threads import one_thread
from lab import data as datasets
from lab import environment, formats
from lab.dataset import Dataset
from lab.stream import stream_tables
from lab.stream.benchmark import Say
from lab.summary import Record, Report, Table


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with the arguments that all of them have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--data", required=True, help="digits, fashion-mnist, or a .npz, .csv or .parquet file")
    made.add_argument("--bits", type=int, default=64, help="length of a code")
    made.add_argument("--json", type=Path, help="write the figures to this file too")
    return made


def finish(
    name: str,
    given: argparse.Namespace,
    run: Callable[[Dataset, argparse.Namespace, Say], Iterator[Record]],
    table_of: Callable[[Report], Table],
) -> None:
    """Measure as the command line says, print the table, and write the JSON."""

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    data = datasets.load(given.data)
    records: list[Record] = []
    with one_thread():
        for record in run(data, given, say):
            records.append(record)
            say(stream_tables.one_line(record))
    settings = {name: value for name, value in vars(given).items() if name not in ("data", "json")}
    made = Report(name, datasets.describe(data), settings, environment.describe(), records)
    if given.json is not None:
        formats.write_json(made, given.json)
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    formats.print_tables(made, console, [table_of(made)])
