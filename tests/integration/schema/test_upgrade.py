"""From one version of the package to the next, which is made up here: another revision, other functions, other templates."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foh_pg.schema import files, installed, migrations, script
from foh_pg.schema.migrations import migrate, offline
from foh_pg.updater import build, update
from tests.support.catalog import dump
from tests.support.postgres import Database, install_pgvector

Connection = psycopg.Connection[Any]

SCRIPT = """
from foh_pg.schema.script import apply

revision = "0002"
down_revision = "0001"


def upgrade(op):
    apply(op, "0002_notes.sql")


def downgrade(op):
    apply(op, "0002_down.sql")
"""
GONE = "CREATE OR REPLACE FUNCTION foh.gone() RETURNS int LANGUAGE sql AS 'SELECT 1';"
ADDED = "CREATE OR REPLACE FUNCTION foh.added(x @vector@.vector) RETURNS int LANGUAGE sql AS 'SELECT 2';"
QUERY = "SELECT id FROM foh.{}_search('[1,2,3]', 3)"


class Versions:
    """Copies of migrations/ and sql/ as two versions of the package have them."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.monkeypatch = directory, monkeypatch
        for version in ("old", "new"):
            for name in ("migrations", "sql"):
                shutil.copytree(files.folder(name), directory / version / name)
        old, new = directory / "old", directory / "new"
        (old / "sql/shared/gone.sql").write_text(GONE)
        (new / "sql/shared/added.sql").write_text(ADDED)
        (new / "migrations/versions/0002_notes.py").write_text(SCRIPT)
        (new / "migrations/sql/0002_notes.sql").write_text(
            "CREATE TABLE foh.note (x @vector@.vector);\nALTER TABLE foh.run ADD COLUMN remark text;"
        )
        (new / "migrations/sql/0002_down.sql").write_text(
            "ALTER TABLE foh.run DROP COLUMN remark;\nDROP TABLE foh.note;"
        )
        candidates = new / "sql/index/explain.sql"
        before = candidates.read_text()
        after = before.replace("probes int DEFAULT NULL)", "probes int DEFAULT NULL, salt int DEFAULT 0)")
        assert after != before
        candidates.write_text(after)

    def use(self, version: str) -> None:
        self.monkeypatch.setattr(files, "folder", lambda name: self.directory / version / name)
        installed.revisions.cache_clear()
        migrations._scripts.cache_clear()


@pytest.fixture
def versions(tmp_path: Path) -> Iterator[Versions]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        versions = Versions(tmp_path, monkeypatch)
        versions.use("old")
        yield versions
    installed.revisions.cache_clear()
    migrations._scripts.cache_clear()


def install_old(database: Database) -> None:
    """The old version, with two indexes, one of them built, and roles that may search and update."""
    superuser = database.connect(None)
    install_pgvector(superuser)
    superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
    migrate(superuser, owner="app_owner")
    owner = database.connect()
    for name in ("built", "unbuilt"):
        owner.execute(
            f"CREATE TABLE {name}_items (id int PRIMARY KEY, embedding extensions.vector(3), tags text[])"
        )
        owner.execute(
            f"SELECT foh.create_index('{name}', '{name}_items', 'embedding', labels => 'tags', bits => 16)"
        )
        owner.execute(f"SELECT foh.grant('{name}', reader => 'app_reader')")
        owner.execute(f"GRANT SELECT ON {name}_items TO app_reader")
        owner.execute(
            f"""INSERT INTO {name}_items SELECT n, ARRAY[n % 7, n % 5, 1]::extensions.vector, ARRAY['a']
                FROM generate_series(1, 300) n"""
        )
    owner.execute("SELECT foh.grant(updater => 'app_writer')")
    build(database.dsn("app_writer"), "built")


@pytest.fixture
def old(versions: Versions, copy_of: Callable[..., Database]) -> Database:
    return copy_of(install_old, template="template1")


