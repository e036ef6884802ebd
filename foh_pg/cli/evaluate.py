from __future__ import annotations

from typing import Annotated, Any

import typer

from foh_pg.cli.options import Dsn, IndexName, Json
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.progress import progress_bar
from foh_pg.cli.session import session
from foh_pg.updater import Run
from foh_pg.updater import evaluate as run_evaluate
from foh_pg.updater.evaluate import QUERIES


def evaluate(
    name: IndexName,
    queries: Annotated[
        int, typer.Option("--queries", min=1, help="Rows that ask, of those that never train.")
    ] = QUERIES,
    dsn: Dsn = None,
    json: Json = False,
) -> None:
    """Measure the index by label: P@10, P@100, mAP@100, beside the exact distance and random hyperplanes.

    Reads the whole table once. The figures are kept; `foh-pg status INDEX` shows how they change.
    """
    with session(dsn) as connection, progress_bar(name) as progress:
        run = run_evaluate(connection, name, queries=queries, progress=progress)
    if json:
        print_json(run.as_dict())
    else:
        print_table(lines(run))
    seconds = sum(run.phases.values())
    say(
        f"index {name!r}: version {run.to_version}, {run.rows} queries on {run.metrics['table']} rows, "
        f"{seconds:.1f} s"
    )


def lines(run: Run) -> list[dict[str, Any]]:
    names = {
        "index": f"index, version {run.to_version}",
        "exact": "exact distance",
        "random": "random hyperplanes",
    }
    return [
        {"": title, **{column: run.metrics[way][key] for key, column in COLUMNS.items()}}
        for way, title in names.items()
    ]


COLUMNS = {"p10": "P@10", "p100": "P@100", "map100": "mAP@100"}
