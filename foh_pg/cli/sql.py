from __future__ import annotations

from typing import Annotated

import typer

from foh_pg.schema import migrations

app = typer.Typer(help="Print SQL instead of running it.", no_args_is_help=True, add_completion=False)


@app.callback()
def sql() -> None:
    pass


@app.command("migrate")
def migrate(
    to: Annotated[str, typer.Option("--to", help="Revision to end at.")] = "head",
    start: Annotated[str, typer.Option("--from", help="Revision that the database is at.")] = "base",
) -> None:
    """Print what `foh-pg migrate` runs, without a database: one script, one transaction."""
    typer.echo(migrations.offline(to, start), nl=False)
