"""The options that several commands share."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterable
from typing import Any

import click

# Exit code of a command that found something wrong.
UNHEALTHY = 5

dsn = click.option(
    "--dsn", metavar="DSN", help="Connection string; without it libpq's environment variables decide."
)
json = click.option("--json", is_flag=True, help="Print JSON, for programs.")
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
max_lag = click.option(
    "--max-lag",
    type=click.FloatRange(min=0),
    default=600.0,
    help="Seconds that an entry may wait in the stream.",
)


class JsonObject(click.ParamType[dict[str, Any]]):
    """An object in JSON."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        try:
            read = jsonlib.loads(value)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            self.fail(f'{value!r} is not a JSON object like {{"price": {{"<": 100}}}}', param, ctx)
        return read


match = click.option(
    "--match",
    type=JsonObject(),
    metavar="JSON",
    help='Condition on included columns and labels: \'{"price": {"<": 100}}\'.',
)
index_name = click.argument("name", metavar="INDEX")
index_names = click.argument("names", metavar="[INDEX]...", nargs=-1)


def parse_pairs(pairs: Iterable[str], hint: str) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be, else text: ``probes=8``, ``triggers=row``."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not of the form NAME=VALUE", param_hint=hint)
        try:
            values[name] = jsonlib.loads(value)
        except ValueError:
            values[name] = value
    return values


def parse_names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]
