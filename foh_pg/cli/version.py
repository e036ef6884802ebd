from __future__ import annotations

import typer

import foh_pg
from foh_pg.cli.options import Json
from foh_pg.cli.output import print_json
from foh_pg.schema import present


def version(json: Json = False) -> None:
    """Print the version of the package and the revision of schema foh it was written for."""
    if json:
        print_json({"version": foh_pg.__version__, "revision": present.head()})
    else:
        typer.echo(f"foh-pg {foh_pg.__version__} (schema revision {present.head()})")
