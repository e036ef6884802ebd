"""How the quality of one index went over its versions, for `foh-pg status INDEX`."""

from __future__ import annotations

from typing import Any

import click
import psycopg

from foh_pg.cli.output import print_table, say
from foh_pg.quality.history import Quality, held_out_maps, quality, read_history, scores, sparkline

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
    line("mAP on held-out rows, as the updater saw it", held_out_maps(trend))
    line("mAP@100 by foh-pg evaluate", scores(trend, "index", "map100"))
    print_table([as_row(point) for point in trend[-LAST:]])


def line(title: str, points: list[tuple[float, float]]) -> None:
    if points:
        blocks = sparkline([value for _, value in points])
        (first, a), (last, b) = points[0], points[-1]
        click.echo(f"{title}: {a:.3f} {blocks} {b:.3f} (versions {first:.0f} to {last:.0f})")


def as_row(point: Quality) -> dict[str, Any]:
    return {
        "version": point.version,
        "at": point.at,
        "held-out mAP": point.held_out_map,
        "P@10": point.score("index", "p10"),
        "P@100": point.score("index", "p100"),
        "mAP@100": point.score("index", "map100"),
        "recall@10": point.score("index", "recall10"),
        "both@10": point.score("index", "both10"),
        "distance": point.score("index", "distance10"),
        "exact": point.score("exact", "map100"),
        "random": point.score("random", "map100"),
    }
