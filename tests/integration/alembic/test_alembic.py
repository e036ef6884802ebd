"""Migrations of an application that has our indexes: up, down, as a script, and generated."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from pgvector.sqlalchemy import Vector

from foh_pg.alembic.operations import AlterFohIndexOp, DropFohIndexOp
from foh_pg.errors import InputError, SchemaError
from foh_pg.schema.migrations import head, migrate
from foh_pg.sqlalchemy import FOHIndex
from tests.support.catalog import dump
from tests.support.engines import engine
from tests.support.postgres import Database

# Whatever an index leaves on a table of the application's.
TRACES = """
SELECT 'schema', nspname::text, nspacl::text FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL SELECT 'relation', oid::regclass::text, relacl::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'column', attrelid::regclass || '.' || attname, attacl::text FROM pg_attribute
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) AND attnum > 0
UNION ALL SELECT 'trigger', tgrelid::regclass || '.' || tgname, NULL FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'policy', polrelid::regclass || '.' || polname, NULL FROM pg_policy
UNION ALL SELECT 'function', oid::regprocedure::text, NULL FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
ORDER BY 1, 2, 3
"""


def traces(database: Database) -> list[Any]:
    return database.connect("installer").execute(TRACES).fetchall()


def indexes(database: Database) -> list[Any]:
    rows = "SELECT name, bits, (options ->> 'probes')::int FROM foh.index ORDER BY name"
    return database.connect("installer").execute(rows).fetchall()


class TestSampleApplication:
    def test_check_is_clean(self, config: Config) -> None:
        command.upgrade(config, "head")
        command.check(config)

    def test_a_search_works_after_one_migration(self, config: Config, empty: Database) -> None:
        command.upgrade(config, "a2")
        installer = empty.connect("installer")
        installer.execute(
            "INSERT INTO products (id, name, price, tags, embedding) "
            "SELECT i, i, i, '{a}', array_fill(i::real, '{7}') || 1::real FROM generate_series(1, 20) i"
        )
        found = installer.execute("SELECT id FROM foh.products_foh_search('[3,3,3,3,3,3,3,1]', 1)").fetchall()
        assert found == [(3,)]

    def test_downgrade_leaves_no_trace(self, config: Config, empty: Database) -> None:
        command.upgrade(config, "a1")
        before = traces(empty)
        command.upgrade(config, "head")
        assert traces(empty) != before
        assert indexes(empty) == [("articles_foh", 32, 4), ("products_foh", 64, 6)]
        command.downgrade(config, "a1")
        assert traces(empty) == before

    def test_downgrade_leaves_the_indexes_of_others(self, config: Config, empty: Database) -> None:
        command.upgrade(config, "head")
        installer = empty.connect("installer")
        installer.execute("CREATE TABLE other (id int PRIMARY KEY, e extensions.vector(3))")
        installer.execute("SELECT foh.create_index('other', 'other', 'e')")
        with pytest.raises(SchemaError, match=r"public\.other has an index in it: drop that index first"):
            command.downgrade(config, "a1")
        assert [name for name, *_ in indexes(empty)] == ["articles_foh", "other", "products_foh"]
        installer.execute("SELECT foh.drop_index('other')")
        command.downgrade(config, "a1")

    def test_options_go_back(self, config: Config, empty: Database) -> None:
        command.upgrade(config, "head")
        command.downgrade(config, "a2")
        assert indexes(empty) == [("articles_foh", 32, 4), ("products_foh", 64, 5)]

    def test_a_failure_takes_our_schema_with_it(self, config: Config, empty: Database) -> None:
        """foh_migrate is part of the application's transaction."""
        command.upgrade(config, "a1")
        empty.connect("installer").execute("DROP TABLE article_topics")
        before = traces(empty)
        with pytest.raises(sa.exc.ProgrammingError, match="article_topics"):
            command.upgrade(config, "a2")
        assert traces(empty) == before


