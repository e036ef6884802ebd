from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any, Optional

import typer
from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.cli.options import Dsn, IndexName
from foh_pg.cli.session import session

# typer reads the annotations at run time, on Python 3.10 too.
Text = Optional[str]  # noqa: UP045
Number = Optional[int]  # noqa: UP045
Real = Optional[float]  # noqa: UP045

REGCLASS = {"source", "labels_from"}


def create_index(
    name: IndexName,
    source: Annotated[str, typer.Option("--source", help="The table, as in SQL: shop.products.")],
    embedding: Annotated[str, typer.Option("--embedding", help="Its column with the vectors.")],
    labels: Annotated[Text, typer.Option("--labels", help="The column with the labels.")] = None,
    labels_from: Annotated[
        Text, typer.Option("--labels-from", help="Table of the labels, if another.")
    ] = None,
    labels_key: Annotated[
        Text, typer.Option("--labels-key", help="Column of that table with the key.")
    ] = None,
    bits: Annotated[Number, typer.Option("--bits", help="Length of a code; 64 unless given.")] = None,
    dimensions: Annotated[Number, typer.Option("--dimensions", help="Where the column does not say.")] = None,
    distance: Annotated[Text, typer.Option("--distance", help="cosine (default), l2 or ip.")] = None,
    centers: Annotated[
        Number, typer.Option("--centers", help="Number of lists; grows with the table.")
    ] = None,
    homes: Annotated[Number, typer.Option("--homes", help="Lists that a row is in.")] = None,
    neighbors: Annotated[
        Number, typer.Option("--neighbors", help="Further rows per list (the paper's v).")
    ] = None,
    probes: Annotated[Number, typer.Option("--probes", help="Lists that a query reads.")] = None,
    label_weight: Annotated[
        Real, typer.Option("--label-weight", help="How far codes lean on labels.")
    ] = None,
    learner: Annotated[Text, typer.Option("--learner", help="Learner; foh unless given.")] = None,
    option: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--option", "-o", help="Any other option, as NAME=VALUE; may be repeated.", metavar="NAME=VALUE"
        ),
    ] = None,
    dsn: Dsn = None,
) -> None:
    """Create an index on a table; every write is captured from then on. Prints its name."""
    arguments: dict[str, Any] = {
        "name": name,
        "source": source,
        "embedding": embedding,
        "labels": labels,
        "labels_from": labels_from,
        "labels_key": labels_key,
        "bits": bits,
        "dimensions": dimensions,
        "distance": distance,
        "centers": centers,
        "homes": homes,
        "neighbors": neighbors,
        "probes": probes,
        "label_weight": label_weight,
        "learner": learner,
        "options": Jsonb(parse_options(option)) if option else None,
    }
    # What was not given is left to the SQL function, the one place where defaults are written down.
    given = {argument: value for argument, value in arguments.items() if value is not None}
    with session(dsn) as connection:
        row = connection.execute(call(given), given).fetchone()
        assert row is not None
    typer.echo(row["create_index"])


def call(given: dict[str, Any]) -> sql.Composed:
    passed = sql.SQL(", ").join(
        sql.SQL("{} => {}{}").format(
            sql.Identifier(argument),
            sql.Placeholder(argument),
            sql.SQL("::text::regclass" if argument in REGCLASS else ""),
        )
        for argument in given
    )
    return sql.SQL("SELECT foh.create_index({})").format(passed)


def parse_options(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be, else text: ``probes=8``, ``triggers=row``."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not of the form NAME=VALUE", param_hint="--option")
        try:
            options[name] = jsonlib.loads(value)
        except ValueError:
            options[name] = value
    return options
