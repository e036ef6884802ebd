from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, IndexName, parse_pairs
from foh_pg.index import calls
from foh_pg.postgres.connect import resolve

# typer reads the annotations at run time, on Python 3.10 too.
Text = Optional[str]  # noqa: UP045
Number = Optional[int]  # noqa: UP045
Real = Optional[float]  # noqa: UP045


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
        "options": parse_pairs(option, "--option") if option else None,
    }
    with session(dsn) as connection:
        if labels_from is not None:
            arguments["labels_from"] = resolve(connection, labels_from)
        call = calls.create(name, resolve(connection, source), embedding, arguments)
        row = connection.execute(call.statement, call.parameters).fetchone()
        assert row is not None
    typer.echo(row["create_index"])
