"""What administrators do to schemas and extensions afterwards: no write of the application fails for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors

from foh_pg.errors import FohError
from foh_pg.schema.migrations import migrate
from foh_pg.updater.update import update
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]
TYPES = {"vector": "public.vector(3)", "halfvec": "public.halfvec(3)", "real[]": "real[]"}


@pytest.fixture(
    params=[("vector", "statement"), ("vector", "row"), ("halfvec", "statement"), ("real[]", "row")],
    ids=" by ".join,
)
def hardened(copy_of: Callable[..., Database], request: pytest.FixtureRequest) -> Database:
    """pgvector in public, as CREATE EXTENSION puts it, and the application's table in a schema of its own."""
    database = copy_of(install, template="template1")
    create_index(database, *request.param)
    write(database, 1)
    return database


def install(database: Database) -> None:
    superuser = database.connect(None)
    superuser.execute("CREATE EXTENSION vector SCHEMA public")
    superuser.execute("CREATE SCHEMA app AUTHORIZATION app_owner; GRANT USAGE ON SCHEMA app TO PUBLIC")
    migrate(superuser, owner="app_owner")


def create_index(database: Database, kind: str, form: str) -> None:
    owner = database.connect()
    owner.execute(f"CREATE TABLE app.items (id int PRIMARY KEY, embedding {TYPES[kind]}, tags text[])")
    owner.execute(
        """SELECT foh.create_index('idx', 'app.items', 'embedding', labels => 'tags', bits => 16, dimensions => 3,
                                   options => jsonb_build_object('triggers', %s::text))""",
        [form],
    )
    owner.execute("GRANT ALL ON app.items TO app_writer; GRANT SELECT ON app.items TO app_reader")
    owner.execute("SELECT foh.grant('idx', reader => 'app_reader')")


def write(database: Database, start: int) -> list[str]:
    """Every kind of write, in a new session and with plans that an old one has cached; the warnings."""
    said: list[str] = []
    for role in ("app_owner", "app_writer"):
        connection = database.connect(role)
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        for key in range(start, start + 3):
            connection.execute(
                "INSERT INTO app.items (id, embedding, tags) SELECT %s, e.embedding, '{a}' FROM (SELECT embedding "
                "FROM app.items UNION ALL SELECT NULL LIMIT 1) e",
                [key],
            )
        connection.execute("UPDATE app.items SET tags = '{b}' WHERE id = %s", [start])
        connection.execute("UPDATE app.items SET embedding = NULL, id = -id WHERE id = %s", [start + 1])
        connection.execute("DELETE FROM app.items WHERE id IN (%s, %s)", [start + 2, -start - 1])
        connection.execute("DELETE FROM app.items WHERE id = %s", [start])
        connection.close()
    return said


def fill(database: Database) -> None:
    vector = "[1,2,3]" if "[]" not in type_of(database) else "{1,2,3}"
    database.connect().execute(
        "INSERT INTO app.items SELECT n, %s, '{a}' FROM generate_series(101, 120) n", [vector]
    )


def type_of(database: Database) -> str:
    (found,) = database.connect(None).execute("SELECT embedding_type FROM foh.index").fetchone() or ("",)
    return str(found)


def status(database: Database, role: str | None = None) -> str:
    (found,) = database.connect(role).execute("SELECT status FROM foh.index_stat").fetchone() or ("",)
    return str(found)


@pytest.mark.one_version(but={"hardened": [("vector", "statement"), ("real[]", "row")]})
def test_public_is_closed(hardened: Database) -> None:
    superuser, session = hardened.connect(None), hardened.connect("app_writer")
    fill(hardened)
    session.execute("DELETE FROM app.items WHERE id = 120")
    superuser.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC, app_owner")
    session.execute("DELETE FROM app.items WHERE id = 119")
    assert any("rows are queued" in message for message in write(hardened, 1))
    for role in (None, "app_owner"):
        assert "may not use the schema of pgvector" in status(hardened, role)
        (found,) = hardened.connect(role).execute("SELECT problem FROM foh.check('idx')").fetchone()
        assert found.endswith("run GRANT USAGE ON SCHEMA public TO app_owner")
    with pytest.raises(
        (FohError, psycopg.Error), match=r"GRANT USAGE ON SCHEMA public TO app_owner|schema public"
    ):
        update(hardened.dsn(), "idx")
    with pytest.raises(errors.InsufficientPrivilege, match="lacks rights") as caught:
        hardened.connect().execute("SELECT foh.refresh('idx')")
    assert caught.value.diag.message_hint == "GRANT USAGE ON SCHEMA public TO app_owner;"
    # Who searches must be able to name the type of the query in any case.
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for schema public"):
        hardened.connect("app_reader").execute("SELECT * FROM foh.idx_search('[1,2,3]', 3)")
    superuser.execute("GRANT USAGE ON SCHEMA public TO app_owner, app_reader")
    hardened.connect().execute("SELECT foh.refresh('idx')")
    assert write(hardened, 10) == []
    update(hardened.dsn(), "idx")
    assert status(hardened) == "ready"
    found = hardened.connect("app_reader").execute("SELECT * FROM foh.idx_search('[1,2,3]', 30)").fetchall()
    assert len(found) == 18
    assert hardened.connect().execute("SELECT * FROM foh.check('idx')").fetchall() == []


@pytest.mark.one_version(but={"hardened": [("vector", "statement"), ("real[]", "row")]})
@pytest.mark.parametrize(
    "how", ["ALTER EXTENSION vector SET SCHEMA other", "ALTER SCHEMA public RENAME TO other"]
)
def test_pgvector_moves(hardened: Database, how: str) -> None:
    superuser, session, reader = (
        hardened.connect(None),
        hardened.connect("app_writer"),
        hardened.connect("app_reader"),
    )
    fill(hardened)
    session.execute("DELETE FROM app.items WHERE id = 120")
    reader.execute("SELECT * FROM foh.idx_search('[1,2,3]', 3)")
    if "EXTENSION" in how:
        superuser.execute("CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO PUBLIC")
    superuser.execute(how.encode())
    session.execute("DELETE FROM app.items WHERE id = 119")
    assert any("rows are queued" in message for message in write(hardened, 1))
    assert "pgvector has moved to another schema: run SELECT foh.refresh('idx')" in status(
        hardened, "app_owner"
    )
    with pytest.raises(FohError, match=r"foh\.refresh"):
        update(hardened.dsn(), "idx")
    for connection in (reader, hardened.connect("app_reader")):
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="has changed"):
            connection.execute("SELECT * FROM foh.idx_search('[1,2,3]', 3)")
    hardened.connect().execute("SELECT foh.refresh('idx')")
    assert write(hardened, 10) == []
    update(hardened.dsn(), "idx")
    assert len(reader.execute("SELECT * FROM foh.idx_search('[1,2,3]', 30)").fetchall()) == 18
    assert status(hardened) == "ready"
    assert hardened.connect().execute("SELECT * FROM foh.check('idx')").fetchall() == []
