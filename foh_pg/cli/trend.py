"""How the quality of one index went over its versions, for `foh-pg status INDEX`."""

from __future__ import annotations

from typing import Any

import click
import psycopg

from foh_pg.cli.output import print_table, say
from foh_pg.quality.history import Quality, quality, read_history, sparkline

# Runs looked at, and versions shown one by one.
RUNS = 200
LAST = 10


def read_trend(connection: psycopg.Connection[Any], name: str) -> list[Quality]:
    return quality(read_history(connection, name, RUNS))


def print_trend(name: str, trend: list[Quality]) -> None:
    """A line of blocks over all versions known, and the figures of the last ones."""
    if not trend:
        say(f"index {name!r}: nothing is known of its quality yet: run foh-pg evaluate {name}")
        return
    click.echo()
    seen = [point for point in trend if point.held_out_map is not None]
    line("mAP on held-out rows, as the updater saw it", [(p.version, p.held_out_map) for p in seen])
    measured = [point for point in trend if point.evaluated is not None]
    line("mAP@100 by foh-pg evaluate", [(p.version, score(p, "index", "map100")) for p in measured])
    print_table([as_row(point) for point in trend[-LAST:]])


def line(title: str, points: list[tuple[int, float | None]]) -> None:
    values = [(version, value) for version, value in points if value is not None]
    if values:
        blocks = sparkline([value for _, value in values])
        (first, a), (last, b) = values[0], values[-1]
        click.echo(f"{title}: {a:.3f} {blocks} {b:.3f} (versions {first} to {last})")


def as_row(point: Quality) -> dict[str, Any]:
    return {
        "version": point.version,
        "at": point.at,
        "held-out mAP": point.held_out_map,
        "P@10": score(point, "index", "p10"),
        "P@100": score(point, "index", "p100"),
        "mAP@100": score(point, "index", "map100"),
        "recall@10": score(point, "index", "recall10"),
        "both@10": score(point, "index", "both10"),
        "distance": score(point, "index", "distance10"),
        "exact": score(point, "exact", "map100"),
        "random": score(point, "random", "map100"),
    }


def score(point: Quality, way: str, name: str) -> float | None:
    """A figure of an evaluation; those of earlier versions of this package lack some."""
    return None if point.evaluated is None else point.evaluated.get(way, {}).get(name)
