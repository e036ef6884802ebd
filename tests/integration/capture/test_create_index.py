"""What foh.create_index accepts and refuses, and that foh.drop_index leaves nothing behind."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from tests.support import catalog
from tests.support.postgres import Database, Server
from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    create_table,
    entries,
    expected_codes,
    insert,
    problems,
    text,
    vectors,
)

X = vectors(50)

COLUMNS = "(id int PRIMARY KEY, embedding extensions.vector(8))"


class TestRefusals:
    @pytest.mark.parametrize(
        ("setup", "source", "message"),
        [
            (
                f"CREATE TABLE t {COLUMNS} PARTITION BY RANGE (id); CREATE TABLE p PARTITION OF t DEFAULT",
                "p",
                "public.p is a partition: create the index on public.t",
            ),
            (
                f"CREATE TABLE t {COLUMNS}; CREATE TABLE c (PRIMARY KEY (id)) INHERITS (t)",
                "c",
                "table inheritance",
            ),
            (f"CREATE TABLE t {COLUMNS}; CREATE TABLE c () INHERITS (t)", "t", "table inheritance"),
            (f"CREATE TEMP TABLE t {COLUMNS}", "t", "is temporary"),
            (f"CREATE UNLOGGED TABLE t {COLUMNS}", "t", "is unlogged.*SET LOGGED"),
            (
                f"CREATE TABLE t {COLUMNS}; CREATE VIEW v AS TABLE t",
                "v",
                "is a view: name the table behind it",
            ),
            (
                f"CREATE TABLE t {COLUMNS}; CREATE MATERIALIZED VIEW v AS TABLE t",
                "v",
                "is a materialized view",
            ),
            ("CREATE SEQUENCE s", "s", "is not a table"),
            ("SELECT 1", "foh.index", "belongs to the system"),
            ("CREATE TABLE t (id int, embedding extensions.vector(8))", "t", "public.t has no primary key"),
            (
                "CREATE TABLE t (a int, b int, c int, d int, e int, embedding extensions.vector(8), PRIMARY KEY (a, b, c, d, e))",
                "t",
                "a key of 5 columns: the key of an index has four at most",
            ),
            (
                "CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, embedding extensions.vector(8))",
                "t",
                "DEFERRABLE.*checked at once",
            ),
            (
                "CREATE TABLE t (id numeric PRIMARY KEY, embedding extensions.vector(8))",
                "t",
                "of type numeric; smallint, int, bigint, uuid",
            ),
            (
                """CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
                   CREATE TABLE t (id text COLLATE loose PRIMARY KEY, embedding extensions.vector(8))""",
                "t",
                "nondeterministic collation",
            ),
            (
                "CREATE TABLE t (id int PRIMARY KEY, embedding text)",
                "t",
                "of type text; vector, halfvec, real",
            ),
            ("CREATE TABLE t (id int PRIMARY KEY, other int)", "t", "public.t has no column embedding"),
            (
                "CREATE TABLE t (id int PRIMARY KEY, embedding extensions.vector)",
                "t",
                "does not say how many dimensions",
            ),
        ],
    )
    def test_tables(self, connection: Connection, setup: str, source: str, message: str) -> None:
        try:
            connection.execute(setup)
        except errors.FeatureNotSupported:
            pytest.skip("this server has no ICU")
        with pytest.raises(psycopg.Error, match=message):
            create_index(connection, source=source)
        assert connection.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)

    def test_foreign_tables(self, connection: Connection, superuser: Connection) -> None:
        superuser.execute("CREATE FOREIGN DATA WRAPPER nowhere")
        superuser.execute("CREATE SERVER away FOREIGN DATA WRAPPER nowhere")
        superuser.execute("CREATE FOREIGN TABLE far (id int, embedding extensions.vector(8)) SERVER away")
        superuser.execute("ALTER TABLE far OWNER TO app_owner")
        try:
            with pytest.raises(
                errors.WrongObjectType, match="is a foreign table: its rows are written elsewhere"
            ):
                create_index(connection, source="far")
        finally:
            superuser.execute("DROP FOREIGN DATA WRAPPER nowhere CASCADE")

    def test_virtual_columns(self, connection: Connection, server: Server) -> None:
        if server.version < 18:
            pytest.skip("virtual generated columns came with PostgreSQL 18")
        connection.execute(
            """CREATE TABLE t (id int PRIMARY KEY, a real,
                               embedding real[] GENERATED ALWAYS AS (ARRAY[a, a]) VIRTUAL,
                               stored real[] GENERATED ALWAYS AS (ARRAY[a, a]) STORED)"""
        )
        with pytest.raises(errors.FeatureNotSupported, match="virtual generated column"):
            create_index(connection, source="t", dimensions=2)
        create_index(connection, source="t", embedding="stored", dimensions=2)
        connection.execute("INSERT INTO t (id, a) VALUES (1, 5)")
        assert codes(connection) == expected_codes(connection, {1: [5, 5]})

    @pytest.mark.parametrize("triggers", ["statement", "row"])
    def test_virtual_columns_and_constraints_beside_ours(
        self, connection: Connection, server: Server, triggers: str
    ) -> None:
        """What PostgreSQL 18 brought: triggers see a row without its virtual columns."""
        if server.version < 18:
            pytest.skip("these came with PostgreSQL 18")
        connection.execute(
            """CREATE TABLE t (twice int GENERATED ALWAYS AS (id * 2) VIRTUAL, id int, embedding real[], PRIMARY KEY (id) INCLUDE (embedding));
               ALTER TABLE t ADD CONSTRAINT there NOT NULL embedding NOT VALID"""
        )
        create_index(connection, source="t", dimensions=2, options={"triggers": triggers})
        connection.execute("INSERT INTO t (id, embedding) VALUES (1, '{5,5}'), (2, '{1,2}'), (3, '{2,1}')")
        connection.execute("UPDATE t SET embedding = '{3,1}' WHERE twice = 4")
        connection.execute("DELETE FROM t WHERE twice = 6 RETURNING old.twice")
        assert codes(connection) == expected_codes(connection, {1: [5, 5], 2: [3, 1]})
        assert problems(connection) == []
        found = connection.execute("SELECT id FROM foh.idx_search('[1,1]', 5, filter => 's.twice > 2')")
        assert found.fetchall() == [(2,)]
        with pytest.raises(errors.FeatureNotSupported, match="user-defined function"):
            connection.execute(
                "CREATE FUNCTION mine(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';"
                "ALTER TABLE t ADD COLUMN v int GENERATED ALWAYS AS (mine(id)) VIRTUAL"
            )

    def test_temporal_keys(self, connection: Connection, server: Server) -> None:
        if server.version < 18:
            pytest.skip("temporal keys came with PostgreSQL 18")
        connection.execute(
            """CREATE TABLE t (id int4range, valid daterange, embedding real[], PRIMARY KEY (id, valid WITHOUT OVERLAPS))"""
        )
        with pytest.raises(errors.DatatypeMismatch, match=r"the key id of public\.t is of type int4range"):
            create_index(connection, source="t", dimensions=2)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"name": None}, "NULL cannot be the name of an index"),
            ({"bits": 4}, "bits is 4, it must be between 8 and 1024"),
            ({"bits": None}, "bits is NULL"),
            ({"distance": "taxi"}, "distance is 'taxi', it must be cosine, l2 or ip"),
            ({"dimensions": 9}, "dimensions is 9, column embedding of public.items has 8"),
            ({"labels_from": "items"}, "labels_from .*labels_key .*and labels"),
            ({"labels": "nothing"}, "has no column nothing .argument labels."),
            ({"labels": "embedding"}, "labels embedding of public.items are of type"),
            ({"options": {"probs": 3}}, "unknown option 'probs'"),
            ({"options": {"probes": "many"}}, "option 'probes' is \"many\", it must be a number"),
            ({"options": {"probes": 0}}, "option 'probes' is 0, it must be between 1 and"),
            ({"options": {"probes": 1.5}}, "it must be a whole number"),
            ({"options": {"triggers": "never"}}, "it must be one of auto, statement, row, always"),
            ({"options": {"centers": 0}}, "option 'centers' is 0"),
            ({"source": None}, "source is NULL"),
        ],
    )
    def test_arguments(self, connection: Connection, arguments: dict[str, Any], message: str) -> None:
        create_table(connection)
        with pytest.raises(psycopg.Error, match=message):
            create_index(connection, **arguments)
        assert connection.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)

    def test_a_whole_number_may_be_written_with_a_point(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection, options={"centers": 2.0, "seed": 7.0, "probes": 4.0, "exact_rows": 5.0})
        assert connection.execute(
            "SELECT options ->> 'centers', options ->> 'seed', options ->> 'probes' FROM foh.index"
        ).fetchone() == ("2", "7", "4")
        insert(connection, 1, X[1])
        assert problems(connection) == []

    def test_an_unknown_option_names_the_known_ones(self, connection: Connection) -> None:
        create_table(connection)
        with pytest.raises(errors.InvalidParameterValue) as caught:
            create_index(connection, options={"probs": 3})
        known = connection.execute("SELECT jsonb_object_keys(foh._default_options())").fetchall()
        assert all(name in (caught.value.diag.message_hint or "") for (name,) in known)

    def test_a_name_that_is_taken(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection)
        with pytest.raises(errors.DuplicateObject, match="index 'idx' exists already"):
            create_index(connection)

    def test_an_index_without_its_table_gives_way(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection)
        connection.execute("DROP TABLE items")
        create_table(connection)
        create_index(connection)
        row = connection.execute("SELECT count(*), min(status) FROM foh.index").fetchone()
        assert row == (1, "ready")

    def test_null_gives_an_option_its_default_back(self, connection: Connection) -> None:
        create_table(connection)
        with pytest.raises(errors.InvalidParameterValue, match="'dial' is null, it must be a value"):
            create_index(connection, options={"dial": None})
        create_index(connection, options={"dial": 0.1, "probes": 3, "seed": 7})
        connection.execute("""SELECT foh.alter_index('idx', '{"dial": null, "probes": null}')""")
        options = "SELECT options ->> 'dial', options ->> 'probes', options ->> 'seed' FROM foh.index"
        assert connection.execute(options).fetchone() == ("0.5", None, "7")

    def test_statement_triggers_on_partitions(self, connection: Connection) -> None:
        create_table(connection, partitioned=True)
        with pytest.raises(errors.InvalidParameterValue, match="would miss writes to its partitions"):
            create_index(connection, options={"triggers": "statement"})

    def test_somebody_elses_table(self, connection: Connection, superuser: Connection) -> None:
        superuser.execute("CREATE TABLE theirs (id int PRIMARY KEY, embedding extensions.vector(8))")
        try:
            with pytest.raises(
                errors.InsufficientPrivilege, match=r"lacks rights that an index on public\.theirs needs"
            ) as caught:
                create_index(connection, source="theirs")
            assert caught.value.diag.message_hint == "GRANT SELECT, TRIGGER ON public.theirs TO app_owner;"
        finally:
            superuser.execute("DROP TABLE theirs")

    def test_policies_of_the_application_are_left_alone(self, connection: Connection) -> None:
        """An index reads as the owner of the table, and needs none of its own; earlier versions had one named foh."""
        create_table(connection)
        connection.execute("CREATE POLICY foh ON items FOR SELECT TO app_reader USING (id > 5)")
        policies = (
            "SELECT polname, polroles::regrole[]::text FROM pg_policy WHERE polrelid = 'items'::regclass"
        )
        before = connection.execute(policies).fetchall()
        create_index(connection)
        assert connection.execute(policies).fetchall() == before
        connection.execute("SELECT foh.drop_index('idx')")
        assert connection.execute(policies).fetchall() == before

    def test_a_busy_table_is_not_waited_for_long(
        self, connection: Connection, database: Database, superuser: Connection
    ) -> None:
        create_table(connection)
        timeout = """SELECT proname FROM pg_proc
                     WHERE pronamespace = 'foh'::regnamespace AND 'lock_timeout=10s' = ANY (proconfig)"""
        bounded = {name for (name,) in connection.execute(timeout)}
        assert {"create_index", "drop_index", "refresh", "alter_index"} <= bounded
        busy = database.connect(autocommit=False)
        insert(busy, 1, X[1])
        # As the function does it, in a shorter time.
        set_lock_timeout(superuser, "50ms")
        try:
            with pytest.raises(errors.LockNotAvailable):
                create_index(connection)
        finally:
            set_lock_timeout(superuser, "10s")
        busy.rollback()
        create_index(connection)
        insert(connection, 1, X[1])
        assert len(entries(connection)) == 1


class TestCreate:
    def test_an_empty_table_is_ready(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection)
        assert connection.execute("SELECT status FROM foh.index").fetchone() == ("ready",)

    def test_a_table_with_rows_is_to_be_built(self, connection: Connection) -> None:
        create_table(connection)
        insert(connection, 1, X[1])
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        create_index(connection)
        assert notices == ["foh: public.items has rows; place them with: foh-pg build 'idx'"]
        assert connection.execute("SELECT status, rows, stream FROM foh.index_stat").fetchone() == (
            "building",
            0,
            0,
        )
        assert problems(connection) == []

    def test_a_row_that_nobody_could_see_yet_is_not_lost(
        self, connection: Connection, database: Database
    ) -> None:
        """A snapshot from before the triggers must not take the table for empty."""
        create_table(connection)
        late = database.connect(autocommit=False)
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("SELECT 1")
        insert(connection, 1, X[1])
        create_index(late)
        late.commit()
        assert connection.execute("SELECT status FROM foh.index").fetchone() == ("building",)

    def test_is_rolled_back(self, connection: Connection, superuser: Connection) -> None:
        create_table(connection)
        before = everything(superuser)
        with connection.transaction(force_rollback=True):
            create_index(connection)
        assert everything(superuser) == before

    def test_in_the_transaction_of_the_table(self, connection: Connection) -> None:
        with connection.transaction():
            create_table(connection)
            create_index(connection)
            insert(connection, 1, X[1])
        assert codes(connection) == expected_codes(connection, {1: X[1]})

    def test_several_on_one_table(self, connection: Connection) -> None:
        create_table(connection, more=", other extensions.halfvec(8)")
        create_index(connection, "one")
        create_index(connection, "two", bits=16, labels="tags", options={"seed": 7})
        create_index(connection, "three", embedding="other", options={"triggers": "row"})
        insert(connection, 1, X[1], other=text(X[2]))
        connection.execute("UPDATE items SET tags = '{a}'")
        assert codes(connection, "one") == expected_codes(connection, {1: X[1]}, "one")
        assert codes(connection, "two") == expected_codes(connection, {1: X[1]}, "two")
        assert codes(connection, "three") == expected_codes(connection, {1: X[2]}, "three")
        assert [len(entries(connection, name)) for name in ("one", "two", "three")] == [1, 2, 1]
        connection.execute("SELECT foh.drop_index('two')")
        insert(connection, 2, X[3], other=text(X[4]))
        assert problems(connection, "one") == problems(connection, "three") == []
        assert set(codes(connection, "one")) == set(codes(connection, "three")) == {1, 2}

    def test_the_seed_decides(self, connection: Connection) -> None:
        create_table(connection)
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            create_index(connection, name, options={"seed": seed})
        insert(connection, 1, X[1])
        a, b, c = (codes(connection, name)[1] for name in "abc")
        assert a == b != c

    @pytest.mark.parametrize("index", ["x" * 40, "select", "a_1", "items_search"])
    def test_names(self, connection: Connection, superuser: Connection, index: str) -> None:
        table, key, embedding, tags = "T {key} 100% $x$", 'Key "k"', "e'm b {source} \\", "läbels %s"
        names = {
            "table": sql.Identifier('My "Schema"', table),
            "key": sql.Identifier(key),
            "embedding": sql.Identifier(embedding),
            "tags": sql.Identifier(tags),
            **{f"x{at}": sql.Literal(text(X[at])) for at in (1, 2, 3)},
        }
        superuser.execute('CREATE SCHEMA "My ""Schema""" AUTHORIZATION app_owner')

        def run(statement: str) -> None:
            connection.execute(sql.SQL(statement).format(**names))

        run("CREATE TABLE {table} ({key} int PRIMARY KEY, {embedding} extensions.vector(8), {tags} text)")
        create_index(
            connection, index, names["table"].as_string(connection), embedding=embedding, labels=tags
        )
        run("INSERT INTO {table} ({key}, {embedding}, {tags}) VALUES (1, {x1}, 'a'), (2, {x2}, 'b')")
        run("UPDATE {table} SET {embedding} = {x3} WHERE {key} = 2")
        assert codes(connection, index) == expected_codes(connection, {1: X[1], 2: X[3]}, index)
        assert problems(connection, index) == []
        assert connection.execute("SELECT name, stream FROM foh.index_stat").fetchall() == [(index, 3)]
        connection.execute("SELECT foh.drop_index(%s)", [index])

    @pytest.mark.one_version
    @pytest.mark.parametrize("form", ["statement", "row"])
    @pytest.mark.parametrize(
        "names",
        ["k keys deferred", "distance query code", "key intact n", "seq o x", "center version op", "s t r",
         "new old tg_op",
         "u a written", "deferred key_column new_rows", "keys s key", "intact i p",
         "query probes k", "probes vector p", "score distance query"],
    )  # fmt: skip
    def test_columns_named_like_ours(self, connection: Connection, names: str, form: str) -> None:
        key, embedding, tags = (sql.Identifier(name) for name in names.split())
        connection.execute(
            sql.SQL("CREATE TABLE items ({} int PRIMARY KEY, {} extensions.vector(8), {} text[])").format(
                key, embedding, tags
            )
        )
        create_index(
            connection, embedding=names.split()[1], labels=names.split()[2], options={"triggers": form}
        )
        connection.execute(
            "INSERT INTO items VALUES (1, %s, '{a}'), (2, %s, '{b}')", [text(X[1]), text(X[2])]
        )
        connection.execute(sql.SQL("UPDATE items SET {0} = 3 WHERE {0} = 2").format(key))
        connection.execute(sql.SQL("UPDATE items SET {} = '{{c}}' WHERE {} = 1").format(tags, key))
        assert codes(connection) == expected_codes(connection, {1: X[1], 3: X[2]})
        assert problems(connection) == []


