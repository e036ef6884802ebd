from __future__ import annotations

from typing import Any

import click

from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from foh_pg.arrays.threads import one_thread
from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.progress import progress_bar
from foh_pg.clustering import Metric
from foh_pg.postgres.connect import resolve
from foh_pg.quality.advise import condition as conditions
from foh_pg.quality.advise import measuring, sampling, verdict


@click.command()
@click.argument("table", metavar="TABLE")
@click.option("--embedding", required=True, help="Its column with the vectors.")
@click.option("--labels", help="The column with the labels.")
@click.option(
    "--sample",
    type=click.IntRange(100, sampling.LARGEST_SAMPLE),
    help="Rows to measure on; unless given a quarter of the table, 5 000 at least and 20 000 at most.",
)
@click.option(
    "--distance",
    type=click.Choice(["cosine", "l2", "ip"]),
    help="By which rows are near; unless given that of the index that is there, else cosine.",
)
@options.match
@click.option("--verbose", is_flag=True, help="Show all figures, and what else they say.")
@options.dsn
@options.json
def advise(
    table: str,
    embedding: str,
    labels: str | None,
    sample: int | None,
    distance: Metric | None,
    match: dict[str, Any] | None,
    dsn: str | None,
    **shown: bool,
) -> None:
    """Say whether an index would help on a table, with how many bits, or what would be the better choice.

    Three lines: what to do, what you gain, and what it costs. They are measured on a sample: how often the
    first 10 rows share a label with the query, and how many of the 10 nearest that do are among them. Only
    reads, needs no schema foh, and scans the table twice.
    TABLE is written as in SQL: shop.products. With --match also: how many rows pass this condition, and how
    searches with it would be answered.
    """
    with connected(dsn, installed=False) as connection, progress_bar(table) as progress:
        if progress is not None:
            progress("sample", 0, 0)
        found = sampling.read(connection, resolve(connection, table), embedding, labels, sample)
        present = sampling.find_index(connection, found.table)
        metric: Metric = distance or (present[2] if present else "cosine")
        condition = None if match is None else conditions.ask(connection, found, match)
        advice = verdict.nothing_to_learn(found)
        figures: list[measuring.Figure] = []
        if advice is None:
            with one_thread():
                figures = list(measuring.measure(found, metric, progress))
            advice = verdict.decide(found, figures, present[1] if present else None)
    result = {
        "sample": found.describe(),
        "figures": [figure.describe() for figure in figures],
        "sizes": measuring.SIZES,
        "choice": advice.choice,
        "bits": advice.bits,
        "index": None if present is None else present[0],
        "use": advice.use if present is None else advice.for_index(*present[:2]),
        "gain": advice.gain,
        "cost": advice.cost,
        "notes": advice.notes,
        "condition": None if condition is None else condition.describe(),
        "sql": verdict.statement(found, advice.bits, metric, condition.include if condition else ())
        if advice.bits and present is None
        else None,
    }
    if shown["json"]:
        print_json(result)
    else:
        show(result, shown["verbose"])


def show(result: dict[str, Any], verbose: bool) -> None:
    click.echo(result["use"])
    click.echo(f"Gain: {result['gain']}")
    if result["cost"]:
        click.echo(f"Cost: {result['cost']}")
    if result["condition"]:
        click.echo(f"Condition: {result['condition']['text']}")
    if result["sql"]:
        click.echo(f"\n{result['sql']}")
    if not verbose and not result["figures"]:
        return
    if not verbose:
        say("--verbose shows all figures, and what else they say")
        return
    for note in result["notes"]:
        click.echo(f"\n{note}")
    click.echo()
    print_table([{"": name.replace("_", " "), "value": value} for name, value in result["sample"].items()])
    if result["figures"]:
        click.echo()
        print_table(result["figures"])
        click.echo(f"\nAmong rows with labels. {PRECISION_IS}, {RECALL_IS}, {BOTH_IS}. {result['sizes']}")
