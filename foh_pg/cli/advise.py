from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from foh_pg.bench import environment
from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, Json, read_bits
from foh_pg.cli.output import print_json, print_table
from foh_pg.cli.progress import progress_bar
from foh_pg.postgres.connect import resolve
from foh_pg.quality import advise as measured


def advise(
    table: Annotated[
        str, typer.Argument(help="The table, as in SQL: shop.products.", metavar="TABLE", show_default=False)
    ],
    embedding: Annotated[str, typer.Option("--embedding", help="Its column with the vectors.")],
    labels: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
        typer.Option("--labels", help="The column with the labels."),
    ] = None,
    sample: Annotated[int, typer.Option("--sample", min=100, max=20_000, help="Rows to measure on.")] = 5000,
    queries: Annotated[
        int, typer.Option("--queries", min=10, help="Rows that ask; at most a tenth of those with labels.")
    ] = 300,
    bits: Annotated[str, typer.Option("--bits", help="Lengths of codes to try.")] = "32,64,128",
    dsn: Dsn = None,
    json: Json = False,
) -> None:
    """Say whether an index would help on a table, with how many bits, or what would be the better choice.

    Measures on a sample how often the first 10 and 100 rows share a label with the query. Only reads, needs
    no schema foh, and scans the table twice. On the whole table figures differ, most where labels are rare.
    """
    lengths = read_bits(bits)
    with session(dsn, installed=False) as connection, progress_bar(table) as progress:
        if progress is not None:
            progress("sample", 0, 0)
        found = measured.read(connection, resolve(connection, table), embedding, labels, sample)
        advice = measured.nothing_to_learn(found)
        figures: list[measured.Figure] = []
        if advice is None:
            with environment.one_thread():
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
    typer.echo()
    if result["figures"]:
        print_table(result["figures"])
        typer.echo(f"\nAmong rows with labels. {result['sizes']}\n")
    typer.echo(result["reason"])
    if result["sql"]:
        typer.echo(f"\n{result['sql']}")