def set_lock_timeout(connection: Connection, value: str) -> None:
    """Of foh.create_index, whatever its arguments are."""
    [signature] = connection.execute(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'create_index'"
    )
    connection.execute(f"ALTER FUNCTION {signature[0]} SET lock_timeout = '{value}'")


ELSEWHERE = """
SELECT 'trigger', tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'policy', polrelid::regclass::text, polname FROM pg_policy
UNION ALL SELECT 'schema', nspname, a::text
          FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) a
          WHERE nspname NOT LIKE 'pg_%'
UNION ALL SELECT 'table', oid::regclass::text, a::text
          FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) a
          WHERE relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT 'column', attrelid::regclass::text, attname || attacl::text
          FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid > 16384
UNION ALL SELECT 'dependency', classid::regclass::text, deptype::text || count(*) FROM pg_shdepend
          WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          GROUP BY classid, deptype
UNION ALL SELECT 'type', typname, '' FROM pg_type WHERE typnamespace = 'foh'::regnamespace
"""


def everything(superuser: Connection) -> list[tuple[Any, ...]]:
    """Schema foh, the rows of its tables, and what may be ours elsewhere."""
    rows = catalog.dump(superuser) + superuser.execute(ELSEWHERE).fetchall()
    for table in ("index", "label", "model", "model_state", "run", "updating"):
        rows += superuser.execute(sql.SQL("SELECT * FROM foh.{}").format(sql.Identifier(table))).fetchall()
    return sorted(rows, key=repr)


