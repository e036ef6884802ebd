"""foh-pg bench search: every way to search the same rows, in one PostgreSQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from foh_pg.bench import data as datasets
from foh_pg.bench import environment, plots, report
from foh_pg.bench.search.run import Settings, run
from foh_pg.bench.summary import Report


def search(
    data: Annotated[
        str,
        typer.Option(
            help="digits, fashion-mnist, or a .npz (X and Y), .csv or .parquet file.", metavar="FILE"
        ),
    ],
    queries: Annotated[
        int, typer.Option(min=10, help="Rows drawn as queries; the others are the base.")
    ] = 500,
    rows: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
        typer.Option(min=100, help="Use at most this many rows, drawn at random."),
    ] = None,
    bits: Annotated[int, typer.Option(min=8, max=1024, help="Of our codes.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw of queries.")] = 0,
    pg: Annotated[int, typer.Option(help="Version of the embedded PostgreSQL: 18 or 16.")] = 18,
    shared_buffers: Annotated[
        str, typer.Option(help="Of the server: a small value shows what a cold cache costs.")
    ] = "512MB",
    extras: Annotated[
        bool, typer.Option(help="Also filters, policies, rows in the stream and 4096 dimensions.")
    ] = True,
    quick: Annotated[bool, typer.Option("--quick", help="Two minutes: fewer contenders and rows.")] = False,
    json: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--json", help="Write everything measured to this file; - for standard output."),
    ] = None,
    html: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--html", help="Write a page with tables and plots to this file."),
    ] = None,
) -> None:
    """Search the same rows with our index and with all that pgvector offers.

    Backend CPU and wall time per query, precision by label, recall of the exact nearest, size and time to
    build, on a server of the benchmark's own. All contenders take turns, so that they see the same machine.
    """
    if html is not None:
        plots.require()
    loaded = datasets.load(data)
    if quick:
        queries, rows = min(queries, 100), min(rows or 8000, 8000)
    settings = Settings(queries, rows, bits, seed, pg, shared_buffers, extras, quick)
    result = _run(loaded, settings)
    if json is not None and str(json) == "-":
        typer.echo(report.to_json(result))
        return
    if json is not None:
        report.write_json(result, json)
    if html is not None:
        report.write_html(result, html)
    report.print_tables(result, Console(width=None if sys.stdout.isatty() else 200, highlight=False))


def _run(data: datasets.Dataset, settings: Settings) -> Report:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    talk = Console(stderr=True)
    with Progress(*columns, console=talk, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(data.name, total=None)
        records = list(run(data, settings, lambda step: progress.update(task, description=step)))
    return Report("search", data.describe(), settings.describe(), environment.describe(), records)
