"""A primary and a hot standby: searches on the standby during updates, pools in between."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foh_pg import Index, updater
from foh_pg.errors import SessionError
from foh_pg.postgres.embedded import server_user
from foh_pg.runs import session
from foh_pg.updater.update import LAST, WAITING
from tests.support.digits import create_index, create_table, digits, insert, waiting
from tests.support.postgres import PASSWORD, Database, Server, following, own_server
from tests.support.waiting import until

pytestmark = pytest.mark.one_version

PGPOOL = shutil.which("pgpool")


@dataclass
class Pair:
    """A database on a primary, and the standby that follows it."""

    primary: Database
    standby: Database

    def pause(self) -> None:
        self.standby.connect(None).execute("SELECT pg_wal_replay_pause()")

    def resume(self) -> None:
        self.standby.connect(None).execute("SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def servers(embedded_version: int) -> Iterator[Pair]:
    with own_server(embedded_version) as embedded:
        private = Server(embedded.dsn(), "replicated", embedded.bin)
        private.create_roles()
        private.create_template()
        database = Database(private, "replicated")
        owner = database.connect()
        create_table(owner)
        insert(owner, range(600))
        create_index(owner, options='{"exact_rows": 0}')
        updater.build(database.dsn(), "digits")
        with following(private) as replica:
            pair = Pair(database, Database(replica, database.name))
            yield pair
            pair.standby.disconnect()
            pair.primary.disconnect()
        private.close()


@pytest.fixture
def pair(servers: Pair) -> Iterator[Pair]:
    """Both servers, with the first 600 digits in the table, nothing in the stream, and no lag."""
    yield servers
    servers.resume()
    servers.primary.connect().execute("DELETE FROM digit WHERE id >= 600")
    updater.update(servers.primary.dsn(), "digits")
    caught_up(servers)


def caught_up(pair: Pair) -> None:
    written = pair.primary.connect().execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn, pg_sleep(0.01)::text"
    standby = pair.standby.connect()
    while (standby.execute(replayed, written).fetchone() or (False,))[0] is False:
        pass


def test_searches_on_a_standby_during_updates(pair: Pair) -> None:
    """Every row that was there before can be found all the time: no wrong answer, no short one, no error."""
    caught_up(pair)
    reading, wrong, done = pair.standby.connect(), [], threading.Event()
    vectors = digits()[0]
    count = 0

    def search() -> None:
        nonlocal count
        while not done.is_set():
            number = 7 * count % 600
            count += 1
            try:
                found = [m.key for m in Index.open(reading, "digits").search(vectors[number], labels=0)]
            except psycopg.Error as error:
                found = [str(error)]
            if found[:1] != [number] or len(set(found)) != 10:
                wrong.append((number, found))

    thread = threading.Thread(target=search)
    thread.start()
    owner = pair.primary.connect()
    for start in range(600, 1400, 200):
        insert(owner, range(start, start + 200))
        owner.execute("DELETE FROM digit WHERE id >= 600 AND id % 7 = 0")
        searched = count
        updater.update(pair.primary.dsn(), "digits", batch_size=100)
        until(lambda searched=searched: count >= searched + 15, "searches go on")
    caught_up(pair)
    done.set()
    thread.join()
    assert not wrong


def test_an_updater_notices_that_a_standby_answers(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that sends single statements to a replica: it would say that nothing waits."""
    caught_up(pair)
    pair.pause()
    owner = pair.primary.connect()
    insert(owner, range(600, 610))
    standby, to_server = pair.standby.connect(), session.Session.rows
    sent: list[str] = []

    def rows(self: session.Session, text: Any, parameters: Any = None) -> Any:
        if text not in (LAST, WAITING):
            return to_server(self, text, parameters)
        sent.append(text)
        return standby.execute(self.compose(text, parameters), parameters).fetchall()

    monkeypatch.setattr(session.Session, "rows", rows)
    with pytest.raises(SessionError, match="a standby answered"):
        updater.update(pair.primary.dsn(), "digits")
    assert sent
    assert waiting(owner) == 10


@contextmanager
def pgpool(pair: Pair) -> Iterator[str]:
    """pgpool as it is often set up: writes to the primary, reads to the standby."""
    assert PGPOOL is not None
    with tempfile.TemporaryDirectory(prefix="foh-pool-", ignore_cleanup_errors=True) as directory:
        here = Path(directory)
        shutil.chown(here, *server_user()) if here.owner() == "root" else None
        first, second = (conninfo_to_dict(one.dsn(None))["host"] for one in (pair.primary, pair.standby))
        (here / "pgpool.conf").write_text(
            f"""
backend_clustering_mode = 'streaming_replication'
unix_socket_directories = '{here}'
socket_dir = '{here}'
pcp_socket_dir = '{here}'
wd_ipc_socket_dir = '{here}'
pid_file_name = '{here}/pgpool.pid'
logdir = '{here}'
port = 5432
listen_addresses = ''
pcp_port = 5433
num_init_children = 8
sr_check_period = 0
backend_hostname0 = '{first}'
backend_port0 = 5432
backend_weight0 = 0
backend_flag0 = 'ALWAYS_PRIMARY'
backend_hostname1 = '{second}'
backend_port1 = 5432
backend_weight1 = 1
load_balance_mode = on
"""
        )
        for name in ("pcp.conf", "pool_hba.conf"):
            (here / name).touch()
        with (here / "log").open("w") as log:
            process = subprocess.Popen(
                [
                    PGPOOL,
                    "-n",
                    "-f",
                    str(here / "pgpool.conf"),
                    "-F",
                    str(here / "pcp.conf"),
                    "-a",
                    str(here / "pool_hba.conf"),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            dsn = make_conninfo(pair.primary.dsn(), host=str(here), password=PASSWORD)
            for _ in range(400):
                try:
                    psycopg.connect(dsn).close()
                    break
                except psycopg.OperationalError:
                    assert process.poll() is None, (here / "log").read_text()
                    threading.Event().wait(0.05)
            yield dsn
        finally:
            process.terminate()
            process.wait()


@pytest.mark.skipif(PGPOOL is None, reason="pgpool is not installed")
@pytest.mark.parametrize("asked", [True, False], ids=["asked", "unasked"])
def test_an_updater_behind_pgpool(pair: Pair, monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """What waits is merged, whatever the standby sees.

    pgpool leaves statements that ask for it to the primary, and those that call a volatile function, as
    pg_is_in_recovery is. Before both, an update said that there was nothing to do.
    """
    if not asked:
        monkeypatch.setattr(session, "TO_PRIMARY", "")
    caught_up(pair)
    pair.pause()
    owner = pair.primary.connect()
    insert(owner, range(600, 610))
    with pgpool(pair) as dsn:
        with psycopg.connect(dsn, autocommit=True) as through:
            # It is such a pool: what was just written is not seen through it.
            assert through.execute("SELECT count(*) FROM digit").fetchone() == (600,)
        updater.update(dsn, "digits")
    assert waiting(owner) == 0
