from __future__ import annotations

from typing import Any

import click

from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from foh_pg.arrays.threads import one_thread
from foh_pg.cli import options
from foh_pg.cli.database import session
from foh_pg.cli.output import print_json, print_table
from foh_pg.cli.progress import progress_bar
from foh_pg.postgres.connect import resolve
from foh_pg.quality import advise as measured


@click.command()
@click.argument("table", metavar="TABLE")
@click.option("--embedding", required=True, help="Its column with the vectors.")
@click.option("--labels", help="The column with the labels.")
@click.option("--sample", type=click.IntRange(100, 20_000), default=5000, help="Rows to measure on.")
@click.option(
    "--queries",
    type=click.IntRange(min=10),
    default=300,
    help="Rows that ask; at most a tenth of those with labels.",
)
@click.option("--bits", default="32,64,128", help="Lengths of codes to try.")
@options.dsn
@options.json
def advise(
    table: str,
    embedding: str,
    labels: str | None,
    sample: int,
    queries: int,
    bits: str,
    dsn: str | None,
    json: bool,
) -> None:
    """Say whether an index would help on a table, with how many bits, or what would be the better choice.

    Measures on a sample how often the first 10 and 100 rows share a label with the query, and how near they
    are. Only reads, needs
    no schema foh, and scans the table twice. On the whole table figures differ, most where labels are rare.
    TABLE is written as in SQL: shop.products.
    """
    lengths = options.read_bits(bits)
    with session(dsn, installed=False) as connection, progress_bar(table) as progress:
        if progress is not None:
            progress("sample", 0, 0)
        found = measured.read(connection, resolve(connection, table), embedding, labels, sample)
        advice = measured.nothing_to_learn(found)
        figures: list[measured.Figure] = []
        if advice is None:
            with one_thread():
                figures = list(measured.measure(found, lengths, queries, progress))
            advice = measured.decide(found, figures)
    result: dict[str, Any] = {
        "sample": found.describe(),
        "figures": [figure.describe() for figure in figures],
        "sizes": measured.SIZES,
        "choice": advice.choice,
        "bits": advice.bits,
        "reason": advice.reason,
        "sql": None if advice.bits is None else measured.statement(found, advice.bits),
    }
    if json:
        print_json(result)
    else:
        show(result)


def show(result: dict[str, Any]) -> None:
    print_table([{"": name.replace("_", " "), "value": value} for name, value in result["sample"].items()])
    click.echo()
    if result["figures"]:
        print_table(result["figures"])
        click.echo(f"\nAmong rows with labels. {PRECISION_IS}, {RECALL_IS}, {BOTH_IS}. {result['sizes']}\n")
    click.echo(result["reason"])
    if result["sql"]:
        click.echo(f"\n{result['sql']}")
