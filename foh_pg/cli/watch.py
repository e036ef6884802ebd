from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import Any

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict

from foh_pg.cli import options
from foh_pg.cli.database import require_schema
from foh_pg.cli.rights import explained
from foh_pg.cli.update import batch_size_option
from foh_pg.postgres.connect import connect
from foh_pg.quality.evaluate import evaluate
from foh_pg.runs.run import Progress, Run
from foh_pg.watcher.exposition import serving
from foh_pg.watcher.watch import Settings, Watcher

# A server that vanished without a word is noticed within two minutes, not two hours.
KEEPALIVE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 5,
    "tcp_user_timeout": 120_000,
}


def seconds(setting: str, least: float, help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option for one of the watcher's settings."""
    name, default = f"--{setting.replace('_', '-')}", getattr(Settings, setting)
    return click.option(name, type=click.FloatRange(min=least), default=default, help=help)


@click.command()
@options.index_names
@click.option("--all", "every", is_flag=True, help="All indexes, also those created later.")
@seconds("interval", 0.05, "Seconds between two looks at the streams.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve /metrics and /healthz; 0: any.")
@click.option("--metrics-host", default="127.0.0.1", help="Address to serve on; 0.0.0.0: all that there are.")
@batch_size_option
@seconds("max_seconds", 1, "Then another index has its turn.")
@click.option(
    "--evaluate-every",
    type=click.FloatRange(min=0, min_open=True),
    metavar="HOURS",
    help="Measure each index as foh-pg evaluate does, so often; not given: never. Reads the whole table.",
)
@seconds("longest_wait", 1, "Seconds between attempts after errors at the most.")
@seconds("grace", 0, "Seconds that a statement may go on after SIGTERM.")
@options.dsn
def watch(
    names: tuple[str, ...],
    every: bool,
    metrics_port: int | None,
    metrics_host: str,
    evaluate_every: float | None,
    dsn: str | None,
    **given: Any,
) -> None:
    """Keep indexes up to date until SIGTERM or SIGINT: look at the streams, update what is behind.

    One line per run on standard error. Waits longer and longer after errors, and connects again when the
    server is back. Asked to stop, it finishes a switch that has begun, rolls anything else back, and exits
    with 0.
    """
    if bool(names) == every:
        raise click.UsageError("name the indexes to watch, or pass --all")
    log_to_stderr()
    seconds = None if evaluate_every is None else 3600 * evaluate_every
    settings = Settings(names, evaluate_every=seconds, **given)
    watcher = Watcher(lambda: open_connection(dsn), settings, measure)
    heed_signals(watcher)
    server = (
        nullcontext()
        if metrics_port is None
        else serving(metrics_host, metrics_port, watcher.counters, watcher.health)
    )
    log = logging.getLogger(__name__)
    with server as port:
        if port is not None:
            log.info("serving /metrics and /healthz on %s:%d", metrics_host, port)
        watcher.run()
    log.info("stopped")


def measure(connection: psycopg.Connection[Any], index: str, progress: Progress) -> Run:
    return evaluate(connection, index, progress=progress)


def open_connection(dsn: str | None) -> psycopg.Connection[Any]:
    given = conninfo_to_dict(dsn or "")
    parameters = {name: value for name, value in KEEPALIVE.items() if name not in given}
    connection = connect(dsn, autocommit=True, application_name="foh-pg watch", **parameters)
    try:
        with explained(connection):
            require_schema(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def heed_signals(watcher: Watcher) -> None:
    def handle(number: int, _frame: FrameType | None) -> None:
        if watcher.stopping.is_set():
            # Asked twice, the watcher ends at once. Nothing is lost, as with kill -9.
            raise SystemExit(128 + number)
        watcher.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    root = logging.getLogger("foh_pg")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
