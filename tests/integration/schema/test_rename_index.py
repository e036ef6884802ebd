"""foh.rename_index: another index takes the place of one, and nobody has to change a search."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import errors

from foh_pg import Index
from foh_pg.cli import app
from foh_pg.updater import build, update
from tests.support.digits import create_index, create_table, digits, insert, vector, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

OBJECTS = """
SELECT c.relkind::text, c.relname FROM pg_class c
WHERE c.relnamespace = 'foh'::regnamespace AND c.relkind IN ('r', 'i', 'S', 'c') AND starts_with(c.relname, %(name)s || '_')
UNION ALL SELECT 'f', p.proname FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND starts_with(p.proname, %(name)s || '_')
UNION ALL SELECT 't', t.tgname FROM pg_trigger t WHERE NOT t.tgisinternal AND starts_with(t.tgname, 'foh_' || %(name)s || '_')
ORDER BY 1, 2
"""


def learn(database: Database) -> None:
    connection = database.connect()
    create_table(connection)
    insert(connection, range(400))
    create_index(connection)
    build(database.dsn(), "digits")


pytestmark = pytest.mark.prepared(by=learn)


@pytest.fixture
def learned(connection: Connection) -> Connection:
    return connection


def found(connection: Connection, name: str, row: int = 1600) -> list[Any]:
    return connection.execute(
        f"SELECT * FROM foh.{name}_search(%s::extensions.vector)", [vector(digits()[0][row])]
    ).fetchall()


def objects(connection: Connection, name: str) -> set[tuple[str, str]]:
    rows = connection.execute(OBJECTS, {"name": name}).fetchall()
    return {(kind, object.replace(name, "?", 1)) for kind, object in rows}


def test_all_that_belongs_to_an_index_has_the_new_name(learned: Connection, database: Database) -> None:
    answer, before = found(learned, "digits"), objects(learned, "digits")
    learned.execute("SELECT foh.grant('digits', reader => 'app_reader')")
    learned.execute("GRANT SELECT ON digit TO app_reader")
    learned.execute("SELECT foh.rename_index('digits', 'numbers')")
    assert objects(learned, "digits") == set()
    assert objects(learned, "numbers") == before
    assert found(learned, "numbers") == answer
    assert found(database.connect("app_reader"), "numbers") == answer
    # It goes on to capture, to learn and to keep its promises.
    insert(learned, range(400, 500))
    assert found(learned, "numbers", 450)[0][0] == 450
    assert update(database.dsn(), "numbers").rows == 100
    assert learned.execute("SELECT * FROM foh.check('numbers')").fetchall() == []
    assert learned.execute("SELECT count(*) FROM foh.health() WHERE healthy").fetchone() == (1,)
    learned.execute("SELECT foh.drop_index('numbers')")
    assert objects(learned, "numbers") == set()


def test_another_index_takes_the_place_of_one(learned: Connection, database: Database) -> None:
    """The way to embeddings of another model: a column and an index beside the old ones, then the switch."""
    learned.execute("ALTER TABLE digit ADD COLUMN newer extensions.vector(3)")
    learned.execute("UPDATE digit SET newer = ARRAY[id % 7, id % 11, id % 13]::real[]::extensions.vector")
    learned.execute("SELECT foh.create_index('digits_next', 'digit', 'newer', 'label')")
    build(database.dsn(), "digits_next")
    with learned.transaction():
        learned.execute("SELECT foh.drop_index('digits')")
        learned.execute("SELECT foh.rename_index('digits_next', 'digits')")
    index = Index.open(learned, "digits")
    assert (index.about.embedding, index.about.dimensions) == ("newer", 3)
    assert violations(learned) == []


def test_from_python_and_from_the_command_line(learned: Connection, database: Database) -> None:
    index = Index.open(learned, "digits")
    index.rename("numbers")
    assert len(index.search(digits()[0][0])) == 10
    result = CliRunner().invoke(
        app, ["alter-index", "numbers", "--rename=figures", f"--dsn={database.dsn()}"]
    )
    assert (result.exit_code, result.stderr) == (0, "index 'numbers' is now 'figures'\n")
    assert len(found(learned, "figures")) == 10


def test_names_that_cannot_be(learned: Connection) -> None:
    for name, error in {"digits": "exists already", "Digits!": "cannot be the name of an index"}.items():
        with pytest.raises(psycopg.Error, match=error):
            learned.execute("SELECT foh.rename_index('digits', %s)", [name])
    with pytest.raises(errors.UndefinedObject, match="there is no index 'other'"):
        learned.execute("SELECT foh.rename_index('other', 'numbers')")


def test_an_index_whose_name_begins_with_the_name_stays(learned: Connection) -> None:
    learned.execute("SELECT foh.create_index('digits_two', 'digit', 'embedding')")
    before = objects(learned, "digits_two")
    learned.execute("SELECT foh.rename_index('digits', 'numbers')")
    assert objects(learned, "digits_two") == before


@pytest.mark.prepared(by=None)
def test_keys_of_several_columns(connection: Connection, database: Database) -> None:
    connection.execute(
        "CREATE TABLE part (shop int, number int, embedding extensions.vector(2), label text, PRIMARY KEY (shop, number))"
    )
    connection.execute("SELECT foh.create_index('parts', 'part', 'embedding', 'label')")
    connection.execute(
        "INSERT INTO part SELECT i % 3, i, ARRAY[i, 1]::real[]::extensions.vector, 'a' FROM generate_series(1, 50) i"
    )
    update(database.dsn(), "parts")
    before = objects(connection, "parts")
    connection.execute("SELECT foh.rename_index('parts', 'pieces')")
    assert objects(connection, "parts") == set()
    assert objects(connection, "pieces") == before
    connection.execute("INSERT INTO part VALUES (7, 7, '[0, 1]', 'b')")
    assert connection.execute("SELECT shop, number FROM foh.pieces_search('[0, 1]', 1)").fetchall() == [
        (7, 7)
    ]
    assert connection.execute("SELECT * FROM foh.check('pieces')").fetchall() == []
