from __future__ import annotations

import click

import foh_pg
from foh_pg.cli import options
from foh_pg.cli.output import print_json
from foh_pg.schema import installed


@click.command()
@options.json
def version(json: bool) -> None:
    """Print the version of the package and the revision of schema foh it was written for."""
    if json:
        print_json({"version": foh_pg.__version__, "revision": installed.head()})
    else:
        click.echo(f"foh-pg {foh_pg.__version__} (schema revision {installed.head()})")
