"""Progress of long commands: a bar with the name of the phase, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foh_pg.runs.run import Progress as Callback


@contextmanager
def progress_bar(name: str) -> Iterator[Callback | None]:
    """What to pass as `progress` of an updater's function; None if there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)

        def show(phase: str, done: int, total: int) -> None:
            bar.update(task, description=f"{name}: {phase}", completed=done, total=total or None)

        yield show
