"""python -m lab stream: what keeping an index up to date costs and brings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from foh_pg.arrays.threads import one_thread
from foh_pg.cli.output import say
from lab import data as datasets
from lab import environment
from lab.commands.delivery import data_file, deliver, json_file
from lab.stream import benchmark as streams
from lab.stream import stream_tables
from lab.summary import Record, Report


@click.command(short_help="Let rows arrive in order, and learn from them.")
@data_file
@click.option(
    "--rows", type=click.IntRange(min=100), help="Use at most this many rows, the first of the file."
)
@click.option("--batch", type=click.IntRange(min=1), default=2000, help="Rows between two runs.")
@click.option("--bits", type=click.IntRange(8, 1024), default=64, help="Length of a code.")
@click.option("--forget", type=click.FloatRange(0.01, 1), default=1.0, help="The option of the index.")
@click.option("--start", type=click.IntRange(min=0), default=0, help="Rows that are built first.")
@click.option(
    "--freeze", type=click.IntRange(min=1), help="Rows after which the frozen model learns no more."
)
@click.option("--queries", type=click.IntRange(min=1), default=500, help="Rows that ask.")
@click.option(
    "--ask", default="random", help="Who asks: random rows that never arrive, or those that arrive next."
)
@click.option(
    "--checkpoints", type=click.IntRange(min=1), default=3, help="Comparisons with --full and a fresh model."
)
@json_file
def stream(data: str, json: Path | None, **given: Any) -> None:
    """Let rows arrive in order: quality and cost after each batch, online, frozen and trained afresh."""
    settings = streams.Settings(**given)
    loaded = datasets.load(data)
    records: list[Record] = []
    talk = Console(stderr=True)
    with one_thread(), talk.status("stream") as status:
        for record in streams.run(loaded, settings, status.update if talk.is_terminal else say):
            records.append(record)
            if not talk.is_terminal:
                say(stream_tables.one_line(record))
    made = Report("stream", datasets.describe(loaded), settings.describe(), environment.describe(), records)
    deliver(made, json)
