"""Processes that run an updater and are killed.

python -m tests.faults.victim FUNCTION DSN JSON-ARGUMENTS PHASE STEP

runs on the index digits until a phase is at a step. `work` is the same for a process of multiprocessing: it dies
at the step of a number, or when somebody else kills it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

import psycopg

from foh_pg import updater
from foh_pg.errors import BuildError, BusyError, FenceError

LOST = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
)
# Somebody else is at work on the index, or was faster; or it is not in the state that the step needs.
POLITE = (BusyError, FenceError, BuildError)


def is_lost(error: BaseException) -> bool:
    """Whether the server went away: such errors have their own codes, or none where the socket just closed."""
    return isinstance(error, LOST) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None)


def work(
    function: str, dsn: str, index: str, arguments: dict[str, Any], dies_at: int | None, report: Connection
) -> None:
    """Run an updater. Report True when it has begun, and in the end an error that nobody expects."""
    steps = 0

    def progress(name: str, done: int, total: int) -> None:
        nonlocal steps
        if steps == 0:
            report.send(True)
        steps += 1
        if steps == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        getattr(updater, function)(dsn, index, **arguments, progress=progress)
    except Exception as error:
        if not isinstance(error, POLITE) and not is_lost(error):
            report.send(f"{function} {arguments}: {traceback.format_exc()}")


def main(function: str, dsn: str, arguments: str, phase: str, step: str) -> None:
    def progress(name: str, done: int, total: int) -> None:
        if name == phase and done == int(step):
            os.kill(os.getpid(), signal.SIGKILL)

    getattr(updater, function)(dsn, "digits", **json.loads(arguments), progress=progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