class TestScript:
    def script(self, config: Config, way: Callable[..., None], revisions: str) -> str:
        config.output_buffer = io.StringIO()
        way(config, revisions, sql=True)
        return str(config.output_buffer.getvalue())

    def test_gives_what_the_migrations_give(
        self, config: Config, empty: Database, new_database: Callable[..., Database]
    ) -> None:
        script = self.script(config, command.upgrade, "base:head")
        installer = empty.connect("installer", options="-csearch_path=public,extensions")
        installer.execute(script.encode())
        assert indexes(empty) == [("articles_foh", 32, 4), ("products_foh", 64, 6)]
        scripted = dump(empty.connect("installer"))
        command.check(config)
        command.downgrade(config, "base")
        command.upgrade(config, "head")
        assert dump(empty.connect("installer")) == scripted

    def test_and_back(self, config: Config, empty: Database) -> None:
        command.upgrade(config, "a1")
        before = traces(empty)
        command.upgrade(config, "head")
        empty.connect("installer").execute(self.script(config, command.downgrade, "head:a1").encode())
        assert traces(empty) == before

    def test_one_transaction(self, config: Config) -> None:
        script = self.script(config, command.upgrade, "base:head")
        lines = [line.strip() for line in script.splitlines()]
        assert (lines.count("BEGIN;"), lines.count("COMMIT;")) == (1, 1)

    def test_names_are_quoted(self, config: Config) -> None:
        buffer = io.StringIO()
        context = MigrationContext.configure(
            dialect_name="postgresql", opts={"as_sql": True, "output_buffer": buffer}
        )
        Operations(context).create_foh_index('100% "x"', "it's", schema="S", probes=3)
        quoted = '"S"."100% ""x"""'
        assert f"source => CAST('{quoted}' AS pg_catalog.regclass)" in buffer.getvalue()
        assert "embedding => CAST('it''s' AS pg_catalog.name)" in buffer.getvalue()
        assert """'{"probes": 3}'""" in buffer.getvalue()


class Autogenerate:
    """What `alembic revision --autogenerate` would do, run and undone."""

    def __init__(self, connection: sa.Connection, **options: Any) -> None:
        self.connection = connection
        self.context = MigrationContext.configure(connection, opts={"include_schemas": True, **options})

    def diff(self, metadata: sa.MetaData) -> list[Any]:
        return list(compare_metadata(self.context, metadata))

    def code(self, metadata: sa.MetaData) -> tuple[str, str]:
        script = produce_migrations(self.context, metadata)
        return render_python_code(script.upgrade_ops), render_python_code(script.downgrade_ops)

    def run(self, code: str) -> None:
        import pgvector

        with Operations.context(self.context) as op:
            # What Alembic renders goes into a function: all but the first line are indented.
            exec(
                textwrap.dedent("    " + code if code.startswith("#") else code),
                {"op": op, "sa": sa, "pgvector": pgvector},
            )

    def migrate(self, metadata: sa.MetaData) -> tuple[str, str]:
        up, down = self.code(metadata)
        self.run(up)
        assert self.diff(metadata) == []
        return up, down


@pytest.fixture
def generate(empty: Database) -> Any:
    """In a database that has our schema."""
    migrate(empty.connect("installer"))
    made = engine(empty, "installer")
    with made.connect() as connection:
        yield Autogenerate(connection)
    made.dispose()


@pytest.fixture
def generate_bare(alembic_engine: sa.Engine) -> Any:
    with alembic_engine.connect() as connection:
        yield Autogenerate(connection)


def models(*indexes: FOHIndex, schema: str | None = None, **columns: Any) -> sa.MetaData:
    metadata = sa.MetaData()
    sa.Table(
        "things",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("embedding", Vector(3)),
        sa.Column("label", sa.Text),
        *(sa.Column(name, type_) for name, type_ in columns.items()),
        *indexes,
        schema=schema,
    )
    return metadata


