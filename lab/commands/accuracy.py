"""python -m lab accuracy: how well codes rank by label, with every learner."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from foh_pg.arrays.threads import one_thread
from lab import data as datasets
from lab import environment
from lab.accuracy import experiments as measured
from lab.accuracy import methods
from lab.commands.delivery import data_file, deliver, json_file, read_bits
from lab.dataset import Dataset
from lab.protocol import Protocol
from lab.summary import Report

# Enough to see who wins, in two minutes on two cores.
QUICK = Protocol(queries=300, stream=5000, batch=1000, rows=12_000)
QUICK_BITS = "32,64"


@click.command(short_help="Rank a base by codes, with every method.")
@data_file
@click.option("--bits", default="16,32,48,64,128", help="Lengths of codes.")
@click.option("--learners", default="all", help="What to compare, by name, or all.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, help="How many draws of queries and stream.")
@click.option("--first-seed", type=click.IntRange(min=0), default=0, help="The first of the seeds.")
@click.option("--queries", type=click.IntRange(min=1), default=1000, help="Queries per seed.")
@click.option("--stream", type=click.IntRange(min=2), default=20_000, help="Rows to learn from.")
@click.option("--batch", type=click.IntRange(min=1), default=2000, help="Rows per batch.")
@click.option("--rows", type=click.IntRange(min=20), help="Use at most this many rows, drawn at random.")
@click.option(
    "--extras/--no-extras",
    default=True,
    help="Also ablations, pools, updating of centers and labels in order.",
)
@click.option("--quick", is_flag=True, help="Two minutes: one seed, 32,64 bits, few rows.")
@json_file
def accuracy(
    data: str,
    bits: str,
    learners: str,
    seeds: int,
    first_seed: int,
    extras: bool,
    quick: bool,
    json: Path | None,
    **sizes: Any,
) -> None:
    """Rank a base by codes: mAP, precision, recall and training time of every method.

    Prints tables. Figures come with data set, seeds, versions and machine.
    """
    protocol = Protocol(**sizes)
    if quick:
        protocol, bits, seeds = QUICK, QUICK_BITS if bits == "16,32,48,64,128" else bits, 1
    settings = measured.Settings(
        bits=read_bits(bits),
        seeds=range(first_seed, first_seed + seeds),
        methods=methods.choose([name.strip() for name in learners.split(",")]),
        protocol=protocol,
        extras=measured.EXTRAS if extras else (),
    )
    loaded = datasets.load(data)
    with one_thread():
        result = run_plan(loaded, settings)
    deliver(result, json)


def run_plan(data: Dataset, settings: measured.Settings, name: str = "accuracy") -> Report:
    """Make every step of the plan, and show how far it is."""
    talk = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    records: list[measured.Record] = []
    with Progress(*columns, console=talk, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task(data.name, total=measured.count_steps(data, settings))
        for step in measured.plan(data, settings):
            progress.update(task, description=step.description)
            records.extend(step.run())
            progress.advance(task)
    return Report(name, datasets.describe(data), settings.describe(), environment.describe(), records)
