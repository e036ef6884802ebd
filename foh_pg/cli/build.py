from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, say
from foh_pg.cli.progress import progress_bar
from foh_pg.updater import Run
from foh_pg.updater import build as run_build
from foh_pg.updater import rebuild as run_rebuild
from foh_pg.updater import rollback as run_rollback


@click.command()
@options.index_name
@click.option("--again", is_flag=True, help="Train a new model for an index that is built already.")
@options.dsn
@options.json
def build(name: str, again: bool, dsn: str | None, json: bool) -> None:
    """Place the rows that a table has: train on a sample of them, encode and place each once.

    The table can be written to meanwhile, and searches read the table itself until the build is done. A build
    that was interrupted goes on where it was when the command is run again.

    With --again a new model is trained and all rows are placed by it, while the present one goes on serving.
    """
    work = run_rebuild if again else run_build
    with connected(dsn) as connection, progress_bar(name) as progress:
        run = work(connection, name, progress=progress)
    report(run, json)


@click.command()
@options.index_name
@click.option("--to", type=int, required=True, help="Version to return to; foh.model has those kept.")
@options.dsn
@options.yes
@options.json
def rollback(name: str, to: int, dsn: str | None, yes: bool, json: bool) -> None:
    """Put the model of an earlier version back. Every row of the table is read and encoded again."""
    with connected(dsn) as connection:
        if not yes:
            click.confirm(
                f"Returning index {name!r} to version {to} reads and encodes every row again. Go on?",
                abort=True,
                err=True,
            )
        with progress_bar(name) as progress:
            run = run_rollback(connection, name, to, progress=progress)
    report(run, json)


def report(run: Run, json: bool) -> None:
    """A few lines about a run on standard error; all of it as JSON on standard output too."""
    tell(run)
    if json:
        print_json(run.as_dict())


def tell(run: Run) -> None:
    """What a run did, and what a person should know."""
    if run.from_version == run.to_version:
        did = f"nothing to do, version {run.to_version}"
    else:
        seconds = sum(run.phases.values())
        did = f"{run.kind} to version {run.to_version}, {run.rows} rows, "
        did += f"{run.rows_encoded} encoded in {run.lists} lists, {seconds:.1f} s"
    for line in (did, *run.notes):
        say(f"index {run.index!r}: {line}")