class TestAutogenerate:
    def test_all_from_nothing(self, generate_bare: Autogenerate) -> None:
        generate = generate_bare
        up, down = generate.migrate(models(FOHIndex("my", "embedding", labels="label", bits=32, probes=3)))
        lines = [line for line in up.splitlines() if "foh" in line]
        assert lines == [
            "    op.foh_migrate()",
            "    op.create_foh_index('things', 'embedding', name='my', labels='label', bits=32, probes=3)",
        ]
        assert up.index("foh_migrate") < up.index("create_table") < up.index("create_foh_index")
        assert [line.strip() for line in down.splitlines() if "op." in line] == [
            "op.drop_foh_index('my')",
            "op.drop_table('things')",
            "op.foh_migrate('base')",
        ]
        generate.run(down)
        assert sa.inspect(generate.connection).get_table_names() == []
        assert "foh" not in sa.inspect(generate.connection).get_schema_names()

    def test_a_changed_option(self, generate: Autogenerate) -> None:
        generate.migrate(models(FOHIndex("x", "embedding", probes=3, label_weight=0.5)))
        up, down = generate.migrate(models(FOHIndex("x", "embedding", probes=4, label_weight=0.5)))
        assert "op.alter_foh_index('x', probes=4)" in up
        assert "op.alter_foh_index('x', probes=3)" in down
        assert "create" not in up

    def test_an_option_that_the_index_chose_itself(self, generate: Autogenerate) -> None:
        generate.migrate(models(FOHIndex("x", "embedding")))
        wanted = {"dial": 0.25, "probes": 16, "shortlist": 0, "recall": 0.9}
        up, down = generate.migrate(models(FOHIndex("x", "embedding", **wanted)))
        assert "op.alter_foh_index('x', dial=0.25, probes=16, recall=0.9, shortlist=0)" in up
        assert "op.alter_foh_index('x', dial=0.5, probes=None, recall=None, shortlist=None)" in down
        generate.run(down)
        assert generate.diff(models(FOHIndex("x", "embedding", dial=0.5, probes=None))) == []

    def test_options_of_others_are_left_alone(self, generate: Autogenerate) -> None:
        wanted = models(FOHIndex("x", "embedding", probes=3))
        generate.migrate(wanted)
        generate.run("op.alter_foh_index('x', shortlist=77)")
        assert generate.diff(wanted) == []

    @pytest.mark.parametrize(
        "change",
        [
            {"bits": 16},
            {"distance": "l2"},
            {"geometry": 256},
            {"labels": None},
            {"labels": "other"},
        ],
    )
    def test_what_cannot_be_altered_is_made_again(self, generate: Autogenerate, change: Any) -> None:
        before = {"labels": "label", "bits": 32, "shortlist": 60}
        generate.migrate(models(FOHIndex("x", "embedding", **before), other=sa.Text))
        up, down = generate.migrate(models(FOHIndex("x", "embedding", **{**before, **change}), other=sa.Text))
        assert up.index("drop_foh_index('x')") < up.index("create_foh_index('things', 'embedding', name='x'")
        create = "create_foh_index('things', 'embedding', name='x', labels='label', bits=32, dimensions=3, "
        assert create + "shortlist=60)" in down
        generate.run(down)
        assert generate.diff(models(FOHIndex("x", "embedding", **before), other=sa.Text)) == []

    def test_a_removed_index(self, generate: Autogenerate) -> None:
        generate.migrate(models(FOHIndex("x", "embedding", bits=16)))
        up, down = generate.migrate(models())
        assert "op.drop_foh_index('x')" in up
        assert "op.create_foh_index('things', 'embedding', name='x', bits=16" in down

    def test_a_removed_table(self, generate: Autogenerate) -> None:
        generate.migrate(models(FOHIndex("x", "embedding", bits=16)))
        up, down = generate.migrate(sa.MetaData())
        assert up.index("drop_foh_index('x')") < up.index("drop_table('things')")
        assert down.index("create_table('things'") < down.index("create_foh_index(")

    def test_a_table_of_somebody_elses(self, generate: Autogenerate) -> None:
        """An index on a table that the comparison leaves out is left out too."""
        generate.migrate(models(FOHIndex("x", "embedding")))
        other = Autogenerate(generate.connection, include_name=lambda name, type_, parents: type_ != "table")
        assert other.diff(sa.MetaData()) == []

    def test_the_application_may_leave_indexes_out(self, generate: Autogenerate) -> None:
        generate.migrate(models())
        other = Autogenerate(
            generate.connection,
            include_object=lambda object, name, type_, reflected, compare_to: type_ != "foh_index",
        )
        assert other.diff(models(FOHIndex("x", "embedding"))) == []

    def test_another_schema(self, generate: Autogenerate) -> None:
        generate.connection.execute(sa.text('CREATE SCHEMA "Shop"'))
        up, _ = generate.migrate(models(FOHIndex("x", "embedding"), schema="Shop"))
        assert "create_foh_index('things', 'embedding', name='x', schema='Shop', bits=64)" in up

    def test_a_renamed_column_is_followed(self, generate: Autogenerate) -> None:
        generate.migrate(models(FOHIndex("x", "embedding", labels="label")))
        generate.run(
            "op.alter_column('things', 'label', new_column_name='renamed')\n"
            "op.execute(\"SELECT foh.refresh('x')\")"
        )
        metadata = sa.MetaData()
        sa.Table(
            "things",
            metadata,
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("embedding", Vector(3)),
            sa.Column("renamed", sa.Text),
            FOHIndex("x", "embedding", labels="renamed"),
        )
        assert generate.diff(metadata) == []

    def test_without_our_index_nothing_is_ours(self, generate_bare: Autogenerate) -> None:
        up, down = generate_bare.migrate(models())
        assert "foh" not in up + down

    def test_who_has_nothing_of_ours_notices_nothing(self, empty: Database, database: Database) -> None:
        """Any connection that Alembic takes, and any role."""
        for made in (
            engine(empty, "installer", isolation_level="AUTOCOMMIT"),
            engine(database, "app_writer"),
        ):
            with made.connect() as connection:
                assert Autogenerate(connection).diff(sa.MetaData()) == []
            made.dispose()

    def test_a_role_without_rights(self, database: Database) -> None:
        made = engine(database, "app_writer")
        with (
            made.connect() as connection,
            pytest.raises(SchemaError, match=r"'app_writer'.*connect as the owner of schema foh"),
        ):
            Autogenerate(connection).diff(models(FOHIndex("x", "embedding")))
        made.dispose()

    def test_our_objects_are_no_noise(self, generate: Autogenerate) -> None:
        assert generate.diff(sa.MetaData()) == []

    def test_an_index_without_its_table(self, generate: Autogenerate) -> None:
        wanted = models(FOHIndex("x", "embedding"))
        generate.migrate(wanted)
        generate.connection.execute(sa.text("DROP TABLE things CASCADE"))
        up, _ = generate.code(wanted)
        steps = ["create_table('things'", "create_foh_index("]
        assert [up.index(step) for step in steps] == sorted(up.index(step) for step in steps)
        generate.run(up)
        assert generate.diff(wanted) == []


