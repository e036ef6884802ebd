from __future__ import annotations

import click

from foh_pg.schema import migrations


@click.group()
def sql() -> None:
    """Print SQL instead of running it."""


@sql.command()
@click.option("--to", default="head", help="Revision to end at.")
@click.option("--from", "start", default="base", help="Revision that the database is at.")
@click.option("--owner", metavar="ROLE", help="The role that owns the tables, if another one runs it.")
def migrate(to: str, start: str, owner: str | None) -> None:
    """Print what `foh-pg migrate` runs, without a database: one script, one transaction."""
    click.echo(migrations.offline(to, start, owner), nl=False)
