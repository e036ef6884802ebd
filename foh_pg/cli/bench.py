"""foh-pg bench: what this brings on your data, measured."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from foh_pg.bench import accuracy as measured
from foh_pg.bench import data as datasets
from foh_pg.bench import environment, methods, plots
from foh_pg.bench.protocol import Protocol
from foh_pg.bench.summary import Report
from foh_pg.cli import bench_stream
from foh_pg.cli.bench_report import Data, HtmlFile, JsonFile, deliver
from foh_pg.cli.bench_search import search
from foh_pg.cli.options import read_bits

app = typer.Typer(
    name="bench",
    help="Measure what the index brings on your data, against its rivals.",
    no_args_is_help=True,
    add_completion=False,
)
bench_stream.mount(app)

# Enough to see who wins, in two minutes on two cores.
QUICK = Protocol(queries=300, stream=5000, batch=1000, rows=12_000)
QUICK_BITS = "32,64"


app.command("search")(search)


@app.callback()
def bench() -> None:
    """Keep `bench` a group although it may have one command only."""


@app.command("accuracy")
def accuracy(
    data: Data,
    bits: Annotated[str, typer.Option(help="Lengths of codes.")] = "16,32,48,64,128",
    learners: Annotated[str, typer.Option(help="What to compare, by name, or all.")] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many draws of queries and stream.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 0,
    queries: Annotated[int, typer.Option(min=1, help="Queries per seed.")] = 1000,
    stream: Annotated[int, typer.Option(min=2, help="Rows to learn from.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, help="Rows per batch.")] = 2000,
    rows: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
        typer.Option(min=20, help="Use at most this many rows, drawn at random."),
    ] = None,
    extras: Annotated[
        bool, typer.Option(help="Also ablations, pools, updating of centers and labels in order.")
    ] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two minutes: one seed, 32,64 bits, few rows.")
    ] = False,
    json: JsonFile = None,
    html: HtmlFile = None,
) -> None:
    """Rank a base by codes: mAP, precision, recall and training time of every method.

    Prints tables. Figures come with data set, seeds, versions and machine.
    """
    if html is not None:
        plots.require()
    protocol = Protocol(queries, stream, batch, rows)
    if quick:
        protocol, bits, seeds = QUICK, QUICK_BITS if bits == "16,32,48,64,128" else bits, 1
    settings = measured.Settings(
        bits=read_bits(bits),
        seeds=range(first_seed, first_seed + seeds),
        methods=methods.choose([name.strip() for name in learners.split(",")]),
        protocol=protocol,
        extras=extras,
    )
    loaded = datasets.load(data)
    with environment.one_thread():
        result = _run(loaded, settings)
    deliver(result, json, html)


def _run(data: datasets.Dataset, settings: measured.Settings) -> Report:
    talk = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    records: list[measured.Record] = []
    with Progress(*columns, console=talk, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(data.name, total=measured.count_steps(data, settings))
        for step in measured.plan(data, settings):
            progress.update(task, description=step.description)
            records.extend(step.run())
            progress.advance(task)
    return Report("accuracy", data.describe(), settings.describe(), environment.describe(), records)