class TestOperations:
    def test_reversing_what_is_not_known(self) -> None:
        with pytest.raises(InputError, match=r"drop_foh_index\('x'\).*create_foh_index"):
            DropFohIndexOp("x").reverse()
        with pytest.raises(InputError, match=r"alter_foh_index\('x'\).*downgrade"):
            AlterFohIndexOp("x", {"probes": 3}).reverse()

    def test_drop_if_exists(self, generate: Autogenerate) -> None:
        generate.run("op.drop_foh_index('nothing', if_exists=True)")
        with pytest.raises(sa.exc.DBAPIError, match="no index 'nothing'"):
            generate.run("op.drop_foh_index('nothing')")

    def test_the_name_is_the_tables(self, generate: Autogenerate) -> None:
        generate.run(
            "op.create_table('things', sa.Column('id', sa.Integer, primary_key=True),"
            " sa.Column('embedding', sa.ARRAY(sa.REAL)))\n"
            "op.create_foh_index('things', 'embedding', dimensions=3)"
        )
        assert generate.connection.scalar(sa.text("SELECT name FROM foh.index")) == "things"

    def test_up_and_down(self, generate: Autogenerate) -> None:
        version = sa.text("SELECT version_num FROM foh.alembic_version")
        generate.run("op.foh_migrate('0001')")
        assert generate.connection.scalar(version) == "0001"
        generate.run("op.foh_migrate()")
        assert generate.connection.scalar(version) == head()


@pytest.mark.parametrize(
    "first", ["alembic", "alembic.autogenerate", "alembic.op", "foh_pg.alembic", "foh_pg.schema.migrations"]
)
def test_is_registered_whatever_is_imported_first(first: str) -> None:
    """Alembic loads us in the middle of its own import."""
    program = f"import {first}; from alembic import op; op.create_foh_index; import foh_pg.alembic"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_psycopg_sees_no_difference(empty: Database) -> None:
    """The same schema, whether the application's migration or foh-pg installed it."""
    with psycopg.connect(empty.dsn("installer")) as connection:
        migrate(connection)
        expected = dump(connection)
        connection.rollback()
    made = engine(empty, "installer")
    with made.begin() as connection_:
        Autogenerate(connection_).run("op.foh_migrate()")
    made.dispose()
    assert dump(empty.connect("installer")) == expected
