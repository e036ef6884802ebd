"""An UPDATE of included columns alone: the row keeps its bits and its home, and the embedding is not read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from psycopg import IsolationLevel

from foh_pg.updater import build, rebuild, update
from tests.support.postgres import Database
from tests.support.recorded import Connection, adapted, problems, text, vectors

X = vectors(60)
# Nothing that is computed from a row has such marks.
STRANGE = "0101" * 24


class Told(NamedTuple):
    """What the newest entry of a key says."""

    op: str
    version: int
    center: int
    geometry: str | None
    marks: str | None
    price: int | None


@pytest.fixture(params=["statement", "row", "partitioned"])
def triggers(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["int", "text", "row", "text row"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def create(connection: Connection, triggers: str = "statement", kind: str = "int") -> None:
    """Sixty rows in lists, with a key of one column or two."""
    columns = {"int": "id int", "text": "id text", "row": "id int, part int", "text row": "id int, part text"}
    key = "id" if "row" not in kind else "id, part"
    parted = "PARTITION BY HASH (id)" if triggers == "partitioned" else ""
    connection.execute(
        f"CREATE TABLE items ({columns[kind]}, embedding extensions.vector(8), tags text[], price int,"
        f" note int, PRIMARY KEY ({key})) {parted}"
    )
    for part in range(2 if parted else 0):
        connection.execute(
            f"CREATE TABLE items_{part} PARTITION OF items FOR VALUES WITH (MODULUS 2, REMAINDER {part})"
        )
    options = {"exact_rows": 0, "centers": 4} | ({} if parted else {"triggers": triggers})
    connection.execute(
        "SELECT foh.create_index('idx', 'items', 'embedding', 'tags', bits => 32, include => '{price}', options => %s)",
        [adapted(options)],
    )
    connection.cursor().executemany(
        f"INSERT INTO items ({key}, embedding, tags, price) VALUES (%s{', 7' if 'row' in kind else ''}, %s, '{{a}}', 1)",
        [(str(n) if kind == "text" else n, text(x)) for n, x in enumerate(X)],
    )
    build(connection, "idx")


def listed(connection: Connection, key: str = "7") -> tuple[Any, ...]:
    found = connection.execute(
        """SELECT l.center, l.geometry::text, l.marks::text
           FROM (SELECT center, unnest(ids)::text AS key, unnest(geometry) AS geometry, unnest(marks) AS marks FROM foh.idx_list) l
           WHERE l.key IN (%(key)s, '(' || %(key)s || ',7)')""",
        {"key": key},
    ).fetchall()
    assert len(found) == 1
    return tuple(found[0])


def told(connection: Connection, key: str = "7") -> Told:
    found = connection.execute(
        """SELECT op::text, version, center, geometry::text, marks::text, included_1 FROM foh.idx_stream
           WHERE key::text IN (%(key)s, '(' || %(key)s || ',7)') ORDER BY seq DESC LIMIT 1""",
        {"key": key},
    ).fetchone()
    assert found is not None
    return Told(*found)


def entries(connection: Connection) -> int:
    [(count,)] = connection.execute("SELECT count(*) FROM foh.idx_stream").fetchall()
    return int(count)


def disguise(connection: Connection) -> None:
    """Give the entries of all lists marks by which they are known."""
    connection.execute(
        "UPDATE foh.idx_list SET marks = array_fill(%s::varbit::bit(96), ARRAY[cardinality(ids)])", [STRANGE]
    )


def wrong(connection: Connection) -> list[Any]:
    """What foh.check says, apart from the marks, which may be disguised."""
    return [found for found in problems(connection) if "codes" not in found[0]]


def reprice(connection: Connection, key: int = 7, price: int = 5) -> None:
    connection.execute("UPDATE items SET price = %s WHERE id::text = %s", [price, str(key)])


def priced(connection: Connection, price: int) -> set[int]:
    found = connection.execute(
        "SELECT id FROM foh.idx_search(%s, 60, match => %s)", [text(X[7]), adapted({"price": price})]
    )
    return {int(key) for (key,) in found}


def test_bits_and_home_are_those_of_the_list(connection: Connection, triggers: str, kind: str) -> None:
    create(connection, triggers, kind)
    center, geometry, _ = listed(connection)
    disguise(connection)
    version = connection.execute("SELECT version FROM foh.index").fetchall()[0][0]
    reprice(connection)
    assert told(connection) == Told("u", version, center, geometry, STRANGE, 5)
    assert entries(connection) == 1
    assert priced(connection, 5) == {7}
    assert wrong(connection) == []
    update(connection, "idx")
    assert entries(connection) == 0
    assert priced(connection, 5) == {7}
    assert wrong(connection) == []


def test_many_rows_at_once(connection: Connection, triggers: str) -> None:
    create(connection, triggers)
    disguise(connection)
    connection.execute(
        "UPDATE items SET price = 5, embedding = CASE WHEN id = 3 THEN %s ELSE embedding END", [text(X[4])]
    )
    assert entries(connection) == 60
    marks = {key: told(connection, str(key)).marks == STRANGE for key in range(60)}
    assert marks == {key: key != 3 for key in range(60)}
    assert told(connection, "3").geometry == listed(connection, "4")[1]
    assert priced(connection, 5) == set(range(60))


def test_the_newest_entry_of_the_stream_comes_before_the_list(
    connection: Connection, triggers: str, kind: str
) -> None:
    create(connection, triggers, kind)
    disguise(connection)
    connection.execute("UPDATE items SET embedding = %s WHERE id::text = '7'", [text(X[9])])
    moved = told(connection)
    reprice(connection)
    assert told(connection) == moved._replace(price=5)
    assert moved.marks != STRANGE
    reprice(connection, price=6)
    assert told(connection) == moved._replace(price=6)
    assert wrong(connection) == []


def test_a_row_of_which_only_the_key_is_queued_stays_so(connection: Connection, triggers: str) -> None:
    create(connection, triggers)
    connection.execute("SET foh.defer = on")
    connection.execute("UPDATE items SET embedding = %s WHERE id = 7", [text(X[9])])
    connection.execute("SET foh.defer = off")
    reprice(connection)
    assert told(connection) == Told("u", 0, 0, None, None, 5)
    assert priced(connection, 5) == {7}
    assert wrong(connection) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE items SET price = 5, embedding = '[8,7,6,5,4,3,2,1]' WHERE id = 7",
        "UPDATE items SET price = 5, tags = '{b}' WHERE id = 7",
        "UPDATE items SET price = 5, id = 77 WHERE id = 7; UPDATE items SET id = 7 WHERE id = 77",
        # A row that the lists have, and whose newest entry says that it is gone.
        "DELETE FROM items WHERE id = 7; INSERT INTO items (id, embedding, tags, price) SELECT 7, embedding, tags, 5 FROM items WHERE id = 8",
        # Lists and stream say nothing any more.
        "TRUNCATE items; SET session_replication_role = replica; INSERT INTO items (id, embedding) SELECT 7, '[1,2,3,4,5,6,7,8]';"
        " RESET session_replication_role; UPDATE items SET price = 5 WHERE id = 7",
        "INSERT INTO foh.idx_stream (op, version, center) VALUES ('r', 0, 0); UPDATE items SET price = 5 WHERE id = 7",
        "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE items SET price = 5 WHERE id = 7; COMMIT",
    ],
)
def test_otherwise_the_row_is_placed(
    connection: Connection, superuser: Connection, triggers: str, change: str
) -> None:
    create(connection, triggers)
    disguise(connection)
    # Only a superuser may write without triggers.
    superuser.execute(change)
    found = told(superuser)
    assert (found.op, found.price) == ("u", 5)
    assert found.geometry is not None
    assert found.marks is not None
    assert found.marks != STRANGE


def test_a_row_without_an_embedding(connection: Connection, triggers: str) -> None:
    create(connection, triggers)
    connection.execute("UPDATE items SET embedding = NULL WHERE id = 7")
    reprice(connection)
    assert told(connection).op == "d"
    assert priced(connection, 5) == set()
    assert wrong(connection) == []


@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ])
@pytest.mark.parametrize("work", [update, rebuild])
def test_a_writer_that_began_before_an_update(
    connection: Connection, database: Database, triggers: str, level: IsolationLevel, work: Any
) -> None:
    """Its entry tells bits and home as its snapshot shows them, and searches find the row by them."""
    create(connection, triggers)
    connection.execute("UPDATE items SET embedding = %s WHERE id = 9", [text(X[10])])
    writer = database.connect(autocommit=False)
    writer.isolation_level = level
    writer.execute("SELECT count(*) FROM foh.index")
    reprice(writer)
    work(database.dsn(), "idx")
    reprice(writer, key=8)
    reprice(writer, key=9)
    writer.commit()
    assert priced(connection, 5) == {7, 8, 9}
    assert wrong(connection) == []
    update(connection, "idx")
    assert priced(connection, 5) == {7, 8, 9}
    assert wrong(connection) == []


def test_a_column_that_is_not_included_is_not_recorded(connection: Connection, triggers: str) -> None:
    create(connection, triggers)
    connection.execute("UPDATE items SET note = 3, price = price, tags = tags")
    assert entries(connection) == 0


def test_a_row_that_changes_all_the_time(connection: Connection, triggers: str) -> None:
    """However many entries it has, the newest alone is read."""
    create(connection, triggers)
    read = "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'idx_stream'"
    with connection.transaction():
        for price in range(300):
            reprice(connection, price=price)
        [(before,)] = connection.execute(read).fetchall()
        reprice(connection)
        [(after,)] = connection.execute(read).fetchall()
    assert after - before <= 2
    assert told(connection).price == 5


def test_two_writers_of_one_row(connection: Connection, database: Database, triggers: str) -> None:
    """The second waits for the first, and then takes the bits that the first has written."""
    create(connection, triggers)
    first, second = database.connect(autocommit=False), database.connect()
    first.execute("UPDATE items SET embedding = %s WHERE id = 7", [text(X[9])])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(reprice, second)
        while not connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
            assert not waiting.done()
        first.commit()
        waiting.result()
    assert told(connection).geometry == listed(connection, "9")[1]
    assert wrong(connection) == []
