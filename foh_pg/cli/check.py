from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import psycopg

from foh_pg.cli import options
from foh_pg.cli.database import connected
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.progress import progress_bar
from foh_pg.index import calls

if TYPE_CHECKING:
    from foh_pg.runs.run import Progress

VIOLATIONS = 3

# Rows that are compared at a time: what a part needs of memory and of temporary files follows from it.
ROWS_PER_PART = 1_000_000
MAX_PARTS = 64

# As the planner or the lists have it, whichever is more: an exact count would take as long as a part.
ROWS = """
SELECT greatest(s.rows, (SELECT sum(c.reltuples) FROM pg_catalog.pg_partition_tree(i.source) t
                         JOIN pg_catalog.pg_class c ON c.oid = t.relid WHERE t.isleaf), 0)::bigint AS rows
FROM foh.index i JOIN foh.index_stat s ON s.name = i.name WHERE i.name = %s
"""
PART = "SELECT * FROM foh.check(%s, %s, %s)"


@click.command()
@options.index_name
@click.option("--repair", is_flag=True, help="Queue what the triggers did not see for the next update.")
@options.dsn
@options.json
def check(name: str, repair: bool, dsn: str | None, json: bool) -> None:
    """Verify what an index promises on the live data; one line per violation. Reads the whole table.

    Exit code 3 if there is any.

    With --repair the rows in which table and index differ are queued instead of listed: after replication, a
    data-only restore, ATTACH PARTITION. The next update takes them from the stream.
    """
    if repair:
        queue_differences(name, dsn, json)
        return
    with connected(dsn) as connection, progress_bar(name) as progress:
        rows = violations(connection, name, progress)
    if json:
        print_json(rows)
    elif rows:
        print_table(rows)
    say(f"index {name!r}: {len(rows)} violations" if rows else f"index {name!r} keeps its promises")
    if rows:
        raise click.exceptions.Exit(VIOLATIONS)


def queue_differences(name: str, dsn: str | None, json: bool) -> None:
    """Compare the whole table with the index in one snapshot, and queue the keys in which they differ."""
    call = calls.invoke("repair", {"name": name})
    with connected(dsn) as connection:
        row = connection.execute(call.statement, call.parameters).fetchone()
        assert row is not None
    if json:
        print_json(row)
    if not any(row.values()):
        say(f"index {name!r} has all that its table has")
        return
    say(
        f"index {name!r}: queued {row['missing']} rows it did not have, {row['gone']} that are gone and "
        f"{row['changed']} that changed; run foh-pg update {name}"
    )


def violations(
    connection: psycopg.Connection[dict[str, Any]], name: str, progress: Progress | None
) -> list[dict[str, Any]]:
    """Check part after part, each in a snapshot of its own; the first tells what concerns no single row."""
    counted = connection.execute(ROWS, [name]).fetchone()
    estimate = 0 if counted is None else counted["rows"]
    parts = max(1, min(MAX_PARTS, -(-estimate // ROWS_PER_PART)))
    found: list[dict[str, Any]] = []
    for part in range(parts):
        if progress is not None:
            progress("check", part, parts)
        found += connection.execute(PART, [name, part, parts]).fetchall()
    return found
