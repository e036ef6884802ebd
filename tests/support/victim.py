"""Processes that run an updater and are killed: `die` at a step of a phase, `work` at the step of a number, or when
somebody else kills it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
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


def processes() -> ForkServerContext:
    """New processes are copies of one that has imported this module: to import it takes longer than most runs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.victim"])
    return context


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


def die(function: str, dsn: str, arguments: dict[str, Any], phase: str, step: int) -> None:
    """Run an updater on the index digits until a phase is at a step."""

    def progress(name: str, done: int, total: int) -> None:
        if name == phase and done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    getattr(updater, function)(dsn, "digits", **arguments, progress=progress)
