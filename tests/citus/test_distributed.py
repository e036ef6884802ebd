"""An index on a distributed table: every kind of write, every way to search, the updater, rights."""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from pgvector.sqlalchemy import VECTOR
from psycopg import sql
from psycopg.rows import dict_row
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from foh_pg import Index, updater
from foh_pg.doctor.examine import examine
from foh_pg.errors import BuildError, InputError
from foh_pg.postgres.connect import connect
from foh_pg.sqlalchemy import FOHIndex, foh_search, select_nearest
from foh_pg.watcher.watch import Settings, Watcher
from tests.citus.conftest import Cluster
from tests.support import distributed
from tests.support.digits import create_index, digits, insert, vector
from tests.support.distributed import (
    LISTS_ANSWER,
    build_index,
    create_table,
    distribute_existing,
    inbox,
    nearest,
    pull,
    sound,
)
from tests.support.traps import set_traps
from tests.support.waiting import until


class Base(DeclarativeBase):
    pass


class Digit(Base):
    __tablename__ = "digit"

    id: Mapped[int] = mapped_column(primary_key=True)
    embedding: Mapped[Any] = mapped_column(VECTOR(64))
    label: Mapped[str] = mapped_column(sa.Text)
    price: Mapped[int]

    __table_args__ = (FOHIndex("digits", embedding, labels=label, bits=32),)


def distribute(owner: psycopg.Connection[Any], key: str = "int") -> None:
    distributed.distribute(owner, f"id {key} PRIMARY KEY", by="id")


def built(cluster: Cluster, owner: psycopg.Connection[Any], rows: int = 400, **arguments: Any) -> Index:
    distribute(owner)
    insert(owner, range(rows))
    return build_index(cluster, owner, **arguments)


@pytest.mark.parametrize("through", ["coordinator", "worker"])
def test_every_write_is_found_when_it_commits(
    cluster: Cluster, owner: psycopg.Connection[Any], through: str
) -> None:
    index = built(cluster, owner)
    vectors = digits()[0]
    writer = owner if through == "coordinator" else cluster.on_worker(1)
    with writer.transaction():
        writer.execute("INSERT INTO digit VALUES (1000, %s, 'new')", [vector(vectors[1000])])
        other = Index.open(cluster.connect(), "digits")
        assert nearest(other, 1000) != 1000
    assert nearest(index, 1000) == 1000
    insert(writer, range(1001, 1060))  # by COPY
    writer.execute("UPDATE digit SET embedding = %s WHERE id = 3", [vector(vectors[1100])])
    writer.execute("UPDATE digit SET price = 7 WHERE id < 50")
    writer.execute("DELETE FROM digit WHERE id = 4")
    writer.execute("UPDATE digit SET embedding = NULL WHERE id = 5")
    writer.execute(
        "INSERT INTO digit VALUES (6, %s, 'x') ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding",
        [vector(vectors[1101])],
    )
    # Not the fifty rows of which only the price has changed.
    assert inbox(owner) == 1 + 59 + 4
    for step in ("inbox", "stream", "lists"):
        if step == "stream":
            pull(owner)
        elif step == "lists":
            updater.update(cluster.dsn(), "digits")
            assert owner.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (0,)
        assert [nearest(index, number) for number in (1000, 1001, 1059, 1100, 1101)] == [
            1000,
            1001,
            1059,
            3,
            6,
        ]
        assert nearest(index, 4) not in (4, None)
        assert nearest(index, 5) not in (5, None)
        assert [nearest(index, number, shortlist=0) for number in (1000, 1059)] == [1000, 1059]
        sound(owner)
    writer.execute("TRUNCATE digit")
    assert nearest(index, 1) is None
    insert(writer, range(20))
    assert nearest(index, 1) == 1
    updater.update(cluster.dsn(), "digits")
    assert nearest(index, 1) == 1
    sound(owner)


def test_every_way_to_search(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner, 600)
    vectors = digits()[0]
    insert(owner, range(600, 640))
    owner.execute("UPDATE digit SET price = id WHERE id % 3 = 0")
    for pulled in (False, True):
        if pulled:
            updater.update(cluster.dsn(), "digits")
        assert [m.key for m in index.search(vectors[601], 1, labels=0)] == [601]
        assert len({m.key for m in index.search(vectors[1700], 50)}) == 50
        # All rows, whatever was probed first; k of them whenever k match.
        assert {m.key for m in index.search(vectors[1700], 1000)} == set(range(640))
        some = index.search(
            vectors[3], 15, filter="price = id AND id < (params ->> 'most')::int", params={"most": 60}
        )
        assert len(some) == 15
        assert all(m.key % 3 == 0 and m.key < 60 for m in some)
        assert len(index.search(vectors[3], 1000, filter="id IN (1, 2, 605)")) == 3
        assert [m.key for m in index.search(vectors[7], 1, shortlist=0)] == [7]
        assert [[m.key for m in one] for one in index.search_many(vectors[[5, 610]], 1, labels=0)] == [
            [5],
            [610],
        ]
        assert 5 not in [m.key for m in index.search_like(5, 8)]
        assert len(index.search_like(5, 8)) == 8
        with pytest.raises(InputError):
            index.search_like(5000, 8)
        assert {m.key for m in index.candidates(vectors[610], probes=10000)} == set(range(640))
        for dial in (0, 0.5, 1):
            assert len(index.search(vectors[1700], 10, labels=dial)) == 10
    with owner.transaction():
        owner.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert nearest(index, 9) == 9
    for broken in ("id = 1) OR (true", "id = 1 UNION SELECT 1", "no_such_column = 1"):
        with pytest.raises(psycopg.Error):
            index.search(vectors[1], 3, filter=broken)
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(cluster.dsn()))
    with Session(engine) as session:
        near = select_nearest(Digit, vectors[9], k=3, labels=0, filter=Digit.price >= 0)
        assert session.scalars(near).first().id == 9
        found = foh_search(Digit, vectors[9], k=3, labels=0)
        joined = (
            sa.select(Digit.id, found.c.score).join(found, found.c.id == Digit.id).order_by(found.c.score)
        )
        assert len(session.execute(joined).all()) == 3
    engine.dispose()


