from __future__ import annotations

import click

from foh_pg.cli import options
from foh_pg.cli.database import session
from foh_pg.cli.output import print_json, say
from foh_pg.index import calls


@click.command()
@options.index_name
@options.dsn
@options.json
def repair(name: str, dsn: str | None, json: bool) -> None:
    """Queue what the triggers did not see: after replication, a data-only restore, ATTACH PARTITION.

    Compares the whole table with the index in one snapshot; the next update takes the rest from the stream.
    """
    call = calls.invoke("repair", {"name": name})
    with session(dsn) as connection:
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
