"""foh-pg bench stream, growth, build and concurrent: what keeping an index up to date costs and brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from foh_pg.bench import building, environment, stream_tables
from foh_pg.bench import concurrent as concurrency
from foh_pg.bench import data as datasets
from foh_pg.bench import growth as growing
from foh_pg.bench import stream as streams
from foh_pg.bench.summary import Record, Report
from foh_pg.cli.bench_report import data_file, deliver, json_file
from foh_pg.cli.output import say
from foh_pg.errors import InputError

rows_at_most = click.option(
    "--rows", type=click.IntRange(min=100), help="Use at most this many rows, the first of the file."
)
bits_of_a_code = click.option("--bits", type=click.IntRange(8, 1024), default=64, help="Length of a code.")
rows_of_a_batch = click.option(
    "--batch", type=click.IntRange(min=1), default=2000, help="Rows between two runs."
)
forget_option = click.option(
    "--forget", type=click.FloatRange(0.01, 1), default=1.0, help="The option of the index."
)

Work = Callable[[datasets.Dataset, streams.Say], Iterator[Record]]


@click.command(short_help="Let rows arrive in order, and learn from them.")
@data_file
@rows_at_most
@rows_of_a_batch
@bits_of_a_code
@forget_option
@click.option("--start", type=click.IntRange(min=0), default=0, help="Rows that are built first.")
@click.option(
    "--freeze", type=click.IntRange(min=1), help="Rows after which the frozen model learns no more."
)
@click.option("--queries", type=click.IntRange(min=1), default=500, help="Rows that ask.")
@click.option(
    "--ask", default="random", help="Who asks: random rows that never arrive, or those that arrive next."
)
@click.option(
    "--checkpoints",
    type=click.IntRange(min=1),
    default=3,
    help="Comparisons with --full and a fresh model.",
)
@json_file
def stream(
    data: str,
    rows: int | None,
    batch: int,
    bits: int,
    forget: float,
    start: int,
    freeze: int | None,
    queries: int,
    ask: str,
    checkpoints: int,
    json: Path | None,
) -> None:
    """Let rows arrive in order: quality and cost after each batch, online, frozen and trained afresh."""
    settings = streams.Settings(rows, batch, bits, forget, start, freeze, queries, ask, checkpoints)
    finish("stream", data, settings.describe(), lambda d, tell: streams.run(d, settings, tell), json)


@click.command(short_help="Run the same update at two sizes of the table.")
@data_file
@click.option("--sizes", default="60000,600000", help="Rows of the two tables.")
@rows_of_a_batch
@click.option("--runs", type=click.IntRange(min=1), default=8, help="Runs at each size.")
@click.option(
    "--built",
    type=click.IntRange(min=100),
    help="Rows that are built; the others stream in. All unless given.",
)
@click.option("--settle", type=click.IntRange(min=1), default=10_000, help="Rows per run while growing.")
@bits_of_a_code
@forget_option
@json_file
def growth(
    data: str,
    sizes: str,
    batch: int,
    runs: int,
    built: int | None,
    settle: int,
    bits: int,
    forget: float,
    json: Path | None,
) -> None:
    """Run the same update at two sizes of the table, and --full at both."""
    try:
        small, large = sorted(int(part) for part in sizes.split(","))
    except ValueError:
        raise InputError(f"--sizes takes two numbers like 60000,600000, not {sizes!r}") from None
    settings = growing.Settings((small, large), batch, runs, built, settle, bits, forget)
    finish("growth", data, settings.describe(), lambda d, tell: growing.run(d, settings, tell), json)


@click.command(short_help="Build an index on a full table.")
@data_file
@rows_at_most
@bits_of_a_code
@click.option("--hnsw/--no-hnsw", default=True, help="Also build pgvector's HNSW, which takes long.")
@json_file
def build(data: str, rows: int | None, bits: int, hnsw: bool, json: Path | None) -> None:
    """Build an index on a full table: time and peak memory, against pgvector's HNSW."""
    settings = building.Settings(rows, bits, hnsw)
    finish("build", data, settings.describe(), lambda d, tell: building.run(d, settings, tell), json)


@click.command(short_help="Insert and search while an update runs.")
@data_file
@click.option("--rows", type=click.IntRange(min=100), default=50_000, help="Rows in the lists.")
@click.option("--backlog", type=click.IntRange(min=1), default=8000, help="Rows for the update to merge.")
@click.option("--seconds", type=click.FloatRange(min=1), default=20.0, help="How long to measure idle.")
@bits_of_a_code
@json_file
def concurrent(data: str, rows: int, backlog: int, seconds: float, bits: int, json: Path | None) -> None:
    """Insert and search while an update runs: throughput and p99, against idle."""
    settings = concurrency.Settings(rows, backlog, seconds, bits)
    finish("concurrent", data, settings.describe(), lambda d, tell: concurrency.run(d, settings, tell), json)


def finish(name: str, source: str, settings: dict[str, Any], work: Work, json: Path | None) -> None:
    """Measure, print the tables, and write the JSON."""
    data = datasets.load(source)
    records: list[Record] = []
    talk = Console(stderr=True)
    with environment.one_thread(), talk.status(name) as status:
        for record in work(data, status.update if talk.is_terminal else say):
            records.append(record)
            if not talk.is_terminal:
                say(stream_tables.one_line(record))
    made = Report(name, data.describe(), settings, environment.describe(), records)
    deliver(made, json, print_tables=stream_tables.print_tables)
