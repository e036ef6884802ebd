from __future__ import annotations

from typing import Any

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.index import calls
from foh_pg.postgres.connect import resolve


@click.command()
@options.index_name
@click.option("--source", required=True, help="The table, as in SQL: shop.products.")
@click.option("--embedding", required=True, help="Its column with the vectors.")
@click.option(
    "--key", help="Columns of a unique index, to be the key instead of the primary key: tenant_id,id."
)
@click.option("--labels", help="The column with the labels.")
@click.option("--labels-from", help="Table of the labels, if another.")
@click.option("--labels-key", help="Column of that table with the key; several as in --key.")
@click.option("--include", metavar="A,B", help="Columns for conditions of searches: price,status.")
@click.option("--bits", type=int, help="Length of a code; 64 unless given.")
@click.option("--dimensions", type=int, help="Where the column does not say.")
@click.option("--distance", help="cosine (default), l2 or ip.")
@click.option("--option", "-o", multiple=True, metavar="NAME=VALUE", help="An option; may be repeated.")
@options.dsn
def create_index(
    name: str,
    source: str,
    embedding: str,
    include: str | None,
    option: tuple[str, ...],
    dsn: str | None,
    **arguments: Any,
) -> None:
    """Create an index on a table; every write is captured from then on. Prints its name."""
    for columns in ("key", "labels_key"):
        if arguments[columns] is not None:
            arguments[columns] = [name.strip() for name in arguments[columns].split(",")]
    if option:
        arguments["options"] = options.parse_pairs(option, "--option")
    if include:
        arguments["include"] = options.parse_names(include)
    with connected(dsn) as connection:
        if arguments["labels_from"] is not None:
            arguments["labels_from"] = resolve(connection, arguments["labels_from"])
        call = calls.create(name, resolve(connection, source), embedding, arguments)
        row = connection.execute(call.statement, call.parameters).fetchone()
        assert row is not None
    click.echo(row["create_index"])
