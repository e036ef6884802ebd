from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from foh_pg.cli.database import session
from foh_pg.cli.options import Dsn, Json
from foh_pg.cli.output import print_json, print_table, say
from foh_pg.errors import IndexNotFound

UNHEALTHY = 5

# The last word of an updater on the index: of the runs that ended, the newest.
HEALTH = """
SELECT s.name, s.status, s.version, s.stream, s.deferred, s.stale, s.lag_seconds, r.finished_at AS last_run,
       r.error
FROM foh.index_stat s
JOIN foh.index i ON i.name = s.name
LEFT JOIN LATERAL (
    SELECT x.finished_at, x.error FROM foh.run x
    WHERE x.index = i.id AND x.kind <> 'evaluate' AND x.finished_at IS NOT NULL
    ORDER BY x.id DESC LIMIT 1) r ON true
WHERE s.name = ANY (%(names)s::text[]) OR %(names)s::text[] IS NULL
ORDER BY s.name
"""


def health(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
        typer.Argument(help="Only these indexes.", metavar="[INDEX]...", show_default=False),
    ] = None,
    max_lag: Annotated[
        float, typer.Option("--max-lag", min=0, help="Seconds that an entry may wait in the stream.")
    ] = 600.0,
    dsn: Dsn = None,
    json: Json = False,
) -> None:
    """Say whether the indexes are kept up to date: built, nothing waiting too long, no error.

    Exit code 0 if all are well, 5 if one is not, 1 if that could not be found out.
    """
    with session(dsn) as connection:
        rows = connection.execute(HEALTH, {"names": names or None}).fetchall()
    missing = set(names or ()) - {row["name"] for row in rows}
    if missing:
        raise IndexNotFound(f"there is no index {min(missing)!r}: foh-pg status lists those there are")
    for row in rows:
        row["problems"] = problems(row, max_lag)
    if json:
        print_json({"healthy": not any(row["problems"] for row in rows), "indexes": rows})
    elif rows:
        shown = [{**row, "problems": "; ".join(row["problems"]) or "none"} for row in rows]
        print_table(shown, ("name", "version", "stream", "lag_seconds", "last_run", "problems"))
    else:
        say("no index yet: foh-pg create-index --help")
    if any(row["problems"] for row in rows):
        raise typer.Exit(UNHEALTHY)


def problems(row: dict[str, Any], max_lag: float) -> list[str]:
    found = []
    if row["status"] == "building":
        found.append(f"not built yet: run foh-pg build {row['name']}")
    elif row["status"] != "ready":
        found.append(row["status"])
    if row["lag_seconds"] > max_lag:
        found.append(
            f"an entry has waited {row['lag_seconds']:.0f} s in the stream, more than {max_lag:.0f}: "
            "is an updater running?"
        )
    if row["error"]:
        found.append(f"the last run failed: {row['error']}")
    return found
