"""foh.check says nothing where nothing is wrong, whatever goes on meanwhile and however the session is set."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from foh_pg import Index
from foh_pg.updater import build, rebuild, update
from tests.support.digits import create_index, create_table, digits, insert, vector, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


@pytest.fixture
def digit(connection: Connection) -> Connection:
    create_table(connection)
    create_index(connection, options='{"learn_rows": 100}')
    insert(connection, range(300))
    update(connection, "digits")
    return connection


@pytest.mark.one_version(but={"how": ["check"]})
@pytest.mark.parametrize("how", ["check", "repair", "parts"])
def test_while_the_table_is_truncated(
    digit: Connection, database: Database, superuser: Connection, how: str
) -> None:
    """It waits for the TRUNCATE, whose rows are gone for older snapshots, too."""
    writer, reader = database.connect(autocommit=False), database.connect()
    writer.execute("TRUNCATE digit")
    insert(writer, range(300, 400))
    said: list[Any] = []
    call = {
        "check": "SELECT * FROM foh.check('digits')",
        "repair": "SELECT * FROM foh.repair('digits') WHERE missing + gone + changed > 0",
        "parts": "SELECT * FROM foh.check('digits', 1, 3)",
    }[how]
    thread = threading.Thread(target=lambda: said.append(reader.execute(call.encode()).fetchall()))
    thread.start()
    waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
    while thread.is_alive() and superuser.execute(waits, [reader.info.backend_pid]).fetchone() != (1,):
        thread.join(0.01)
    writer.commit()
    thread.join()
    assert said == [[]]


def test_with_quoted_identifiers(digit: Connection) -> None:
    digit.execute("SET quote_all_identifiers = on")
    assert violations(digit) == []
    assert digit.execute("SELECT status FROM foh.index_stat").fetchone() == ("ready",)
    insert(digit, range(300, 310))
    digit.execute("SELECT foh.refresh('digits')")
    insert(digit, range(310, 320))
    assert digit.execute("SELECT count(*) FROM foh.digits_stream WHERE geometry IS NULL").fetchone() == (0,)
    digit.execute("RESET quote_all_identifiers")
    insert(digit, range(320, 330))
    assert digit.execute("SELECT count(*) FROM foh.digits_stream WHERE geometry IS NULL").fetchone() == (0,)
    assert violations(digit) == []


def test_clients_with_quoted_identifiers(connection: Connection, database: Database) -> None:
    """Of a key whose type is a name that would be quoted."""
    create_table(connection, key="uuid")
    write = "INSERT INTO digit SELECT md5(%s::text)::uuid, %s, %s"
    for number in range(60):
        connection.execute(write, [number, vector(digits()[0][number]), str(digits()[1][number])])
    create_index(connection, options='{"exact_rows": 0}')
    dsn = make_conninfo(database.dsn(), options="-c quote_all_identifiers=on")
    build(dsn, "digits")
    for number in range(60, 80):
        connection.execute(write, [number, vector(digits()[0][number]), str(digits()[1][number])])
    update(dsn, "digits")
    assert violations(connection) == []
    with psycopg.connect(dsn) as quoted:
        index = Index.open(quoted, "digits")
        [nearest] = index.search(digits()[0][70], 1, labels=0)
        assert [match.key for match in index.search_like(nearest.key, 5)] != []


@pytest.mark.one_version
def test_serializable(connection: Connection) -> None:
    """A writer does not look labels of another table up; who checks and repairs does."""
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(64))")
    connection.execute("CREATE TABLE tag (id int, name text, PRIMARY KEY (id, name))")
    for number in range(300):
        connection.execute("INSERT INTO item VALUES (%s, %s)", [number, vector(digits()[0][number])])
        connection.execute("INSERT INTO tag VALUES (%s, %s)", [number, str(digits()[1][number])])
    connection.execute(
        "SELECT foh.create_index('digits', 'item', 'embedding', labels => 'name', labels_from => 'tag', labels_key => 'id', bits => 32)"
    )
    build(connection, "digits")
    connection.execute("SET default_transaction_isolation = 'serializable'")
    assert violations(connection) == []
    assert connection.execute("SELECT * FROM foh.repair('digits')").fetchone() == (0, 0, 0)


@pytest.mark.one_version
@pytest.mark.parametrize("options", ['{"max_stale": 0.001}', '{"budget": 10}'])
def test_after_alter_index(digit: Connection, options: str) -> None:
    digit.execute("SELECT foh.alter_index('digits', %s)", [options])
    assert violations(digit) == []
    update(digit, "digits")
    assert violations(digit) == []


@pytest.mark.one_version
@pytest.mark.parametrize("labels", ["label", None])
def test_an_only_row(connection: Connection, database: Database, labels: str | None) -> None:
    """The row is the mean: rounding alone decides its bits."""
    create_table(connection)
    insert(connection, [7])
    create_index(connection, labels=labels, distance="l2")
    build(database.dsn(), "digits")
    assert violations(connection) == []
    rebuild(database.dsn(), "digits")
    assert violations(connection) == []
