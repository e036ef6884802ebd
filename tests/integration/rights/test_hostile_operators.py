"""Whoever may create in a schema of the search_path runs nothing with the rights of who uses foh_pg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from pgvector.sqlalchemy import Vector
from psycopg import sql
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import StaticPool

from foh_pg import Index
from foh_pg.cli.app import app
from foh_pg.cli.watch import open_connection
from foh_pg.langchain import FOHVectorStore
from foh_pg.psycopg import register_foh
from foh_pg.quality.evaluate import evaluate
from foh_pg.schema import migrations
from foh_pg.sqlalchemy import FOHIndex, select_nearest
from foh_pg.updater import build, rebuild, rollback, update
from foh_pg.watcher.watch import Settings, Watcher
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

# Everything that pg_catalog has by these names and for these types, again in a schema that comes before it: the
# whole of it, so that nothing can be forgotten. Each raises an error that nobody catches.
TRAPS = r"""
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
DO $$
DECLARE
    f record;
    n int := 0;
BEGIN
    FOR f IN SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, format_type(p.prorettype, NULL) AS result,
                    p.proretset, p.proargtypes
             FROM pg_proc p
             WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a') AND p.provariadic = 0
               AND p.proname !~ '(in|out|recv|send|handler|support|sel|typanalyze|_cost|_fn)$'
               AND NOT EXISTS (SELECT FROM unnest(p.proargtypes::oid[] || p.prorettype) t (oid) JOIN pg_type y ON y.oid = t.oid
                               WHERE y.typtype = 'p' AND y.typname NOT IN ('void', 'anyarray', 'anyelement', 'anynonarray', 'record'))
               AND NOT (p.prorettype IN ('anyarray'::regtype, 'anyelement'::regtype, 'anynonarray'::regtype, 'record'::regtype))
    LOOP
        n := n + 1;
        BEGIN
            EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname,
                           (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY o) FROM unnest(f.proargtypes::oid[]) WITH ORDINALITY x (t, o)),
                           f.result, 'BEGIN RAISE EXCEPTION ''a trap was called: ' || f.proname || '''; END');
        EXCEPTION WHEN duplicate_function THEN NULL;
        END;
    END LOOP;
    ASSERT n > 1000;
    n := 0;
    FOR f IN SELECT o.oprname, format_type(o.oprleft, NULL) AS l, format_type(o.oprright, NULL) AS r, format_type(o.oprresult, NULL) AS result
             FROM pg_operator o JOIN pg_namespace s ON s.oid = o.oprnamespace
             WHERE o.oprkind = 'b' AND s.nspname IN ('pg_catalog', 'extensions') AND format_type(o.oprresult, NULL) !~ '^any'
    LOOP
        n := n + 1;
        EXECUTE format('CREATE FUNCTION trap.%I(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', 'operator_' || n, f.l, f.r, f.result,
                       'BEGIN RAISE EXCEPTION ''a trap was called: ' || replace(replace(f.oprname, '''', ''''''), '%', '%%') || ' of ' || f.l || ' and ' || f.r || '''; END');
        EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.%I)', f.oprname, f.l, f.r, 'operator_' || n);
    END LOOP;
    ASSERT n > 500;
    -- Operators that fit better than PostgreSQL's own, which cast one side: the first that was found to run.
    FOR f IN SELECT a, b, o FROM unnest('{oid,regclass,regproc,text,name,varchar,int,bigint,smallint,"\"char\""}'::text[]) a,
                                 unnest('{oid,regclass,regproc,text,name,varchar,int,bigint,smallint,"\"char\""}'::text[]) b,
                                 unnest('{=,<>,<,>,<=,>=,||,~,!~,~~}'::text[]) o
    LOOP
        n := n + 1;
        EXECUTE format('CREATE FUNCTION trap.%I(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L', 'operator_' || n, f.a, f.b,
                       'BEGIN RAISE EXCEPTION ''a trap was called: ' || f.o || ' of ' || f.a || ' and ' || f.b || '''; END');
        BEGIN
            EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.%I)', f.o, f.a, f.b, 'operator_' || n);
        EXCEPTION WHEN duplicate_function THEN NULL;
        END;
    END LOOP;
    FOR f IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') LOOP
        EXECUTE format('CREATE VIEW trap.%I AS SELECT 1 / (random() * 0)::int AS oid', f.relname);
    END LOOP;
END $$;
"""
# What SQLAlchemy writes names types without their schema (CAST(... AS TEXT)), so these are for our own statements.
TYPES = """
CREATE SCHEMA trap_types;
GRANT USAGE ON SCHEMA trap_types TO PUBLIC;
DO $$
DECLARE
    t name;
BEGIN
    FOR t IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0 LOOP
        EXECUTE format('CREATE DOMAIN trap_types.%I AS pg_catalog.text CHECK (false)', t);
    END LOOP;
END $$;
"""
# Where everybody may create in the schema of pgvector, as in public of an older cluster: what fits our calls as well as pgvector's own
# does, or better, where an argument has to be cast.
OVERLOADS = """
DO $$
DECLARE
    types constant text[] := '{extensions.vector,extensions.halfvec,extensions.sparsevec,real[],"double precision[]",integer[],bit,"bit varying",text,bigint,integer,"double precision",real,anyelement,anyarray}';
    f record;
    n int := 0;
BEGIN
    FOR f IN SELECT p.name, a.type AS a, b.type AS b, c.type AS c
             FROM (SELECT DISTINCT p.proname AS name, p.pronargs AS count FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
                   JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'vector'
                   WHERE p.pronargs BETWEEN 1 AND 3 AND p.proname !~ '(in|out|recv|send|handler|support|typmod|accum|combine|_sum|_avg)$') p
             CROSS JOIN unnest(types) AS a (type)
             CROSS JOIN LATERAL (SELECT unnest(types) AS type WHERE p.count > 1 UNION ALL SELECT NULL WHERE p.count = 1) b
             CROSS JOIN LATERAL (SELECT unnest('{integer,bigint,boolean}'::text[]) AS type WHERE p.count > 2 UNION ALL SELECT NULL WHERE p.count < 3) c
             WHERE p.count < 3 OR b.type IN ('integer', 'bigint', 'real', a.type)
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION extensions.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.name, concat_ws(', ', f.a, f.b, f.c), f.a,
                           'BEGIN RAISE EXCEPTION ''a trap was called: ' || f.name || ' of ' || concat_ws(', ', f.a, f.b, f.c) || '''; END');
            n := n + 1;
        EXCEPTION WHEN duplicate_function OR ambiguous_function OR invalid_function_definition THEN NULL;
        END;
    END LOOP;
    ASSERT n > 1000;
    n := 0;
    FOR f IN SELECT o.name, a.type AS a, b.type AS b FROM unnest('{<->,<#>,<=>,<+>,<~>,<%>,+,-,*,||,=,<>,<,>,<=,>=}'::text[]) AS o (name), unnest(types) AS a (type), unnest(types) AS b (type)
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION extensions.%I(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', 'operator_' || n, f.a, f.b,
                           CASE WHEN f.name = ANY ('{=,<>,<,>,<=,>=}') THEN 'boolean' ELSE 'double precision' END,
                           'BEGIN RAISE EXCEPTION ''a trap was called: ' || replace(f.name, '%', '%%') || ' of ' || f.a || ' and ' || f.b || '''; END');
            EXECUTE format('CREATE OPERATOR extensions.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = extensions.%I)', f.name, f.a, f.b, 'operator_' || n);
            n := n + 1;
        EXCEPTION WHEN duplicate_function OR insufficient_privilege THEN NULL;
        END;
    END LOOP;
    ASSERT n > 1000;
END $$;
"""
PATH = "trap, pg_catalog, public, extensions"
QUERY = "[1,2,3,4]"


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"
    __table_args__ = (FOHIndex("idx", "embedding", labels="tags", bits=16, held_out=0.3),)
    id: Mapped[int] = mapped_column(primary_key=True)
    embedding: Mapped[Any] = mapped_column(Vector(4))
    tags: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    note: Mapped[int | None]


def create_indexes(database: Database) -> None:
    owner = database.connect()
    owner.execute(
        "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(4) NOT NULL, tags text[] NOT NULL, note int)"
    )
    owner.execute(
        """SELECT foh.create_index('idx', 'items', 'embedding', labels => 'tags', bits => 16,
                                   options => '{"held_out": 0.3}')"""
    )
    owner.execute("CREATE TABLE texts (id text PRIMARY KEY, embedding extensions.vector(4))")
    owner.execute("SELECT foh.create_index('texts', 'texts', 'embedding', bits => 16)")
    owner.execute(
        """INSERT INTO items SELECT n, ARRAY[n % 7, n % 3, n % 5, 1]::extensions.vector, ARRAY['t' || n % 3], n
           FROM generate_series(1, 300) n"""
    )
    owner.execute("INSERT INTO texts SELECT 'k' || id, embedding FROM items")
    owner.execute("SELECT foh.create_index('filled', 'items', 'embedding', labels => 'tags', bits => 16)")


def set_traps(database: Database) -> None:
    create_indexes(database)
    superuser = database.connect(None)
    superuser.execute(TRAPS)
    superuser.execute(TYPES)


def plant_overloads(database: Database) -> None:
    database.connect(None).execute(OVERLOADS)


@pytest.fixture
def trapped(copy_of: Callable[..., Database]) -> Database:
    return copy_of(set_traps)


@pytest.fixture
def hostile(trapped: Database) -> Database:
    """A database whose owner has set the search_path of everybody who connects."""
    trapped.connect("installer").execute(
        sql.SQL("ALTER DATABASE {} SET search_path = trap_types, {}").format(
            sql.Identifier(trapped.name), sql.SQL(PATH)
        )
    )
    with trapped.connect(None) as superuser, pytest.raises(psycopg.errors.RaiseException, match="a trap"):
        superuser.execute(
            "SELECT 1 FROM pg_catalog.pg_class c WHERE c.oid = 'public.items'::pg_catalog.regclass"
        )
    return trapped


COMMANDS = (
    ["migrate"],
    ["create-index", "more", "--source", "public.items", "--embedding", "embedding", "--bits", "16"],
    ["create-index", "unqualified", "--source", "texts", "--embedding", "embedding", "--bits", "16"],
    ["alter-index", "idx", "-o", "probes=3"],
    ["build", "more"],
    ["build", "unqualified"],
    ["update", "idx"],
    ["build", "filled"],
    ["update", "--all"],
    ["update", "idx", "--full"],
    ["build", "idx", "--again"],
    ["build", "idx", "--version", "3"],
    ["evaluate", "idx"],
    ["search", "idx", "--vector", QUERY],
    ["search", "idx", "--vector", QUERY, "--shortlist", "0", "--labels", "0.7", "--columns", "note,tags"],
    ["search", "idx", "--like", "5", "-k", "3"],
    ["search", "texts", "--like", "k5", "-k", "3"],
    ["search", "idx", "--vector", QUERY, "--explain"],
    ["search", "idx", "--vector", QUERY, "--filter", "s.note OPERATOR(pg_catalog.<) 100"],
    ["advise", "items", "--embedding", "embedding", "--labels", "tags", "--sample", "200"],
    ["status"],
    ["status", "idx"],
    ["status", "idx", "--json"],
    ["status", "--check", "--max-lag", "1000000"],
    ["check", "idx"],
    ["check", "idx", "--repair"],
    ["alter-index", "idx", "--refresh"],
    ["grant", "idx", "--reader", "app_reader"],
    ["grant", "--updater", "app_writer"],
    ["grant", "--updater", "app_writer", "--revoke"],
    ["drop-index", "more", "--yes"],
    ["drop-index", "unqualified", "--yes"],
)


def run(command: list[str], dsn: str) -> None:
    result = CliRunner().invoke(app, [*command, "--dsn", dsn])
    assert "a trap" not in result.output, (command, result.output)
    assert result.exit_code == 0, (command, result.output, result.exception)


@pytest.mark.one_version
def test_commands(hostile: Database) -> None:
    for command in COMMANDS:
        run(command, hostile.dsn())


@pytest.mark.parametrize("command", [["migrate"], ["migrate", "--to", "base", "--yes"]])
def test_a_superuser_migrates(hostile: Database, command: list[str]) -> None:
    hostile.connect().execute("UPDATE foh.code SET digest = 'of another version'")
    run([*command, "--owner", "app_owner"], hostile.dsn(None))


EMBEDDINGS = {
    "vector": "extensions.vector(4)",
    "halfvec": "extensions.halfvec(4)",
    "real[]": "real[]",
    "double precision[]": "double precision[]",
}


# Which function a call means is resolved in the same way by every version of PostgreSQL. Embeddings of other types are
# cast to vector first, so that what a distance calls does not depend on them.
@pytest.mark.one_version
@pytest.mark.parametrize(
    ("kind", "distance"),
    [("vector", "cosine"), ("halfvec", "ip"), ("real[]", "l2"), ("double precision[]", "cosine")],
)
def test_overloads_in_the_schema_of_pgvector(
    copy_of: Callable[..., Database], kind: str, distance: str
) -> None:
    """Every call of ours names the types that pgvector has, so that nothing planted beside it is chosen."""
    database = copy_of(plant_overloads)
    owner = database.connect()
    with pytest.raises(psycopg.errors.RaiseException, match="a trap"):
        owner.execute("SELECT '{1,2}'::real[] OPERATOR(extensions.<->) '{1,2}'::real[]")
    owner.execute(f"CREATE TABLE more (id int PRIMARY KEY, embedding {EMBEDDINGS[kind]}, tags text[])")
    owner.execute(
        """SELECT foh.create_index('more', 'public.more', 'embedding', labels => 'tags', bits => 16, dimensions => 4,
                                   distance => %s, options => '{"held_out": 0.3, "exact_rows": 0, "learn_rows": 50}')""",
        [distance],
    )
    cast = "::real[]" if "[]" in kind else "::real[]::extensions." + kind
    insert = f"""INSERT INTO more SELECT n, ARRAY[n %% 7, n %% 3, n %% 5, 1]{cast}, ARRAY['t' || n %% 3]
                 FROM generate_series(%s::int, %s::int) n"""
    owner.execute(insert.encode(), [1, 200])
    search = "SELECT id FROM foh.more_search('[1,2,3,4]'::extensions.vector, 20)"
    for start in (201, 401):
        update(database.dsn(), "more")
        assert len(owner.execute(search.encode()).fetchall()) == 20
        owner.execute(insert.encode(), [start, start + 199])
        owner.execute("UPDATE more SET embedding = (SELECT embedding FROM more WHERE id = 1) WHERE id = 2")
        owner.execute("DELETE FROM more WHERE id = 3")
        owner.execute("INSERT INTO more SELECT 3, embedding, tags FROM more WHERE id = 4")
    rebuild(database.dsn(), "more")
    evaluate(database.dsn(), "more")
    for statement in (
        "SELECT * FROM foh.check('more')",
        "SELECT * FROM foh.repair('more') WHERE missing + gone + changed > 0",
    ):
        assert owner.execute(statement.encode()).fetchall() == []
    for command in (["search", "more", "--like", "5"], ["search", "more", "--vector", QUERY, "--explain"], ["status", "more"],
                    ["alter-index", "more", "--refresh"]):  # fmt: skip
        result = CliRunner().invoke(app, [*command, "--dsn", database.dsn()])
        assert result.exit_code == 0, (command, result.output, result.exception)


@pytest.mark.parametrize("path", [f"trap_types, {PATH}", "trap_types, trap"])
def test_conditions(trapped: Database, path: str) -> None:
    owner = trapped.connect()
    owner.execute(
        "CREATE TABLE goods (shop int, id int, embedding extensions.vector(4), tags text[], price numeric, day date, PRIMARY KEY (shop, id))"
    )
    owner.execute(
        """SELECT foh.create_index('goods', 'goods', 'embedding', labels => 'tags', include => '{price,day}', bits => 16,
                                   options => '{"exact_rows": 0}')"""
    )
    owner.execute(
        """INSERT INTO goods SELECT n % 3, n, ARRAY[n % 7, n % 3, n % 5, 1]::extensions.vector, ARRAY['t' || n % 3], n % 9, date '2026-01-01' + n % 4
           FROM generate_series(1, 300) n"""
    )
    update(trapped.dsn(), "goods")
    owner.execute("INSERT INTO goods SELECT 9, id, embedding, NULL, price, day FROM goods WHERE id < 20")
    victim = trapped.connect()
    victim.execute("SELECT pg_catalog.set_config('search_path', %s, false)", [path])
    conditions = ("{}", '{"price": [1, 2, null]}', '{"price": {"<": 5}, "day": {"not": "2026-01-02"}}', '{"labels": "t1"}',
                  '{"labels": {"all": ["t1"], "none": ["t2"]}, "price": 4}')  # fmt: skip
    forms = (
        "",
        ", shortlist => 0",
        ", max_distance => 0.5",
        ", recall => 1",
        ", filter => 's.id OPERATOR(pg_catalog.>) 7'",
    )
    calls = [
        (f"SELECT * FROM foh.goods_search(%s, 20, match => %s{form})", [QUERY, condition])
        for condition in conditions
        for form in forms
    ]
    calls += [
        ("SELECT * FROM foh.goods_explain(%s, match => %s)", [QUERY, condition]) for condition in conditions
    ]
    calls += [("SELECT * FROM foh.goods_labels(%s)", [QUERY]), ("SELECT * FROM foh.goods_suggest(2, 5)", [])]
    for call, arguments in calls:
        expected = owner.execute(call.encode(), arguments).fetchall()
        assert sorted(victim.execute(call.encode(), arguments).fetchall()) == sorted(expected), call


def test_watch(hostile: Database) -> None:
    watcher = Watcher(lambda: open_connection(hostile.dsn()), Settings())
    assert {stream.name for stream in watcher._poll()} == {"idx", "filled", "texts"}
    watcher._round()
    watcher._disconnect()


def test_scripts(hostile: Database) -> None:
    superuser = hostile.connect(None)
    superuser.execute(migrations.offline(to="base", start="head", owner="app_owner").encode())
    superuser.execute(migrations.offline(owner="app_owner").encode())


@pytest.mark.one_version
@pytest.mark.parametrize("given", ["dsn", pytest.param("connection", marks=pytest.mark.one_version)])
def test_updaters(hostile: Database, given: str) -> None:
    target: Any = hostile.dsn() if given == "dsn" else hostile.connect(autocommit=False)
    for name in ("idx", "texts"):
        update(target, name)
        version = rebuild(target, name).to_version
        update(target, name, full=True)
        rollback(target, name, version)
    build(target, "filled")
    evaluate(target, "idx")
    if given == "connection":
        # As it was before.
        assert "trap" in target.execute("SHOW search_path").fetchone()[0]
        assert not target.autocommit


def test_index(hostile: Database) -> None:
    connection = hostile.connect()
    register_foh(connection)
    index = Index.open(connection, "idx")
    query = np.array([1, 2, 3, 4.0])
    assert len(index.search(query, 5)) == 5
    assert len(index.search(query, 5, labels=0.5, probes=2)) == 5
    assert len(index.search(query, 5, shortlist=0)) == 5
    assert len(index.search(query, 5, filter="s.note OPERATOR(pg_catalog.<) 50")) == 5
    assert len(index.search_many([query, query], 5)) == 2
    assert len(index.search_like(3, 5)) == 5
    assert len(Index.open(connection, "texts").search_like("k3", 5)) == 5
    assert len(index.embedding(3)) == 4
    index.candidates(query)
    index.explain(query)
    assert index.status()["name"] == "idx"
    assert index.check() == []
    index.refresh()
    index.alter(probes=4)
    other = Index.create(connection, "other", "public.items", "embedding", bits=16)
    other.drop()


@pytest.fixture
def engine(trapped: Database) -> Iterator[sa.Engine]:
    """One connection. SQLAlchemy looks at a new server with statements of its own: before the traps are in its way."""
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(trapped.dsn()), poolclass=StaticPool
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET search_path = public, {PATH.replace(', public', '')}")
        assert connection.dialect.default_schema_name == "public"
    yield engine
    engine.dispose()


def test_sqlalchemy(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET search_path = {PATH}")
    with Session(engine) as session:
        found = session.scalars(select_nearest(Item, [1, 2, 3, 4], k=5)).all()
        assert len(found) == 5
    with engine.begin() as connection:
        [index] = Base.metadata.info["foh_pg.indexes"].values()
        index._drop(Item.__table__, connection)
        connection.execute(index.definition.create())


def test_alembic(engine: sa.Engine) -> None:
    """Alembic's own comparison reads the catalog by operators of the search_path: only our part is asked here."""
    from foh_pg.alembic import compare

    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET search_path = {PATH}")
        with compare._pinned(connection):
            assert compare._is_readable(connection, True)
            assert set(compare._present(connection)) == {"idx", "filled", "texts"}
        assert list(compare._install(connection)) == []
        assert connection.exec_driver_sql("SHOW search_path").scalar_one() == PATH


def test_langchain(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("SET search_path = public, trap, pg_catalog")
    store = FOHVectorStore(
        DeterministicFakeEmbedding(size=6), engine, table="docs", labels=["topic"], bits=16
    )
    for _ in range(2):
        store.add_documents([Document("text", id="1", metadata={"topic": "a", "n": 1})])
    assert len(store.similarity_search("text", filter={"n": {"$lt": 5}, "topic": {"$in": ["a"]}})) == 1
    assert len(store.get_by_ids(["1"])) == 1
    store.delete(["1"])


# PostgreSQL looks for relations and types in pg_temp first, unless the search_path names it.
TEMPORARY = r"""
CREATE TEMP TABLE items (id int, embedding extensions.vector(4), tags text[], note int);
CREATE TEMP TABLE idx_stream (LIKE foh.idx_stream);
DO $$
DECLARE
    made pg_catalog.text;
    -- All statements are put together before the first is run: then these names mean something else.
    statements pg_catalog.text[] := ARRAY(
        SELECT format('CREATE TEMP VIEW %I AS SELECT 1 / (random() * 0)::pg_catalog.int4 AS id', c.relname) FROM pg_class c
        WHERE c.relnamespace IN ('pg_catalog'::regnamespace, 'foh'::regnamespace) AND c.relkind IN ('r', 'v') AND c.relname <> 'idx_stream'
        UNION ALL
        SELECT format('CREATE DOMAIN pg_temp.%I AS pg_catalog.text CHECK (false)', t.typname) FROM pg_type t
        WHERE t.typnamespace IN ('pg_catalog'::regnamespace, 'extensions'::regnamespace) AND t.typtype = 'b' AND t.typelem = 0);
BEGIN
    FOREACH made IN ARRAY statements LOOP
        EXECUTE made;
    END LOOP;
END $$;
"""


def test_temporary_objects(database: Database) -> None:
    """What a session has planted for itself means nothing to the functions that run as somebody else."""
    create_indexes(database)
    owner, writer = database.connect(), database.connect("app_writer")
    owner.execute(
        "GRANT ALL ON items TO app_writer; SELECT foh.grant(reader => 'app_writer', updater => 'app_writer')"
    )
    writer.execute("SET search_path = public, extensions")
    update(database.dsn(), "idx")
    writer.execute(TEMPORARY)
    writer.execute(
        "INSERT INTO public.items SELECT 1000, embedding, tags FROM public.items WHERE id OPERATOR(pg_catalog.=) 1"
    )
    writer.execute(
        "UPDATE public.items SET embedding = (SELECT embedding FROM public.items WHERE id OPERATOR(pg_catalog.=) 1) WHERE id OPERATOR(pg_catalog.=) 2"
    )
    writer.execute("DELETE FROM public.items WHERE id OPERATOR(pg_catalog.=) 3")
    assert len(writer.execute("SELECT * FROM foh.idx_search('[1,2,3,4]', 5)").fetchall()) == 5
    for call in (
        "foh.check('idx')",
        "foh.repair('idx') WHERE missing OPERATOR(pg_catalog.+) gone OPERATOR(pg_catalog.+) changed OPERATOR(pg_catalog.>) 0",
    ):
        assert writer.execute(f"SELECT * FROM {call}".encode()).fetchall() == []
    assert owner.execute("SELECT count(*) FROM foh.idx_stream").fetchone() == (3,)
    update(writer, "idx")
    assert owner.execute("SELECT count(*) FROM foh.idx_stream").fetchone() == (0,)
    assert owner.execute("SELECT * FROM foh.check('idx')").fetchall() == []
