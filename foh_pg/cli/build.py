from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, say
from foh_pg.cli.progress import progress_bar
from foh_pg.updater import Run, rebuild, rollback
from foh_pg.updater import build as run_build


@click.command()
@options.index_name
@click.option("--again", is_flag=True, help="Train a new model for an index that is built already.")
@click.option("--version", type=int, help="Return to the model of that version; foh.model has those kept.")
@options.dsn
@options.json
def build(name: str, again: bool, version: int | None, dsn: str | None, json: bool) -> None:
    """Place the rows that a table has: train on a sample of them, encode and place each once.

    The table can be written to meanwhile, and searches read the table itself until the build is done. A build
    that was interrupted goes on where it was when the command is run again.

    With --again a new model is trained, with --version an earlier one is put back. Then all rows are encoded
    and placed by that model, while the present one goes on serving.
    """
    if again and version is not None:
        raise click.UsageError("--again trains a new model, --version takes an earlier one: pass one of them")
    with connected(dsn) as connection, progress_bar(name) as progress:
        if version is not None:
            run = rollback(connection, name, version, progress=progress)
        else:
            run = (rebuild if again else run_build)(connection, name, progress=progress)
    tell(run)
    if json:
        print_json(run.as_dict())


def tell(run: Run) -> None:
    """What a run did, and what a person should know."""
    if run.from_version == run.to_version:
        did = f"nothing to do, version {run.to_version}"
    else:
        seconds = sum(run.phases.values())
        did = f"{run.kind} to version {run.to_version}, {run.rows} rows"
        if run.kind != "update":
            did += f" in {run.lists} lists"
        elif run.rows_encoded:
            did += f", {run.rows_encoded} encoded again in {run.lists} lists"
        did += f", {seconds:.1f} s"
    for line in (did, *run.notes):
        say(f"index {run.index!r}: {line}")
