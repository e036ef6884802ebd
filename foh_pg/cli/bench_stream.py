"""foh-pg bench stream, growth, build and concurrent: what keeping an index up to date costs and brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from foh_pg.bench import building, environment, stream_tables
from foh_pg.bench import concurrent as concurrency
from foh_pg.bench import data as datasets
from foh_pg.bench import growth as growing
from foh_pg.bench import stream as streams
from foh_pg.bench.summary import Record, Report
from foh_pg.cli.bench_report import Data, JsonFile, deliver
from foh_pg.cli.output import say
from foh_pg.errors import InputError

Rows = Annotated[
    Optional[int],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
    typer.Option("--rows", min=100, help="Use at most this many rows, the first of the file."),
]
Bits = Annotated[int, typer.Option("--bits", min=8, max=1024, help="Length of a code.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Rows between two runs.")]
Forget = Annotated[float, typer.Option("--forget", min=0.01, max=1, help="The option of the index.")]

Work = Callable[[datasets.Dataset, streams.Say], Iterator[Record]]


def stream(
    data: Data,
    rows: Rows = None,
    batch: Batch = 2000,
    bits: Bits = 64,
    forget: Forget = 1.0,
    start: Annotated[int, typer.Option("--start", min=0, help="Rows that are built first.")] = 0,
    freeze: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--freeze", min=1, help="Rows after which the frozen model learns no more."),
    ] = None,
    queries: Annotated[int, typer.Option("--queries", min=1, help="Rows that ask.")] = 500,
    ask: Annotated[
        str, typer.Option("--ask", help="Who asks: random rows that never arrive, or those that arrive next.")
    ] = "random",
    checkpoints: Annotated[
        int, typer.Option("--checkpoints", min=1, help="Comparisons with --full and a fresh model.")
    ] = 3,
    json: JsonFile = None,
) -> None:
    """Let rows arrive in order: quality and cost after each batch, online, frozen and trained afresh."""
    settings = streams.Settings(rows, batch, bits, forget, start, freeze, queries, ask, checkpoints)
    finish("stream", data, settings.describe(), lambda d, tell: streams.run(d, settings, tell), json)


def growth(
    data: Data,
    sizes: Annotated[str, typer.Option("--sizes", help="Rows of the two tables.")] = "60000,600000",
    batch: Batch = 2000,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs at each size.")] = 8,
    built: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--built", min=100, help="Rows that are built; the others stream in. All unless given."),
    ] = None,
    settle: Annotated[int, typer.Option("--settle", min=1, help="Rows per run while growing.")] = 10_000,
    bits: Bits = 64,
    forget: Forget = 1.0,
    json: JsonFile = None,
) -> None:
    """Run the same update at two sizes of the table, and --full at both."""
    try:
        small, large = sorted(int(part) for part in sizes.split(","))
    except ValueError:
        raise InputError(f"--sizes takes two numbers like 60000,600000, not {sizes!r}") from None
    settings = growing.Settings((small, large), batch, runs, built, settle, bits, forget)
    finish("growth", data, settings.describe(), lambda d, tell: growing.run(d, settings, tell), json)


def build(
    data: Data,
    rows: Rows = None,
    bits: Bits = 64,
    hnsw: Annotated[bool, typer.Option(help="Also build pgvector's HNSW, which takes long.")] = True,
    json: JsonFile = None,
) -> None:
    """Build an index on a full table: time and peak memory, against pgvector's HNSW."""
    settings = building.Settings(rows, bits, hnsw)
    finish("build", data, settings.describe(), lambda d, tell: building.run(d, settings, tell), json)


def concurrent(
    data: Data,
    rows: Annotated[int, typer.Option("--rows", min=100, help="Rows in the lists.")] = 50_000,
    backlog: Annotated[int, typer.Option("--backlog", min=1, help="Rows for the update to merge.")] = 8000,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="How long to measure idle.")] = 20.0,
    bits: Bits = 64,
    json: JsonFile = None,
) -> None:
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


def mount(app: typer.Typer) -> None:
    """Put the commands into the group `bench`."""
    for name, command in (
        ("stream", stream),
        ("growth", growth),
        ("build", build),
        ("concurrent", concurrent),
    ):
        app.command(name)(command)