def names(connection: Connection) -> set[str]:
    found = connection.execute(
        """SELECT relname FROM pg_class WHERE relnamespace = 'foh'::regnamespace
           UNION SELECT proname FROM pg_proc WHERE pronamespace = 'foh'::regnamespace"""
    )
    return {name for (name,) in found}


def found(connection: Connection, index: str) -> list[tuple[Any, ...]]:
    return connection.execute(QUERY.format(index).encode()).fetchall()


@pytest.mark.one_version(but={"by": [None]})
@pytest.mark.parametrize("by", [None, "app_owner"])
class TestUp:
    def test_all_is_replaced_and_rights_stay(self, old: Database, versions: Versions, by: str | None) -> None:
        owner, reader = old.connect(), old.connect("app_reader")
        before = {index: found(reader, index) for index in ("built", "unbuilt")}
        assert "gone" in names(owner)
        versions.use("new")
        assert migrate(old.connect(by), owner="app_owner") == ("0001", "0002")
        assert names(owner) >= {"note", "added"}
        assert "gone" not in names(owner)
        assert owner.execute("SELECT digest FROM foh.code").fetchall() == [(script.code_digest(),)]
        for index in before:
            signature = f"SELECT oid::regprocedure::text FROM pg_proc WHERE proname = '{index}_candidates'"
            [(made,)] = owner.execute(signature.encode()).fetchall()
            assert made == f"foh.{index}_candidates(extensions.vector,integer,integer)"
            assert found(reader, index) == before[index]
            reader.execute(f"SELECT * FROM foh.{index}_candidates('[1,2,3]', 1, 1)".encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                old.connect("app_writer").execute(
                    f"SELECT * FROM foh.{index}_candidates('[1,2,3]', 1, 1)".encode()
                )
        owner.execute("UPDATE built_items SET embedding = '[9,9,9]' WHERE id < 20")
        update(old.dsn("app_writer"), "built")
        assert owner.execute("SELECT * FROM foh.check('built')").fetchall() == []
        assert migrate(old.connect(by), owner="app_owner") == ("0002", "0002")

    def test_the_printed_script_does_the_same(
        self, old: Database, versions: Versions, new_database: Callable[..., Database], by: str | None
    ) -> None:
        old.disconnect()
        other = new_database(template=old.name)
        versions.use("new")
        migrate(old.connect(by), owner="app_owner")
        other.connect(by).execute(offline(start="0001", owner="app_owner" if by is None else None).encode())
        assert dump(other.connect()) == dump(old.connect())


@pytest.mark.one_version(but={"by": [None]})
@pytest.mark.parametrize("by", [None, "app_owner"])
def test_down(old: Database, versions: Versions, by: str | None) -> None:
    """Functions go first, and the indexes with them; the tables of the application stay."""
    versions.use("new")
    connection, owner = old.connect(by), old.connect()
    migrate(connection, owner="app_owner")
    assert migrations.is_downgrade("0002", "0001")
    assert migrate(connection, "0001", "app_owner") == ("0002", "0001")
    assert names(owner).isdisjoint({"note", "added", "built_search", "create_index"})
    assert owner.execute("SELECT count(*) FROM built_items").fetchone() == (300,)
    owner.execute("DELETE FROM built_items")
    assert migrate(connection, owner="app_owner") == ("0001", "0002")
    owner.execute("SELECT foh.create_index('built', 'built_items', 'embedding')")
    assert migrate(connection, "base", "app_owner") == ("0002", "base")
    assert owner.execute("SELECT to_regnamespace('foh')").fetchone() == (None,)


def test_an_older_package_leaves_it_alone(old: Database, versions: Versions) -> None:
    owner = old.connect()
    versions.use("new")
    migrate(owner)
    versions.use("old")
    with pytest.raises(installed.SchemaError, match=r"'0002'.*upgrade the package"):
        migrate(owner)