def test_labels_are_learned(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner, 1200)
    assert index.status()["trained"]
    vectors, labels = digits()
    insert(owner, range(1200, 1500))
    updater.update(cluster.dsn(), "digits", batch_size=100)
    version = index.status()["version"]
    hits = [
        np.mean([labels[m.key] == labels[number] for m in index.search(vectors[number], 10)])
        for number in range(1500, 1540)
    ]
    assert np.mean(hits) > 0.85
    updater.rebuild(cluster.dsn(), "digits")
    sound(owner)
    updater.rollback(cluster.dsn(), "digits", version)
    sound(owner)
    assert nearest(index, 1499) == 1499


@pytest.mark.parametrize(
    ("kind", "value"),
    [("text[]", "ARRAY['', label, 'all']"), ("jsonb", """('["' || label || '", "all", 7, ""]')::jsonb""")],
)
def test_several_labels_in_a_row(
    cluster: Cluster, owner: psycopg.Connection[Any], kind: str, value: str
) -> None:
    distribute(owner)
    insert(owner, range(300))
    owner.execute(f"ALTER TABLE digit ADD COLUMN tags {kind}".encode())
    owner.execute(f"UPDATE digit SET tags = {value}".encode())
    index = build_index(cluster, owner, labels="tags")
    vectors, labels = digits()
    owner.execute("UPDATE digit SET tags = NULL WHERE id IN (3, 5)")
    nines = {number for number in range(300) if labels[number] == 9} - {3, 5}
    for _ in ("inbox", "lists"):
        assert {
            m.key for m in index.search(vectors[9], 300, match={"labels": {"all": ["9", "all"]}})
        } == nines
        assert {one.label for one in index.labels(vectors[9], 2)} == {"all", "9"}
        assert [one.key for one in index.suggest(1)] == [3, 5]
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_columns_of_any_name(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    owner.execute(
        'CREATE TABLE digit (params text, "loop" int, "%s ""$1""" extensions.vector(64), "{source}" jsonb,'
        ' keys int, home int, "a\n-- b" text, PRIMARY KEY (params, "loop"))'
    )
    distribute_existing(owner, "params")
    owner.execute(
        "SELECT foh.create_index('digits', 'digit', %s, labels => %s, include => %s, options => %s, bits => 32)",
        ['%s "$1"', "{source}", ["keys", "params", "a\n-- b"], LISTS_ANSWER],
    )
    vectors, labels = digits()
    insert_one = "INSERT INTO digit VALUES (%s, %s, %s, to_jsonb(%s::text), %s, 1, 'b')"
    for number in range(100):
        row = [f"p{number % 5}", number, vector(vectors[number]), str(labels[number]), number % 3]
        owner.execute(insert_one, row)
    index = Index.open(owner, "digits")
    conditions: tuple[dict[str, Any], ...] = (
        {"match": {"params": "p2", "a\n-- b": "b"}},
        {"filter": "params = 'p2' AND home = 1"},
        {"match": {"a\n-- b": "b"}, "filter": "params = 'p2'"},
    )
    for _ in ("inbox", "lists"):
        assert nearest(index, 8) == ("p3", 8)
        for condition in conditions:
            found = index.search(vectors[8], 100, **condition)
            assert {m.key for m in found} == {("p2", number) for number in range(2, 100, 5)}
        some = index.search(vectors[8], 100, match={"keys": 1, "labels": ["1", "2"]})
        assert {m.key[1] for m in some} == {n for n in range(1, 100, 3) if labels[n] in (1, 2)}
        assert index.labels(vectors[8], 1)[0].label == str(labels[8])
        assert index.suggest(1) == []
        assert len(index.candidates(vectors[8], probes=10000)) == 100
        sound(owner)
        updater.update(cluster.dsn(), "digits")
    owner.execute("DELETE FROM digit WHERE params = 'p2'")
    assert len(index.search(vectors[8], 100)) == 80


FORMS = (
    "",
    ", shortlist => 0",
    ", recall => 1",
    ", max_distance => 0.1",
    """, filter => 's.price OPERATOR(pg_catalog.<) 100'""",
    """, filter => 's.id OPERATOR(pg_catalog.=) (params OPERATOR(pg_catalog.->>) ''id'')', params => '{"id": "3"}'""",
    """, match => '{"price": -1}'""",
    """, match => '{"id": ["3", "4"], "labels": ["3"]}'""",
)


def test_a_hostile_search_path(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    distribute(owner, key="text")
    insert(owner, range(300))
    build_index(cluster, owner, include=["price", "id"])
    insert(owner, range(300, 340))
    query = vector(digits()[0][310])
    searches = [f"SELECT * FROM foh.digits_search(%s, 20{form})".encode() for form in FORMS]
    expected = [owner.execute(search, [query]).fetchall() for search in searches]
    assert all(expected)
    with ExitStack() as traps:
        for node in cluster.nodes:
            superuser = psycopg.connect(cluster.node_dsn(node, None), autocommit=True)
            superuser.execute("SET citus.enable_ddl_propagation = off; SET client_min_messages = warning")
            set_traps(superuser)
            traps.callback(superuser.execute, "DROP SCHEMA evil CASCADE")
        # A new session: its plans and its functions are compiled under the hostile path.
        victim = cluster.connect()
        victim.execute("SET search_path = evil, pg_catalog")
        victim.execute("INSERT INTO public.digit VALUES ('new', %s, 'x')", [query])
        victim.execute("UPDATE public.digit SET label = 'y' WHERE id OPERATOR(pg_catalog.=) 'new'")
        victim.execute("DELETE FROM public.digit WHERE id OPERATOR(pg_catalog.=) 'new'")
        assert [victim.execute(search, [query]).fetchall() for search in searches] == expected
        assert victim.execute("SELECT * FROM foh.digits_labels(%s, 1)", [query]).fetchall()
        assert len(victim.execute("SELECT * FROM foh.digits_candidates(%s)", [query]).fetchall()) > 20
    updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_rights_and_policies(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    built(cluster, owner)
    owner.execute("ALTER TABLE digit ENABLE ROW LEVEL SECURITY")
    owner.execute("CREATE POLICY odd ON digit USING (id % 2 = 1)")
    owner.execute("GRANT SELECT ON digit TO app_reader")
    reader = cluster.connect("app_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        Index.open(reader, "digits")
    owner.execute("SELECT foh.grant('digits', reader => 'app_reader')")
    index = Index.open(reader, "digits")
    insert(owner, range(400, 420))
    for _ in ("inbox", "lists"):
        assert nearest(index, 401) == 401
        assert nearest(index, 402) % 2 == 1
        assert len(index.search(digits()[0][402], 1000)) == 210
        updater.update(cluster.dsn(), "digits")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute("SELECT * FROM foh_digits_inbox")
    owner.execute("REVOKE SELECT ON digit FROM app_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        nearest(index, 401)
    # A writer needs nothing of ours.
    owner.execute("GRANT INSERT, UPDATE, DELETE ON digit TO app_writer")
    owner.execute("CREATE POLICY all_of_it ON digit TO app_writer USING (true)")
    writer = cluster.connect("app_writer")
    for number in range(420, 430):
        writer.execute("INSERT INTO digit VALUES (%s, %s, 'x')", [number, vector(digits()[0][number])])
    assert nearest(Index.open(owner, "digits"), 421) == 421
    # An updater reads the table through our functions.
    owner.execute("SELECT foh.grant(updater => 'app_writer')")
    updater.update(cluster.dsn("app_writer"), "digits")
    assert inbox(owner) == 0


@pytest.mark.parametrize("key", ["smallint", "int", "bigint", "uuid", "text", "varchar"])
def test_every_type_of_key(cluster: Cluster, owner: psycopg.Connection[Any], key: str) -> None:
    distribute(owner, key=key)
    create_index(owner, options=LISTS_ANSWER)
    as_key = "(%s::text)" if key in ("text", "varchar") else "md5(%s::text)::uuid" if key == "uuid" else "%s"
    write = f"INSERT INTO digit VALUES ({as_key}, %s, 'a')"
    vectors = digits()[0]
    index = Index.open(owner, "digits")
    for number in range(40):
        owner.execute(write, [number, vector(vectors[number])])
    for _ in ("inbox", "lists"):
        found = index.search(vectors[11], 1, labels=0)[0].key
        assert owner.execute(f"SELECT {as_key}::text = %s::text", [11, str(found)]).fetchone() == (True,)
        assert len({m.key for m in index.search(vectors[0], 100)}) == 40
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_tables_that_are_refused(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    owner.execute("CREATE TABLE t (tenant int, id int NOT NULL, embedding extensions.vector(3))")
    owner.execute("SELECT create_distributed_table('t', 'tenant')")
    with pytest.raises(psycopg.errors.InvalidTableDefinition, match="has no primary key"):
        owner.execute("SELECT foh.create_index('t', 't', 'embedding')")
    owner.execute("CREATE TABLE r (id int PRIMARY KEY, embedding extensions.vector(3))")
    owner.execute("SELECT create_distributed_table('r', 'id', 'range')")
    with pytest.raises(psycopg.errors.WrongObjectType, match="by the hash of a column"):
        owner.execute("SELECT foh.create_index('r', 'r', 'embedding')")
    owner.execute("CREATE TABLE s (id int PRIMARY KEY, embedding extensions.vector(3))")
    owner.execute("SELECT create_distributed_table('s', NULL)")
    with pytest.raises(psycopg.errors.WrongObjectType, match="single shard"):
        owner.execute("SELECT foh.create_index('s', 's', 'embedding')")
    owner.execute("CREATE TABLE d (id int PRIMARY KEY, embedding extensions.vector(3))")
    owner.execute("CREATE TABLE l (id int, label text)")
    owner.execute("SELECT create_distributed_table('d', 'id')")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="labels are in another table"):
        owner.execute(
            "SELECT foh.create_index('d', 'd', 'embedding', labels => 'label', labels_from => 'l', labels_key => 'id')"
        )
    long = "é" * 30
    owner.execute(f"CREATE TABLE {long} (id int PRIMARY KEY, embedding extensions.vector(3))")
    owner.execute(f"SELECT create_distributed_table('{long}', 'id')")
    with pytest.raises(psycopg.errors.WrongObjectType, match="more than 50 bytes"):
        owner.execute(f"SELECT foh.create_index('q', '{long}', 'embedding')")
    superuser = cluster.connect(None)
    superuser.execute('CREATE SCHEMA "my-app" AUTHORIZATION app_owner')
    try:
        owner.execute('CREATE TABLE "my-app".q (id int PRIMARY KEY, embedding extensions.vector(3))')
        owner.execute("SELECT create_distributed_table('\"my-app\".q', 'id')")
        with pytest.raises(psycopg.errors.WrongObjectType, match="needs quotes"):
            owner.execute("SELECT foh.create_index('q', '\"my-app\".q', 'embedding')")
    finally:
        superuser.execute('DROP SCHEMA "my-app" CASCADE')
    assert owner.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)


def test_a_table_that_is_distributed_later(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    create_table(owner, "id int PRIMARY KEY")
    insert(owner, range(300))
    build_index(cluster, owner)
    with pytest.raises(psycopg.Error, match="trigger"):
        distribute_existing(owner, "id")
    for event in ("insert", "update", "delete", "truncate"):
        owner.execute(f"DROP TRIGGER foh_digits_{event} ON digit")
    distribute_existing(owner, "id")
    insert(owner, range(300, 320))
    assert "run SELECT foh.refresh(" in owner.execute("SELECT status FROM foh.index_stat").fetchone()[0]
    owner.execute("SELECT foh.refresh('digits')")
    index = Index.open(owner, "digits")
    insert(owner, range(320, 340))
    for _ in ("before", "after"):
        assert [nearest(index, number) for number in (1, 301, 321)] == [1, 301, 321]
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_keys_as_long_as_a_key_can_be(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """Also while the shard of such a key moves by replication."""
    drawn = random.Random(1)
    keys = ["".join(drawn.choices(string.ascii_letters + string.digits, k=2690)) for _ in range(30)]
    distribute(owner, key="text")
    create_index(owner, options=LISTS_ANSWER)
    index = Index.open(owner, "digits")
    vectors = digits()[0]
    for number, key in enumerate(keys):
        owner.execute("INSERT INTO digit VALUES (%s, %s, 'a')", [key, vector(vectors[number])])
    # Every shard to the other worker.
    superuser = cluster.connect(None)
    for move in superuser.execute(
        "SELECT s.shardid, n.nodename, n.nodeport, o.nodename, o.nodeport FROM pg_dist_shard s"
        " JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)"
        " JOIN pg_dist_node o ON o.groupid NOT IN (0, n.groupid) WHERE s.logicalrelid = 'digit'::regclass"
    ).fetchall():
        superuser.execute("SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, 'force_logical')", move)
    superuser.execute("CALL citus_cleanup_orphaned_resources()")
    owner.execute("DELETE FROM digit WHERE id = %s", [keys[5]])
    for _ in ("inbox", "lists"):
        assert [keys.index(nearest(index, number)) for number in (3, 11, 29)] == [3, 11, 29]
        assert nearest(index, 5) != keys[5]
        updater.update(cluster.dsn(), "digits")
    assert inbox(owner) == 0
    sound(owner)


def test_an_altered_column_fails_no_write(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    owner.execute("ALTER TABLE digit RENAME COLUMN embedding TO meaning")
    owner.execute("INSERT INTO digit VALUES (1000, %s, 'new')", [vector(digits()[0][1000])])
    owner.execute("UPDATE digit SET meaning = %s WHERE id = 1", [vector(digits()[0][1001])])
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed"):
        nearest(index, 1000)
    owner.execute("SELECT foh.refresh('digits')")
    index = Index.open(owner, "digits")
    assert [nearest(index, number) for number in (1000, 1001)] == [1000, 1]
    # Keys that were noted without their vectors are read.
    owner.execute("ALTER TABLE digit RENAME COLUMN meaning TO sense")
    insert_sense = "INSERT INTO digit (id, sense, label) VALUES (%s, %s, 'new')"
    for number in range(1003, 1013):
        owner.execute(insert_sense, [number, vector(digits()[0][number])])
    owner.execute("SELECT foh.refresh('digits')")
    index = Index.open(owner, "digits")
    assert [nearest(index, number) for number in range(1003, 1013)] == list(range(1003, 1013))
    # Another number of dimensions: writes go on, and searches say what is wrong.
    owner.execute("ALTER TABLE digit ALTER COLUMN sense TYPE extensions.vector(3) USING '[1,2,3]'")
    owner.execute("INSERT INTO digit (id, sense) VALUES (1013, '[1,2,3]')")
    owner.execute("UPDATE digit SET sense = '[1,2,4]' WHERE id = 1013")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed"):
        nearest(index, 1003)
    owner.execute("DELETE FROM digit WHERE id = 1013")


def test_a_renamed_table(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    owner.execute("ALTER TABLE digit RENAME TO numeral")
    owner.execute("INSERT INTO numeral VALUES (1002, %s, 'new')", [vector(digits()[0][1002])])
    owner.execute("SELECT foh.refresh('digits')")
    assert nearest(index, 1002) == 1002


def test_a_table_that_is_not_distributed_any_more(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """Citus gives the ordinary table the triggers of the old one."""
    index = built(cluster, owner)
    owner.execute("SELECT undistribute_table('digit')")
    warnings: list[str] = []
    owner.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
    insert(owner, range(400, 410))
    owner.execute("UPDATE digit SET embedding = %s WHERE id = 3", [vector(digits()[0][1000])])
    owner.execute("DELETE FROM digit WHERE id = 4")
    assert len(warnings) == 3
    assert all("is not distributed any more" in warning for warning in warnings)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed"):
        nearest(index, 1)
    owner.execute("TRUNCATE digit")
    owner.execute("SELECT foh.drop_index('digits')")
    insert(owner, range(100))
    index = build_index(cluster, owner)
    insert(owner, range(100, 110))
    assert [nearest(index, number) for number in (1, 105)] == [1, 105]


def test_a_table_that_was_dropped(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    owner.execute("DROP TABLE digit CASCADE")
    searches: tuple[dict[str, Any], ...] = ({}, {"filter": "id = 1"}, {"match": {"labels": ["1"]}})
    for arguments in searches:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="drop_index"):
            index.search(digits()[0][1], **arguments)
    with pytest.raises(BuildError, match="was dropped"):
        updater.update(cluster.dsn(), "digits")
    with pytest.raises(psycopg.errors.UndefinedTable, match="was dropped"):
        owner.execute("SELECT foh.refresh('digits')")
    owner.execute("SELECT foh.drop_index('digits')")


def test_a_node_that_does_not_answer(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    limit = "ALTER ROLE app_owner CONNECTION LIMIT {}"
    cluster.nodes[1].execute(sql.SQL(limit).format(0))
    try:
        # A new session: older ones keep their connections to the nodes.
        with pytest.raises(psycopg.OperationalError):
            nearest(Index.open(cluster.connect(), "digits"), 1)
        with pytest.raises(psycopg.OperationalError):
            updater.update(cluster.dsn(), "digits")
        status = cluster.connect().execute("SELECT status FROM foh.index_stat").fetchone()
        assert status is not None
        assert status[0].startswith("a node does not answer")
        report = examine(cluster.connect(row_factory=dict_row))
        [found] = [found for found in report.findings if found.check == "stream"]
        assert "start that node" in found.cure
    finally:
        cluster.nodes[1].execute(sql.SQL(limit).format(-1))
    assert nearest(index, 1) == 1
    sound(owner)


def test_an_updater_that_died_in_a_pull(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """What it took is in the stream, and still in the inbox."""
    index = built(cluster, owner)
    insert(owner, range(400, 440))
    owner.execute("SELECT foh.digits_pull(25)")
    assert owner.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (25,)
    owner.execute("DELETE FROM digit WHERE id BETWEEN 400 AND 419")
    owner.execute("UPDATE digit SET embedding = %s WHERE id BETWEEN 420 AND 439", [vector(digits()[0][1100])])
    for _ in ("died", "updated"):
        assert sorted(m.key for m in index.search(digits()[0][0], 1000)) == [*range(400), *range(420, 440)]
        assert {m.key for m in index.search(digits()[0][1100], 20, labels=0)} == set(range(420, 440))
        sound(owner)
        updater.update(cluster.dsn(), "digits")
    assert inbox(owner) == 0


def test_nothing_is_left_on_any_node(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    built(cluster, owner)
    left = (
        "SELECT relname::text FROM pg_class WHERE relname LIKE 'foh\\_digits%' UNION ALL"
        " SELECT proname::text FROM pg_proc WHERE proname LIKE 'foh\\_digits%' UNION ALL"
        " SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'foh\\_digits%'"
    )
    assert owner.execute(left).fetchall()
    owner.execute("SELECT foh.drop_index('digits')")
    assert owner.execute(left).fetchall() == []
    for number in (0, 1):
        assert cluster.on_worker(number).execute(left).fetchall() == []
    create_index(owner)
    owner.execute("DROP TABLE digit CASCADE")
    owner.execute("SELECT foh.drop_index('digits')")
    assert owner.execute(left).fetchall() == []


def test_rows_that_wait_are_found_behind_others(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """Entries of rows that are gone, have moved, or do not pass do not use up the answer."""
    index = built(cluster, owner)
    vectors = digits()[0]
    # Far from all digits, of which the corners are empty.
    query = np.zeros(64, np.float32)
    query[[0, 7]] = 100

    def beside(steps: float) -> str:
        row = query.copy()
        row[56] = 10 + 0.2 * steps
        return vector(row)

    def first(**arguments: Any) -> Any:
        return index.search(query, 1, labels=0, **arguments)[0].key

    # Two hundred rows nearer than row 1000, which are deleted again, moved away, or do not pass the filter.
    for number in range(2000, 2200):
        owner.execute("INSERT INTO digit VALUES (%s, %s, 'x', 1)", [number, beside(number - 2000)])
    owner.execute("INSERT INTO digit VALUES (1000, %s, 'x', 5)", [beside(250)])
    assert first() == 2000
    owner.execute("DELETE FROM digit WHERE id BETWEEN 2000 AND 2099")
    assert first() == 2100
    assert first(filter="price = 5") == 1000
    owner.execute("UPDATE digit SET embedding = %s WHERE id >= 2100", [vector(vectors[3])])
    assert first() == 1000
    owner.execute("UPDATE digit SET embedding = NULL WHERE id > 2000")
    # One row that is written again and again.
    for number in range(100):
        owner.execute("UPDATE digit SET embedding = %s WHERE id = 7", [beside(number)])
    assert [m.key for m in index.search(query, 2, labels=0)] == [7, 1000]
    sound(owner)


@pytest.mark.parametrize(
    ("column", "distance", "operator"),
    [
        ("extensions.vector", "l2", "<->"),
        ("extensions.vector(64)", "ip", "<#>"),
        ("extensions.halfvec(64)", "l2", "<->"),
        ("real[]", "cosine", "<=>"),
    ],
)
def test_every_distance_and_type_of_column(
    cluster: Cluster, owner: psycopg.Connection[Any], column: str, distance: str, operator: str
) -> None:
    owner.execute(f"CREATE TABLE digit (id int PRIMARY KEY, embedding {column})")
    distribute_existing(owner, "id")
    owner.execute(
        "SELECT foh.create_index('digits', 'digit', 'embedding', dimensions => 64, distance => %s, options => %s)",
        [distance, LISTS_ANSWER],
    )
    updater.build(cluster.dsn(), "digits")
    vectors = digits()[0]
    cast = f"%s::extensions.vector::{column}"
    for number in range(120):
        owner.execute(f"INSERT INTO digit VALUES (%s, {cast})", [number, vector(vectors[number])])
    if column == "real[]":
        owner.execute("INSERT INTO digit VALUES (500, '{1,2,NaN}'), (501, NULL)")
    index = Index.open(owner, "digits")
    nearest_first = (
        f"SELECT id FROM digit WHERE id < 500"
        f" ORDER BY embedding::extensions.vector OPERATOR(extensions.{operator}) %s::extensions.vector, id LIMIT 5"
    )
    for number in range(1000, 1010):
        found = [m.key for m in index.search(vectors[number], 5)]
        assert found == [key for (key,) in owner.execute(nearest_first, [vector(vectors[number])])]
    owner.execute("DELETE FROM digit WHERE id = 500")
    updater.update(cluster.dsn(), "digits")
    sound(owner)


@contextmanager
def shards_on_the_coordinator(cluster: Cluster) -> Iterator[psycopg.Connection[Any]]:
    """Let the coordinator have shards, and take them off it afterwards; gives a superuser's connection."""
    superuser = cluster.connect(None)
    share = "SELECT citus_set_node_property(nodename, nodeport, 'shouldhaveshards', %s) FROM pg_dist_node WHERE groupid = 0"
    superuser.execute(share, [True])
    try:
        yield superuser
    finally:
        superuser.execute(share, [False])
        superuser.execute(
            "SELECT citus_drain_node(nodename, nodeport, 'block_writes') FROM pg_dist_node WHERE groupid = 0"
        )


def test_a_session_that_forgets_what_it_prepared(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """Shards of the coordinator are read in the session of the caller."""
    index = built(cluster, owner)
    with shards_on_the_coordinator(cluster) as superuser:
        superuser.execute("SELECT rebalance_table_shards('digit', shard_transfer_mode => 'block_writes')")
        for forget in ("DEALLOCATE ALL", "DISCARD ALL"):
            assert [nearest(index, number) for number in range(0, 60, 7)] == list(range(0, 60, 7))
            owner.execute(forget, prepare=False)
        owner.prepare_threshold = None
        assert [nearest(index, number) for number in range(0, 60, 7)] == list(range(0, 60, 7))


def test_a_watcher_takes_in_what_waits_on_the_nodes(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    watcher = Watcher(lambda: connect(cluster.dsn(), autocommit=True), Settings(interval=0.1))
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        insert(cluster.on_worker(0), range(400, 430))
        until(lambda: index.status()["rows"] >= 430, "the watcher takes in what waits")
    finally:
        watcher.stop()
        thread.join()
    assert inbox(owner) == 0
    assert nearest(index, 429) == 429


def test_a_transaction_sees_what_it_wrote(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    with owner.transaction():
        owner.execute("INSERT INTO digit VALUES (1000, %s, 'new')", [vector(digits()[0][1000])])
        owner.execute("DELETE FROM digit WHERE id = 1")
        assert nearest(index, 1000) == 1000
        assert nearest(index, 1) != 1
        raise psycopg.Rollback
    assert nearest(index, 1000) != 1000
    assert nearest(index, 1) == 1


def test_shards_on_the_coordinator(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """A node that is added, as far as two workers and a coordinator allow: shards are rebalanced onto it."""
    index = built(cluster, owner)
    with shards_on_the_coordinator(cluster) as superuser:
        superuser.execute("SELECT rebalance_table_shards('digit', shard_transfer_mode => 'block_writes')")
        on_it = "SELECT count(*) FROM citus_shards WHERE table_name = 'digit'::regclass AND nodeport = %s"
        assert owner.execute(on_it, [owner.info.port]).fetchone()[0] > 0
        for writer in (owner, cluster.on_worker(0)):
            first = 400 if writer is owner else 430
            insert(writer, range(first, first + 30))
            writer.execute("DELETE FROM digit WHERE id = %s", [first - 395])
        for _ in ("inbox", "lists"):
            assert [nearest(index, number) for number in range(400, 460, 7)] == list(range(400, 460, 7))
            assert nearest(index, 5) not in (5, None)
            assert {m.key for m in index.search(digits()[0][3], 1000)} == set(range(460)) - {5, 35}
            updater.update(cluster.dsn(), "digits")
        sound(owner)
    assert nearest(index, 431) == 431
    sound(owner)


def test_a_split_shard(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    shard, low, high, node = owner.execute(
        "SELECT s.shardid, s.shardminvalue::int, s.shardmaxvalue::int, n.nodeid FROM pg_dist_shard s"
        " JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)"
        " WHERE s.logicalrelid = 'digit'::regclass ORDER BY s.shardid LIMIT 1"
    ).fetchone()
    insert(owner, range(400, 420))
    cluster.connect(None).execute(
        "SELECT citus_split_shard_by_split_points(%s, ARRAY[%s], ARRAY[%s, %s]::int[], 'block_writes')",
        [shard, str((low + high) // 2), node, node],
    )
    insert(owner, range(420, 440))
    for _ in ("before", "after"):
        assert [nearest(index, number) for number in (1, 401, 421)] == [1, 401, 421]
        assert {m.key for m in index.search(digits()[0][3], 1000)} == set(range(440))
        updater.update(cluster.dsn(), "digits")
    assert index.search(digits()[0][3], 3)[0].distance is not None
    sound(owner)


def test_default_privileges_do_not_open_the_inbox(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """A role that may read whatever table comes into the schema, but only some rows of this one."""
    shards = "SELECT shardid FROM pg_dist_shard WHERE logicalrelid = 'foh_digits_inbox'::regclass"
    default = "ALTER DEFAULT PRIVILEGES IN SCHEMA public {} ON TABLES {} app_reader"
    functions = "ALTER DEFAULT PRIVILEGES IN SCHEMA public {} EXECUTE ON FUNCTIONS {} app_reader"
    owner.execute(default.format("GRANT SELECT, INSERT, DELETE", "TO"))
    owner.execute(functions.format("GRANT", "TO"))
    try:
        built(cluster, owner)
    finally:
        owner.execute(default.format("REVOKE ALL", "FROM"))
        owner.execute(functions.format("REVOKE", "FROM"))
    owner.execute("ALTER TABLE digit ENABLE ROW LEVEL SECURITY")
    insert(owner, range(400, 420))
    reader = cluster.connect("app_reader")
    assert reader.execute("SELECT count(*) FROM digit").fetchone() == (0,)
    for statement in (
        "SELECT x FROM foh_digits_inbox",
        "DELETE FROM foh_digits_inbox",
        "INSERT INTO foh_digits_token VALUES (-1)",
        "SELECT foh_digits_waiting('{}', '{}', NULL, 1)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(statement.encode())
    tried = 0
    for number in (0, 1):
        on_node = cluster.on_worker(number, "app_reader")
        for (shard,) in owner.execute(shards).fetchall():
            if on_node.execute(f"SELECT to_regclass('foh_digits_inbox_{shard}')").fetchone() != (None,):
                tried += 1
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    on_node.execute(f"SELECT x FROM foh_digits_inbox_{shard}".encode())
    assert tried == 4
    # Who is granted a search afterwards can search, and keeps that.
    owner.execute("SELECT foh.grant('digits', reader => 'app_reader')")
    owner.execute("SELECT foh.refresh('digits')")
    owner.execute("CREATE POLICY odd ON digit USING (id % 2 = 1)")
    assert nearest(Index.open(reader, "digits"), 401) == 401


def test_a_statement_of_the_caller_never_runs_as_the_owner(
    cluster: Cluster, owner: psycopg.Connection[Any]
) -> None:
    """Where the coordinator has shards, the session of the caller is that in which a search is prepared."""
    with shards_on_the_coordinator(cluster):
        index = built(cluster, owner)
        owner.execute("SELECT foh.grant(updater => 'app_writer')")
        query = digits()[0][5]
        expected = [match.key for match in index.search(query, 5)]
        (planted,) = owner.execute(
            "SELECT name FROM pg_prepared_statements WHERE name LIKE 'foh_%' AND NOT from_sql IS FALSE"
        ).fetchone()
        (setting,) = owner.execute(f"SELECT current_setting('foh.{planted}')").fetchone()
        writer = cluster.connect("app_writer")
        writer.execute("SELECT set_config(%s, %s, false)", [f"foh.{planted}", setting])
        writer.execute(
            f"""PREPARE {planted} (extensions.vector, jsonb, bigint[], bigint[], float8, int[]) AS
                SELECT ARRAY['{{-9}}', '{{1}}', '{{-7}}']"""
        )
        call = "SELECT foh.digits_answer(%s::extensions.vector, 5)"
        for _ in range(2):
            assert writer.execute(call, [vector(query)]).fetchone() == (expected,)
        # It is left to whoever made it.
        assert (
            writer.execute(f"EXECUTE {planted} (NULL, NULL, NULL, NULL, NULL, NULL)").fetchone() is not None
        )


def test_conditions_on_included_columns(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    """The same rows as by SQL's WHERE, whether they wait on a node, in the stream, or are in the lists."""
    distribute(owner)
    insert(owner, range(400))
    owner.execute("UPDATE digit SET price = id % 10 WHERE id % 7 > 0")
    owner.execute("UPDATE digit SET price = NULL WHERE id % 13 = 0")
    index = build_index(cluster, owner, include="{price,id}")
    conditions: dict[str, dict[str, Any]] = {
        "price = 3": {"price": 3},
        "price IN (2, 4) OR price IS NULL": {"price": [2, 4, None]},
        "price > 2 AND price <= 5": {"price": {">": 2, "<=": 5}},
        "price <> 3 AND label = '7'": {"price": {"not": 3}, "labels": {"any": ["7"]}},
        "NOT label = '7' AND price = 1": {"price": 1, "labels": {"none": ["7"]}},
        "id = 17": {"id": 17},
        "id IN (17, 18, 19, 1003)": {"id": [17, 18, 19, 1003]},
        "id = -1": {"id": -1},
    }
    for step in ("lists", "inbox", "stream", "updated"):
        if step == "inbox":
            insert(owner, range(1000, 1040))
            # A column that is included is noted where it alone has changed.
            assert inbox(owner) == 40
            owner.execute("UPDATE digit SET price = 3 WHERE id BETWEEN 20 AND 24")
            owner.execute("UPDATE digit SET price = 1 WHERE id > 1000")
            assert inbox(owner) == 40 + 4 + 39  # row 23 has the price 3 already
        elif step == "stream":
            pull(owner)
        elif step == "updated":
            updater.update(cluster.dsn(), "digits")
        for where, match in conditions.items():
            right = {key for (key,) in owner.execute(f"SELECT id FROM digit WHERE {where}")}
            found = [row.key for row in index.search(digits()[0][5], 600, labels=0, match=match)]
            assert sorted(found) == sorted(right), (step, where)
            if where != "id = -1":
                best = index.search(digits()[0][5], 5, labels=0, match=match, recall=0.99)
                exact = owner.execute(
                    f"SELECT id FROM digit WHERE {where} ORDER BY embedding OPERATOR(extensions.<=>) %s LIMIT 5",
                    [vector(digits()[0][5])],
                ).fetchall()
                assert len({row.key for row in best} & {key for (key,) in exact}) >= len(exact) - 1, (
                    step,
                    where,
                )
        both = index.search(digits()[0][5], 600, labels=0, match={"price": 3}, filter="id > 100")
        assert {row.key for row in both} == {
            key for (key,) in owner.execute("SELECT id FROM digit WHERE price = 3 AND id > 100")
        }
        sound(owner)
    explained = dict(
        owner.execute(
            "SELECT * FROM foh.digits_explain(%s, match => %s)", [vector(digits()[0][5]), '{"price": 3}']
        ).fetchall()
    )
    assert explained["condition"] == "the lists are asked, then the nodes"
    # A column that was renamed fails no write, and the next update after foh.refresh follows.
    owner.execute("ALTER TABLE digit RENAME COLUMN price TO cost")
    owner.execute("UPDATE digit SET cost = 77 WHERE id = 30")
    owner.execute("SELECT foh.refresh('digits')")
    assert [row.key for row in index.search(digits()[0][5], 5, labels=0, match={"cost": 77})] == [30]
    updater.update(cluster.dsn(), "digits")
    assert [row.key for row in index.search(digits()[0][5], 5, labels=0, match={"cost": 77})] == [30]
    owner.execute("SELECT foh.alter_index('digits', include => '{label}')")
    owner.execute("UPDATE digit SET label = 'odd' WHERE id = 31")
    for _ in ("before", "after"):
        assert [row.key for row in index.search(digits()[0][5], 5, labels=0, match={"label": "odd"})] == [31]
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_a_condition_on_the_key_asks_its_nodes_alone(
    cluster: Cluster, owner: psycopg.Connection[Any]
) -> None:
    distribute(owner)
    insert(owner, range(400))
    build_index(cluster, owner, include="{id}")
    owner.execute("SET citus.log_remote_commands = on; SET client_min_messages = log")
    asked: list[str] = []
    owner.add_notice_handler(lambda notice: asked.append(notice.message_primary or ""))
    counts = {}
    for match in ("null", '{"id": 17}'):
        asked.clear()
        owner.execute(
            "SELECT * FROM foh.digits_search(%s, 1, match => %s)",
            [vector(digits()[0][17]), match if match != "null" else None],
        )
        counts[match] = sum("foh_digits_read" in message for message in asked)
    assert counts == {"null": 2, '{"id": 17}': 1}
