from __future__ import annotations

import typer

from foh_pg.cli.options import Dsn, IndexName, Json
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.cli.session import session

VIOLATIONS = 3


def check(name: IndexName, dsn: Dsn = None, json: Json = False) -> None:
    """Verify what an index promises on the live data; one line per violation. Reads the whole table.

    Exit code 3 if there is any.
    """
    with session(dsn) as connection:
        rows = connection.execute("SELECT * FROM foh.check(%s)", [name]).fetchall()
    if json:
        print_json(rows)
    elif rows:
        print_table(rows)
    say(f"index {name!r}: {len(rows)} violations" if rows else f"index {name!r} keeps its promises")
    if rows:
        raise typer.Exit(VIOLATIONS)
