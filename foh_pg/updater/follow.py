"""Partitions that were truncated, detached, dropped or attached: what no trigger sees."""

from __future__ import annotations

from foh_pg.runs.run import Run
from foh_pg.runs.session import Session

FOLLOW = "SELECT foh._follow({id})"


def follow(session: Session, run: Run) -> None:
    """Queue the rows that partitions took with them or brought along since the last run."""
    with session.write():
        (queued,) = session.one(FOLLOW)
    if queued:
        run.note(
            f"partitions were truncated, detached, dropped or attached: {queued} of the entries are theirs"
        )
