"""python -m lab search: every way to search the same rows, in one PostgreSQL."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from foh_pg.errors import InputError
from lab import data as datasets
from lab import environment
from lab.commands.delivery import data_file, deliver, json_file
from lab.dataset import Dataset
from lab.search import frontier
from lab.search.benchmark import Settings, measure_filters, run
from lab.search.line_up import NAMES
from lab.summary import Report


@click.command(short_help="Search the same rows with all that pgvector offers.")
@data_file
@click.option(
    "--queries",
    type=click.IntRange(min=10),
    default=500,
    help="Rows drawn as queries; the others are the base.",
)
@click.option("--rows", type=click.IntRange(min=100), help="Use at most this many rows, drawn at random.")
@click.option("--bits", type=click.IntRange(8, 1024), default=64, help="Of our codes.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the draw of queries.")
@click.option("--pg", "version", type=int, default=18, help="Version of the embedded PostgreSQL: 18 or 16.")
@click.option(
    "--shared-buffers", default="2GB", help="Of the server: a small value shows what a cold cache costs."
)
@click.option(
    "--extras/--no-extras",
    default=True,
    help="Also filters, rows that wait in the stream, and the paper's stages.",
)
@click.option(
    "--filters",
    is_flag=True,
    help="Nothing but searches with conditions, from all rows that pass to one in ten thousand.",
)
@click.option("--contenders", default="all", help=f"Who takes part: all, or some of {', '.join(NAMES)}.")
@click.option("--quick", is_flag=True, help="Two minutes: fewer contenders and rows.")
@json_file
@click.option(
    "--png",
    type=click.Path(path_type=Path),
    help="Write the frontier, P@10 over recall@10, as a picture to this file.",
)
def search(
    data: str,
    contenders: str,
    json: Path | None,
    png: Path | None,
    **given: Any,
) -> None:
    """Search the same rows with our index and with all that pgvector offers.

    Backend CPU and wall time per query, precision by label, mAP of what is returned, recall of the exact
    nearest, mean distance, size, time to build, and the paper's updating time and query time stage by stage,
    on a server of the benchmark's own. All contenders take turns, so that they see the same machine.
    """
    if png is not None:
        frontier.require()
    settings = Settings(**given, contenders=read_contenders(contenders))
    loaded = datasets.load(data)
    if settings.quick:
        settings = replace(
            settings, queries=min(settings.queries, 100), rows=min(settings.rows or 8000, 8000)
        )
    if settings.rows is not None and settings.rows + settings.queries >= len(loaded.X):
        settings = replace(settings, rows=None)
    result = _run(loaded, settings)
    if png is not None:
        frontier.write_png(result, png)
    deliver(result, json)


def _run(data: Dataset, settings: Settings) -> Report:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    talk = Console(stderr=True)
    with Progress(*columns, console=talk, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(data.name, total=None)
        measured = measure_filters if settings.filters else run
        records = list(measured(data, settings, lambda step: progress.update(task, description=step)))
    found = environment.describe()
    for record in records:
        if record["experiment"] == "server":
            found["versions"].update(record["versions"])
    return Report("search", datasets.describe(data), settings.describe(), found, records)


def read_contenders(text: str) -> tuple[str, ...]:
    """Read names of contenders; none for all of them.

    Examples
    --------
    >>> read_contenders("hnsw, exact")
    ('hnsw', 'exact')
    """
    names = tuple(part.strip() for part in text.split(","))
    if names == ("all",):
        return ()
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise InputError(f"--contenders takes all, or some of {', '.join(NAMES)}, not {unknown[0]!r}")
    return names