class TestDrop:
    def test_leaves_nothing_behind(self, connection: Connection, superuser: Connection) -> None:
        superuser.execute("CREATE SCHEMA shop AUTHORIZATION app_owner")
        create_table(connection, "shop.items")
        connection.execute("CREATE TABLE shop.tags (item int, tag text)")
        connection.execute("ALTER TABLE shop.items ENABLE ROW LEVEL SECURITY")
        connection.execute("CREATE POLICY all_rows ON shop.items USING (true)")
        before = everything(superuser)
        create_index(
            connection, source="shop.items", labels="tag", labels_from="shop.tags", labels_key="item"
        )
        connection.execute("INSERT INTO shop.items (id, embedding) VALUES (1, %s)", [text(X[1])])
        connection.execute("INSERT INTO foh.label SELECT id, 1, 'a' FROM foh.index")
        connection.execute("INSERT INTO foh.run (index, kind) SELECT id, 'update' FROM foh.index")
        assert everything(superuser) != before
        connection.execute("SELECT foh.drop_index('idx')")
        assert everything(superuser) == before
        connection.execute("INSERT INTO shop.items (id, embedding) VALUES (2, %s)", [text(X[2])])

    def test_leaves_what_another_index_needs(self, connection: Connection, superuser: Connection) -> None:
        create_table(connection)
        create_index(connection, "stays")
        before = everything(superuser)
        create_index(connection, "goes", labels="tags", options={"triggers": "row"})
        connection.execute("SELECT foh.drop_index('goes')")
        after = everything(superuser)
        # The column that only the other index read may stay readable: columns are taken back together.
        assert [row for row in after if row not in before and row[0] not in ("column", "dependency")] == []
        insert(connection, 1, X[1])
        assert problems(connection, "stays") == []

    def test_partitions(self, connection: Connection, superuser: Connection) -> None:
        create_table(connection, partitioned=True)
        before = everything(superuser)
        create_index(connection)
        insert(connection, 1, X[1])
        connection.execute("SELECT foh.drop_index('idx')")
        assert everything(superuser) == before

    def test_after_the_source_is_gone(self, connection: Connection, superuser: Connection) -> None:
        before = everything(superuser)
        create_table(connection)
        create_index(connection)
        insert(connection, 1, X[1])
        connection.execute("DROP TABLE items")
        problem = "a table of the index was dropped: run SELECT foh.drop_index('idx')"
        assert problems(connection) == [(problem, None, "public.items is gone")]
        assert connection.execute("SELECT status FROM foh.index_stat").fetchone() == (problem,)
        for call in ("refresh", "repair"):
            with pytest.raises(psycopg.Error, match="dropped"):
                connection.execute(sql.SQL("SELECT foh.{}('idx')").format(sql.Identifier(call)))
        connection.execute("SELECT foh.drop_index('idx')")
        assert everything(superuser) == before

    def test_after_the_labels_are_gone(self, connection: Connection, superuser: Connection) -> None:
        create_table(connection)
        before = everything(superuser)
        connection.execute("CREATE TABLE tags (item int, tag text)")
        create_index(connection, labels="tag", labels_from="tags", labels_key="item")
        connection.execute("DROP TABLE tags")
        insert(connection, 1, X[1])
        assert problems(connection)[0][0].startswith("a table of the index was dropped: ")
        connection.execute("SELECT foh.drop_index('idx')")
        assert everything(superuser) == before

    def test_an_unknown_index(self, connection: Connection) -> None:
        with pytest.raises(errors.UndefinedObject, match="there is no index 'idx'"):
            connection.execute("SELECT foh.drop_index('idx')")
        connection.execute("SELECT foh.drop_index('idx', if_exists => true)")

    def test_while_an_updater_is_at_work(self, connection: Connection, database: Database) -> None:
        create_table(connection)
        create_index(connection)
        updater = database.connect(autocommit=False)
        updater.execute("SELECT foh._lock(id) FROM foh.index")
        for call in ("drop_index", "refresh"):
            with pytest.raises(errors.LockNotAvailable, match="an updater is at work on index 'idx'"):
                connection.execute(sql.SQL("SELECT foh.{}('idx')").format(sql.Identifier(call)))
        updater.rollback()
        connection.execute("SELECT foh.drop_index('idx')")


def test_sizes(connection: Connection) -> None:
    create_table(connection)
    create_index(connection)
    sizes = dict(connection.execute("SELECT part, bytes FROM foh.index_size('idx')").fetchall())
    assert set(sizes) >= {"projection", "center", "list", "item", "stream"}
    assert sizes["projection"] > 8192
    assert connection.execute("SELECT bytes FROM foh.index_stat").fetchone() == (sum(sizes.values()),)
