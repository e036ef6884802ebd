from __future__ import annotations

from typing import Any

import click
import psycopg

from foh_pg.cli import options
from foh_pg.cli.build import tell
from foh_pg.cli.database import connected
from foh_pg.cli.output import fail, print_json, say
from foh_pg.cli.progress import progress_bar
from foh_pg.errors import BusyError, FohError
from foh_pg.updater import BATCH_SIZE
from foh_pg.updater import update as run_update

BUSY = 4

batch_size_option = click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=BATCH_SIZE,
    help="Entries of the stream per transaction.",
)

NAMES = "SELECT name FROM foh.index WHERE status = 'ready' ORDER BY name"
UNBUILT = "SELECT name FROM foh.index WHERE status <> 'ready' ORDER BY name"


@click.command()
@options.index_names
@click.option("--all", "every", is_flag=True, help="All indexes of the database.")
@batch_size_option
@click.option(
    "--max-seconds", type=click.FloatRange(min=0), help="Begin no further batch after that, per index."
)
@click.option(
    "--full", is_flag=True, help="Read and encode the whole table again, for repair and comparison."
)
@options.dsn
@options.json
def update(
    names: tuple[str, ...],
    every: bool,
    batch_size: int,
    max_seconds: float | None,
    full: bool,
    dsn: str | None,
    json: bool,
) -> None:
    """Merge what was written into the lists, and learn from it. Safe to kill at any moment.

    Exit code 4 if an index was skipped because another updater is at work on it, and nothing else went wrong.
    """
    if bool(names) == every:
        raise click.UsageError("name the indexes to update, or pass --all")
    runs: list[dict[str, Any]] = []
    failed = busy = False
    unforeseen: Exception | None = None
    with connected(dsn) as connection:
        chosen = names or choose_all(connection)
        for name in chosen:
            try:
                with progress_bar(name) as progress:
                    run = run_update(
                        connection,
                        name,
                        batch_size=batch_size,
                        max_seconds=max_seconds,
                        full=full,
                        progress=progress,
                    )
            except BusyError as error:
                busy = True
                say(f"skipped: {error}")
                runs.append({"index": name, "skipped": str(error)})
            except (FohError, psycopg.Error) as error:
                # Without a connection the other indexes have no chance either.
                if connection.closed:
                    raise
                failed = True
                fail(error)
                runs.append({"index": name, "error": str(error)})
            except Exception as error:
                # A fault of ours, shown with its traceback once the other indexes have had their turn.
                unforeseen = unforeseen or error
                fail(error)
                runs.append({"index": name, "error": str(error)})
            else:
                tell(run)
                if run.more:
                    say(f"index {name!r}: time is up, entries are left in the stream")
                runs.append(run.as_dict())
    if json:
        print_json(runs)
    if unforeseen is not None:
        raise unforeseen
    if failed or busy:
        raise click.exceptions.Exit(1 if failed else BUSY)


def choose_all(connection: psycopg.Connection[dict[str, Any]]) -> list[str]:
    for row in connection.execute(UNBUILT):
        say(f"index {row['name']!r} is not built yet: run foh-pg build {row['name']}")
    return [row["name"] for row in connection.execute(NAMES)]
