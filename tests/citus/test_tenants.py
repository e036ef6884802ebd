"""Keys of several columns on tables that are distributed by one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from pgvector.sqlalchemy import VECTOR
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from foh_pg import Index, updater
from foh_pg.sqlalchemy import FOHIndex, foh_search, select_nearest
from tests.citus.conftest import Cluster
from tests.support import distributed
from tests.support.digits import create_index, digits, vector
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

TENANTS = 8
INCLUDED = "{tenant,price}"


class Base(DeclarativeBase):
    pass


class Digit(Base):
    __tablename__ = "digit"

    tenant: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(primary_key=True)
    embedding: Mapped[Any] = mapped_column(VECTOR(64))
    label: Mapped[str] = mapped_column(sa.Text)
    price: Mapped[int]

    __table_args__ = (FOHIndex("digits", embedding, labels=label, bits=32, include=[tenant]),)


def key_of(number: int) -> tuple[int, int]:
    """The ids of a tenant are unique among its rows alone."""
    return number % TENANTS, number // TENANTS


def keys_of(numbers: Any) -> set[tuple[int, int]]:
    return {key_of(number) for number in numbers}


def insert(connection: psycopg.Connection[Any], numbers: Any) -> None:
    data, target = digits()
    with (
        connection.transaction(),
        connection.cursor().copy("COPY digit (tenant, id, embedding, label) FROM STDIN") as copy,
    ):
        for number in numbers:
            copy.write_row((*key_of(number), vector(data[number]), str(target[number])))


def distribute(owner: psycopg.Connection[Any], by: str = "tenant", tenant: str = "int") -> None:
    distributed.distribute(owner, f"id bigint, tenant {tenant}, PRIMARY KEY (tenant, id)", by)


def built(cluster: Cluster, owner: psycopg.Connection[Any], rows: int = 400, by: str = "tenant") -> Index:
    distribute(owner, by)
    insert(owner, range(rows))
    return build_index(cluster, owner, include=INCLUDED)


@pytest.mark.parametrize("by", ["tenant", "id"])
@pytest.mark.parametrize("through", ["coordinator", "worker"])
def test_every_write_is_found_when_it_commits(
    cluster: Cluster, owner: psycopg.Connection[Any], through: str, by: str
) -> None:
    index = built(cluster, owner, by=by)
    vectors = digits()[0]
    writer = owner if through == "coordinator" else cluster.on_worker(1)
    insert(writer, range(400, 460))
    writer.execute("UPDATE digit SET embedding = %s WHERE tenant = 3 AND id = 0", [vector(vectors[1100])])
    writer.execute("DELETE FROM digit WHERE tenant = 4 AND id = 0")
    writer.execute("UPDATE digit SET embedding = NULL WHERE tenant = 5 AND id = 0")
    changed = 3
    if by == "tenant":
        # The other column of the key may change: one row goes, and another comes.
        writer.execute("UPDATE digit SET id = 900 WHERE tenant = 6 AND id = 0")
        changed += 2
    assert inbox(owner) == 60 + changed
    for step in ("inbox", "stream", "lists"):
        if step == "stream":
            pull(owner)
        elif step == "lists":
            updater.update(cluster.dsn(), "digits")
            assert owner.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (0,)
        assert [nearest(index, number) for number in (401, 459, 17)] == [key_of(n) for n in (401, 459, 17)]
        assert nearest(index, 1100) == (3, 0)
        assert nearest(index, 4) not in (key_of(4), None)
        assert nearest(index, 5) not in (key_of(5), None)
        assert nearest(index, 6) == ((6, 900) if by == "tenant" else key_of(6))
        assert nearest(index, 401, shortlist=0) == key_of(401)
        # Of rows whose ids are alike only one was deleted.
        assert nearest(index, 7) == (7, 0)
        sound(owner)
    writer.execute("TRUNCATE digit")
    assert nearest(index, 1) is None
    insert(writer, range(20))
    for _ in ("inbox", "lists"):
        assert nearest(index, 1) == key_of(1)
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_every_way_to_search(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner, 600)
    vectors = digits()[0]
    insert(owner, range(600, 640))
    owner.execute("UPDATE digit SET price = id WHERE id % 3 = 0")
    for pulled in (False, True):
        if pulled:
            updater.update(cluster.dsn(), "digits")
        assert {m.key for m in index.search(vectors[1700], 1000)} == keys_of(range(640))
        some = index.search(
            vectors[3], 15, filter="price = id AND id < (params ->> 'most')::int", params={"most": 60}
        )
        assert len(some) == 15
        assert all(key[1] % 3 == 0 and key[1] < 60 for key in (m.key for m in some))
        assert [[m.key for m in one] for one in index.search_many(vectors[[5, 610]], 1, labels=0)] == [
            [key_of(5)],
            [key_of(610)],
        ]
        assert key_of(5) not in [m.key for m in index.search_like(key_of(5), 8)]
        assert len(index.search_like(key_of(5), 8)) == 8
        assert {m.key for m in index.candidates(vectors[610], probes=10000)} == keys_of(range(640))
    with owner.transaction():
        owner.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert nearest(index, 9) == key_of(9)
    joined = owner.execute(
        "SELECT d.tenant, d.id FROM foh.digits_search(%s, 3, labels => 0) r"
        " JOIN digit d USING (tenant, id) ORDER BY r.score",
        [vector(vectors[9])],
    ).fetchall()
    assert len(joined) == 3
    assert joined[0] == key_of(9)
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(cluster.dsn()))
    with Session(engine) as session:
        near = select_nearest(Digit, vectors[9], k=3, labels=0, filter=Digit.tenant == 1)
        first = session.scalars(near).first()
        assert (first.tenant, first.id) == key_of(9)
        found = foh_search(Digit, vectors[9], k=3, labels=0)
        same = sa.and_(found.c.tenant == Digit.tenant, found.c.id == Digit.id)
        assert len(session.execute(sa.select(Digit.id, found.c.score).join(found, same)).all()) == 3
    engine.dispose()


def test_a_condition_on_the_distribution_column_asks_one_node(
    cluster: Cluster, owner: psycopg.Connection[Any]
) -> None:
    index = built(cluster, owner, 1500)
    insert(owner, range(1500, 1540))
    vectors = digits()[0]
    owner.execute("SET citus.log_remote_commands = on; SET client_min_messages = log")
    said: list[str] = []
    owner.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))

    def nodes(**arguments: Any) -> int:
        """How many nodes were asked to read rows of the lists and of the inbox."""
        said.clear()
        assert nearest(index, 17, **arguments) == key_of(17)
        return sum("foh_digits_read" in message for message in said)

    for _ in ("inbox", "lists"):
        assert nodes() == 2
        assert nodes(match={"tenant": 1}) == 1
        assert nodes(match={"tenant": 1}, filter="price < 0") == 1
        assert nodes(filter="tenant = 1") == 1
        assert nodes(filter="price < 0 AND tenant = (params ->> 'tenant')::int", params={"tenant": 1}) == 1
        # None of these says that all rows are those of one tenant.
        assert nodes(filter="tenant = 1 OR price < 0") == 2
        assert nodes(filter="tenant <> 2") == 2
        assert nodes(filter="tenant IN (SELECT 1)") == 2
        for arguments in ({"match": {"tenant": 1}}, {"filter": "tenant = 1"}):
            found = index.search(vectors[17], 500, labels=0, **arguments)  # type: ignore[arg-type]
            assert {m.key for m in found} == {key for key in keys_of(range(1540)) if key[0] == 1}
        updater.update(cluster.dsn(), "digits")


def test_conditions_are_those_of_sql(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    conditions: dict[str, dict[str, Any]] = {
        "tenant = 3": {"tenant": 3},
        "tenant IN (2, 4, 77)": {"tenant": [2, 4, 77]},
        "tenant >= 6 AND price = 5": {"tenant": {">=": 6}, "price": 5},
        "tenant = 3 AND label = '7'": {"tenant": 3, "labels": {"any": ["7"]}},
        "tenant = -1": {"tenant": -1},
    }
    for step in ("lists", "inbox", "updated"):
        if step == "inbox":
            insert(owner, range(1000, 1040))
            owner.execute("UPDATE digit SET price = 5 WHERE id BETWEEN 20 AND 24")
        elif step == "updated":
            updater.update(cluster.dsn(), "digits")
        for where, match in conditions.items():
            right = owner.execute(f"SELECT tenant, id FROM digit WHERE {where}".encode()).fetchall()
            found = [row.key for row in index.search(digits()[0][5], 600, labels=0, match=match)]
            assert sorted(found) == sorted(right), (step, where)
        sound(owner)


def test_policies_by_the_distribution_column(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    built(cluster, owner)
    owner.execute("ALTER TABLE digit ENABLE ROW LEVEL SECURITY")
    owner.execute("CREATE POLICY one ON digit USING (tenant = 1)")
    owner.execute("GRANT SELECT ON digit TO app_reader")
    owner.execute("SELECT foh.grant('digits', reader => 'app_reader')")
    index = Index.open(cluster.connect("app_reader"), "digits")
    insert(owner, range(400, 420))
    for _ in ("inbox", "lists"):
        assert nearest(index, 401) == key_of(401)
        assert nearest(index, 402)[0] == 1
        assert {m.key for m in index.search(digits()[0][402], 1000)} == {
            key for key in keys_of(range(420)) if key[0] == 1
        }
        updater.update(cluster.dsn(), "digits")


@pytest.mark.parametrize("tenant", ["smallint", "bigint", "uuid", "text", "date", "timestamptz"])
def test_every_type_of_distribution_column(
    cluster: Cluster, owner: psycopg.Connection[Any], tenant: str
) -> None:
    as_tenant = {
        "uuid": "md5(%s::text)::uuid",
        "text": "('no. ' || %s::text)",
        "date": "('2026-01-01'::date + %s::int)",
        "timestamptz": "('2026-01-01 12:00+00'::timestamptz + %s * interval '36.5 hours')",
    }.get(tenant, "%s")
    distribute(owner, tenant=tenant)
    create_index(owner, include=INCLUDED, options=LISTS_ANSWER)
    vectors = digits()[0]
    index = Index.open(owner, "digits")
    write = f"INSERT INTO digit (tenant, id, embedding, label) VALUES ({as_tenant}, %s, %s, 'a')".encode()
    for number in range(60):
        owner.execute(write, [*key_of(number), vector(vectors[number])])
    # The nodes write and read dates by settings of their own. psycopg reads dates in any form, times in ISO's alone.
    owner.execute(
        "SELECT set_config('datestyle', %s, false)", ["SQL, DMY" if tenant == "date" else "ISO, DMY"]
    )
    expected = set(owner.execute("SELECT tenant, id FROM digit").fetchall())
    for _ in ("inbox", "lists"):
        same = f"SELECT ({as_tenant})::{tenant} = %s::{tenant} AND %s = %s".encode()
        found = nearest(index, 11)
        assert owner.execute(same, [key_of(11)[0], found[0], key_of(11)[1], found[1]]).fetchone() == (True,)
        assert {m.key for m in index.search(vectors[0], 100)} == expected
        assert {m.key for m in index.candidates(vectors[0], probes=10000)} == expected
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_a_key_of_four_columns(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    owner.execute(
        "CREATE TABLE part (region text, made date, tenant int, id uuid, embedding extensions.vector(64),"
        ' "a %% b" int, PRIMARY KEY (region, made, tenant, id))'.replace("%%", "%").encode()
    )
    owner.execute("SELECT create_distributed_table('part', 'tenant', colocate_with => 'none')")
    owner.execute("SELECT foh.create_index('parts', 'part', 'embedding', options => '{\"exact_rows\": 0}')")
    write = (
        "INSERT INTO part VALUES (%s, '2026-01-01'::date + %s::int, %s, md5(%s::text)::uuid, %s)"
        " RETURNING region, made, tenant, id"
    )
    keys = [
        owner.execute(write, [f"r{n % 2}", n % 3, n % 5, n, vector(digits()[0][n])]).fetchone()
        for n in range(60)
    ]
    index = Index.open(owner, "parts")
    for _ in ("inbox", "lists"):
        assert [index.search(digits()[0][n], 1)[0].key for n in (3, 30, 59)] == [keys[n] for n in (3, 30, 59)]
        assert {m.key for m in index.search(digits()[0][0], 100)} == set(keys)
        updater.update(cluster.dsn(), "parts")
    assert owner.execute("SELECT * FROM foh.check('parts')").fetchall() == []


def test_labels_are_learned_and_suggested(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner, 1200)
    assert index.status()["trained"]
    vectors, labels = digits()
    by_key = {key_of(number): labels[number] for number in range(1500)}
    insert(owner, range(1200, 1500))
    updater.update(cluster.dsn(), "digits", batch_size=100)
    hits = [
        np.mean([by_key[m.key] == labels[number] for m in index.search(vectors[number], 10)])
        for number in range(1500, 1540)
    ]
    assert np.mean(hits) > 0.85
    right = [index.labels(vectors[number], 1)[0].label == str(labels[number]) for number in range(1500, 1540)]
    assert np.mean(right) > 0.8
    owner.execute("UPDATE digit SET label = NULL WHERE id = 3 AND tenant < 4")
    first = index.suggest(1, rows=3)
    assert [one.key for one in first] == [(0, 3), (1, 3), (2, 3)]
    rest = index.suggest(1, rows=3, after_key=first[-1].key)
    assert [one.key for one in rest] == [(3, 3)]
    updater.rebuild(cluster.dsn(), "digits")
    sound(owner)


def test_another_unique_index_than_the_primary_key(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    distribute(owner)
    owner.execute("ALTER TABLE digit ALTER COLUMN price SET NOT NULL")
    owner.execute("CREATE UNIQUE INDEX ON digit (price, tenant)")
    for number in range(40):
        owner.execute(
            "INSERT INTO digit VALUES (%s, %s, %s, 'a', %s)",
            [key_of(number)[1], key_of(number)[0], vector(digits()[0][number]), 100 + number],
        )
    index = build_index(cluster, owner, key="{tenant,price}")
    insert_one = "INSERT INTO digit VALUES (100, 1, %s, 'a', 7)"
    owner.execute(insert_one, [vector(digits()[0][50])])
    for _ in ("inbox", "lists"):
        assert nearest(index, 11) == (111, key_of(11)[0])
        assert nearest(index, 50) == (7, 1)
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_altered_columns_of_the_key_fail_no_write(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    index = built(cluster, owner)
    owner.execute("ALTER TABLE digit RENAME COLUMN id TO number")
    owner.execute(
        "INSERT INTO digit (tenant, number, embedding) VALUES (1, 5000, %s)", [vector(digits()[0][1000])]
    )
    owner.execute("DELETE FROM digit WHERE tenant = 2 AND number = 0")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed"):
        nearest(index, 1000)
    owner.execute("SELECT foh.refresh('digits')")
    index = Index.open(owner, "digits")
    for _ in ("before", "after"):
        assert nearest(index, 1000) == (1, 5000)
        assert nearest(index, 2) != (2, 0)
        updater.update(cluster.dsn(), "digits")
    sound(owner)


def test_a_table_that_is_distributed_later(cluster: Cluster, owner: psycopg.Connection[Any]) -> None:
    create_table(owner, "id bigint, tenant int, PRIMARY KEY (tenant, id)")
    insert(owner, range(300))
    build_index(cluster, owner, include=INCLUDED)
    for event in ("insert", "update", "delete", "truncate"):
        owner.execute(f"DROP TRIGGER foh_digits_{event} ON digit".encode())
    distribute_existing(owner, "tenant")
    owner.execute("SELECT foh.refresh('digits')")
    index = Index.open(owner, "digits")
    insert(owner, range(300, 340))
    for _ in ("before", "after"):
        assert [nearest(index, number) for number in (1, 301, 321)] == [key_of(n) for n in (1, 301, 321)]
        updater.update(cluster.dsn(), "digits")
    sound(owner)
