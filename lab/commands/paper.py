"""python -m lab paper: the tables of the paper, on other data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from foh_pg.arrays.threads import one_thread
from foh_pg.cli.output import say
from lab import data as datasets
from lab.accuracy import experiments, methods
from lab.commands.accuracy import run_plan
from lab.commands.delivery import data_file, deliver, json_file, read_bits
from lab.dataset import Dataset
from lab.protocol import Protocol
from lab.search import benchmark
from lab.summary import Record


@click.command(short_help="Print the tables of the paper on the data at hand.")
@data_file
@click.option("--bits", default="16,32,48,64,128", help="Lengths of codes.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="How many draws of queries and stream.")
@click.option("--queries", type=click.IntRange(min=1), default=1000, help="Queries per seed.")
@click.option("--stream", type=click.IntRange(min=2), default=20_000, help="Rows to learn from.")
@click.option("--batch", type=click.IntRange(min=1), default=2000, help="Rows per batch.")
@click.option("--rows", type=click.IntRange(min=20), help="Use at most this many rows, drawn at random.")
@click.option(
    "--times/--no-times",
    default=True,
    help="Also updating time and query time, which are measured in a PostgreSQL.",
)
@json_file
def paper(data: str, bits: str, seeds: int, times: bool, json: Path | None, **sizes: Any) -> None:
    """Print the tables of the paper on the data at hand.

    Updating time and query time, mAP of all learners, training time, variants of FOH, pools, and how often
    the centers are renewed. The defaults are the paper's protocol for CIFAR-10.
    """
    settings = experiments.Settings(
        bits=read_bits(bits),
        seeds=range(seeds),
        methods=methods.choose(["all"]),
        protocol=Protocol(**sizes),
        extras=experiments.EXTRAS_OF_THE_PAPER,
    )
    loaded = datasets.load(data)
    with one_thread():
        result = run_plan(loaded, settings, "paper")
    if times:
        result = replace(result, records=[*_times(loaded, settings), *result.records])
    deliver(result, json)


def _times(data: Dataset, settings: experiments.Settings) -> list[Record]:
    protocol, found = settings.protocol, []
    for bits in settings.extra_bits:
        chosen = benchmark.Settings(
            queries=min(protocol.queries, len(data.X) // 10), rows=protocol.rows, bits=bits
        )
        for record in benchmark.measure_stages(data, chosen, say):
            found.append({**record, "bits": bits})
    return found
