"""What waits on the nodes of a distributed table, taken into the stream of the index."""

from __future__ import annotations

from foh_pg.runs.run import Run
from foh_pg.runs.session import Session

# Entries moved in one go.
AT_ONCE = 5000

WAITING = "SELECT w.entries FROM {inbox_stat}() w"
PULL = "SELECT {pull}(%(most)s::int, keys_only => %(keys_only)s)"
PULLED = "SELECT {pulled}(%(entries)s::uuid[])"
VACUUM = "VACUUM (SKIP_LOCKED) {inbox}"


def pull(session: Session, run: Run, *, keys_only: bool = False) -> None:
    """Move what waits now from the inbox into the stream; nothing where the table is not distributed.

    Two transactions for each piece: what is committed in the stream is deleted from the inbox. A search that
    reads one and then the other finds a key in at least one of them, and asks again where a piece was moved
    meanwhile. Killed in between, a piece is moved again, and the later entries win over the earlier ones.

    `keys_only`: leave the bits out, because all rows are read afterwards anyway.
    """
    if session.names["distributed"] != "True":
        return
    (waiting,) = session.one(WAITING)
    if not waiting:
        return
    with run.phase("pull", waiting):
        done = 0
        while done < waiting:
            with session.write():
                (entries,) = session.one(PULL, {"most": AT_ONCE, "keys_only": keys_only})
            if not entries:
                break
            with session.write():
                session.execute(PULLED, {"entries": entries})
            done += len(entries)
            run.step(done, waiting)
        # An empty file tells a search that nothing waits.
        session.vacuum(VACUUM)
