"""No ALTER of the application's table makes its writes fail; foh.refresh brings the index in line."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from tests.support.postgres import Database
from tests.support.recorded import (
    Connection,
    codes,
    create_index,
    create_table,
    entries,
    expected_codes,
    insert,
    newest,
    problems,
    text,
    vectors,
)

X = vectors(30)


@pytest.fixture(params=["statement", "row"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def items(connection: Connection, form: str) -> Connection:
    """A session whose triggers have run and cached their plans."""
    create_table(connection, partitioned=form == "partitioned")
    create_index(connection, labels="tags", options={} if form == "partitioned" else {"triggers": form})
    write(connection, 1)
    connection.execute("UPDATE items SET embedding = %s", [text(X[1])])
    connection.execute("DELETE FROM items")
    connection.execute("DELETE FROM foh.idx_stream")
    return connection


def write(connection: Connection, key: int, columns: str = "id, embedding", table: str = "items") -> None:
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES (%s, %s)", [key, text(X[key])])


class Warnings:
    def __init__(self, connection: Connection) -> None:
        self.messages: list[str] = []
        self.hints: list[str | None] = []
        connection.add_notice_handler(self.add)

    def add(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.messages.append(notice.message_primary or "")
            self.hints.append(notice.message_hint)


class TestWritesGoOn:
    @pytest.mark.parametrize(
        ("statement", "columns"),
        [
            ("ALTER TABLE items RENAME COLUMN embedding TO vec", "id, vec"),
            ("ALTER TABLE items RENAME COLUMN tags TO labels", "id, embedding"),
            ("ALTER TABLE items RENAME COLUMN id TO number", "number, embedding"),
            ("ALTER TABLE items ALTER embedding TYPE extensions.halfvec(8)", "id, embedding"),
            ("ALTER TABLE items ALTER embedding TYPE real[] USING embedding::real[]", None),
            ("ALTER TABLE items ALTER embedding TYPE extensions.vector", "id, embedding"),
            ("ALTER TABLE items ALTER tags TYPE text USING 'x'", "id, embedding"),
            ("ALTER TABLE items DROP COLUMN tags", "id, embedding"),
            ("ALTER TABLE items DROP COLUMN embedding", None),
            ("ALTER TABLE items RENAME TO things", "id, embedding"),
        ],
    )
    def test_and_keys_are_queued(self, items: Connection, statement: str, columns: str | None) -> None:
        warnings = Warnings(items)
        items.execute(statement)
        table = "things" if "things" in statement else "items"
        key = "number" if columns and columns.startswith("number") else "id"
        if columns:
            write(items, 5, columns, table)
        else:
            items.execute(f"INSERT INTO {table} (id) VALUES (5)")
        items.execute(f"UPDATE {table} SET {key} = 6")
        items.execute(f"DELETE FROM {table}")
        assert next(entry[1:] for entry in entries(items) if entry.key == 5) == (5, "u", 0, 0, None)
        assert set(newest(items)) == {5, 6}
        assert {entry.code for entry in entries(items)} == {None}
        assert all("has changed since index idx" in message for message in warnings.messages)
        assert len(warnings.messages) == 3
        cure = "What helps: run SELECT foh.refresh('idx')."
        if "DROP COLUMN" in statement:
            role = "labels" if "tags" in statement else "embedding"
            cure = cure.replace(").", f", {role} => '...') with the column that took its place.")
        assert set(warnings.hints) == {cure}
        assert problems(items) != []

    def test_the_key_is_of_another_type(self, items: Connection, form: str) -> None:
        if form == "partitioned":
            pytest.skip("the type of a partition key cannot be changed")
        items.execute("ALTER TABLE items ALTER id TYPE bigint")
        write(items, 5)
        items.execute("UPDATE items SET id = 2^40")
        items.execute("TRUNCATE items")
        assert [(entry.key, entry.op) for entry in entries(items)] == [(None, "r"), (None, "r"), (None, "t")]
        with pytest.raises(
            errors.DatatypeMismatch, match="was integer when index 'idx' was created and is bigint now"
        ):
            items.execute("SELECT foh.refresh('idx')")

    def test_the_primary_key_is_gone(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection)
        connection.execute("ALTER TABLE items DROP CONSTRAINT items_pkey")
        write(connection, 5)
        connection.execute("UPDATE items SET embedding = %s", [text(X[6])])
        connection.execute("DELETE FROM items")
        with pytest.raises(errors.InvalidTableDefinition, match="no primary key"):
            connection.execute("SELECT foh.refresh('idx')")

    def test_another_column_comes_or_goes(self, items: Connection) -> None:
        """In a session whose triggers have run before, with nothing to warn of."""
        warnings = Warnings(items)
        items.execute("ALTER TABLE items ADD COLUMN first int")
        write(items, 5)
        items.execute("UPDATE items SET embedding = %s", [text(X[6])])
        items.execute("ALTER TABLE items DROP COLUMN note")
        items.execute("UPDATE items SET embedding = %s", [text(X[7])])
        items.execute("ALTER TABLE items ALTER first TYPE text")
        items.execute("UPDATE items SET first = 'x'")
        items.execute("UPDATE items SET tags = '{a}'")
        write(items, 8)
        items.execute("DELETE FROM items WHERE id = 8")
        assert warnings.messages == []
        assert codes(items) == expected_codes(items, {5: X[7]})
        assert problems(items) == []

    def test_columns_trade_names(self, connection: Connection) -> None:
        """Attribute numbers decide: the column of that name and type is another one now."""
        create_table(connection, more=", other extensions.vector(8)")
        create_index(connection)
        for old, new in (("embedding", "temporary"), ("other", "embedding"), ("temporary", "other")):
            connection.execute(f"ALTER TABLE items RENAME COLUMN {old} TO {new}")
        insert(connection, 1, X[1], other=text(X[2]))
        assert codes(connection) == {1: None}
        assert (
            "a column has changed: run SELECT foh.refresh('idx')",
            None,
            "column embedding is now named other",
        ) in problems(connection)
        connection.execute("SELECT foh.refresh('idx')")
        connection.execute("UPDATE items SET other = %s", [text(X[3])])
        assert codes(connection) == expected_codes(connection, {1: X[3]})

    def test_tables_trade_names(self, items: Connection, form: str) -> None:
        """As a migration that copies a table does it: the index stays with the table it was made for."""
        create_table(items, "replacement")
        items.execute("ALTER TABLE items RENAME TO retired")
        items.execute("ALTER TABLE replacement RENAME TO items")
        write(items, 5)
        write(items, 6, table="retired")
        assert codes(items) == {6: None}
        assert problems(items)[0][0] == "a table of the index was renamed: run SELECT foh.refresh('idx')"
        items.execute("SELECT foh.refresh('idx')")
        write(items, 7, table="retired")
        assert codes(items) == {6: None, **expected_codes(items, {7: X[7]})}

    def test_the_cure_can_be_pasted(self, connection: Connection) -> None:
        """The statement after "run" does what it says."""
        name = "select"
        create_table(connection)
        create_index(connection, name)
        connection.execute("ALTER TABLE items RENAME TO renamed")
        [problem] = connection.execute("SELECT unnest(problems) FROM foh.health()").fetchone() or [""]
        connection.execute(problem.partition(": run ")[2].encode())
        assert connection.execute("SELECT healthy FROM foh.health()").fetchall() == [(True,)]
        connection.execute("ALTER TABLE renamed DISABLE TRIGGER USER")
        [problem] = connection.execute("SELECT unnest(problems) FROM foh.health()").fetchone() or [""]
        for cure in problem.partition(": run ")[2].split(", then "):
            connection.execute(cure.encode())
        assert connection.execute("SELECT healthy FROM foh.health()").fetchall() == [(True,)]

    def test_the_schema_is_renamed(self, connection: Connection, superuser: Connection) -> None:
        superuser.execute("CREATE SCHEMA shop AUTHORIZATION app_owner")
        create_table(connection, "shop.items")
        create_index(connection, source="shop.items")
        superuser.execute("ALTER SCHEMA shop RENAME TO store")
        write(connection, 1, table="store.items")
        assert codes(connection) == {1: None}
        connection.execute("SELECT foh.refresh('idx')")
        write(connection, 2, table="store.items")
        assert codes(connection) == {1: None, **expected_codes(connection, {2: X[2]})}
        assert problems(connection) == []

    def test_the_rights_are_revoked(
        self, connection: Connection, superuser: Connection, database: Database
    ) -> None:
        superuser.execute("CREATE SCHEMA shop AUTHORIZATION app_owner")
        create_table(connection, "shop.items")
        create_index(connection, source="shop.items")
        connection.execute("GRANT INSERT, SELECT ON shop.items TO app_writer")
        superuser.execute("ALTER SCHEMA shop OWNER TO app_writer")
        writer = database.connect("app_writer")
        # The owner of a table may lose the way to it, and may take its own rights from itself.
        write(writer, 1, table="shop.items")
        superuser.execute("GRANT USAGE ON SCHEMA shop TO app_owner")
        connection.execute("REVOKE SELECT ON shop.items FROM app_owner")
        write(writer, 2, table="shop.items")
        connection.execute("GRANT SELECT ON shop.items TO app_owner")
        assert codes(connection) == {1: None, 2: None}
        write(writer, 3, table="shop.items")
        assert codes(connection) == {1: None, 2: None, **expected_codes(connection, {3: X[3]})}

    @pytest.mark.parametrize(
        ("statement", "columns"),
        [
            ("ALTER TABLE items RENAME COLUMN embedding TO vec", "id, vec"),
            ("ALTER TABLE items DROP COLUMN tags", "id, embedding"),
            ("ALTER TABLE items RENAME TO things", "id, embedding"),
            ("ALTER TABLE items ALTER embedding TYPE text", "id, embedding"),
        ],
    )
    def test_under_an_old_snapshot(
        self, items: Connection, database: Database, statement: str, columns: str
    ) -> None:
        """A REPEATABLE READ snapshot from before the ALTER shows the old catalog, not the table written."""
        old = database.connect(autocommit=False)
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT 1")
        items.execute(statement)
        write(old, 5, columns, "things" if "things" in statement else "items")
        old.commit()
        assert codes(items) == {5: None}

    @pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
    def test_truncate_under_an_old_snapshot(self, items: Connection, database: Database, level: str) -> None:
        """The row of pg_class that the snapshot shows and the one that TRUNCATE made are both to be seen."""
        write(items, 1)
        old = database.connect(autocommit=False)
        old.isolation_level = psycopg.IsolationLevel[level]
        old.execute("SELECT 1")
        items.execute("ALTER TABLE items SET (fillfactor = 90)")
        old.execute("TRUNCATE items")
        write(old, 2)
        old.execute("UPDATE items SET id = 3")
        old.commit()
        assert set(newest(items)) == {2, 3}
        assert problems(items) == []


class TestWhatAnIndexCannotHave:
    """Changes after which a table could not be given an index: noticed, with the cause and the cure."""

    @pytest.mark.parametrize(
        ("change", "cause", "undone"),
        [
            ("CREATE TABLE child () INHERITS (items)", "takes part in table inheritance", "DROP TABLE child"),
            (
                "CREATE TABLE parent (id int NOT NULL); ALTER TABLE items INHERIT parent",
                "takes part in table inheritance",
                "ALTER TABLE items NO INHERIT parent",
            ),
            (
                "ALTER TABLE items DROP CONSTRAINT items_pkey",
                "has no primary key",
                "ALTER TABLE items ADD PRIMARY KEY (id)",
            ),
            ("ALTER TABLE items SET UNLOGGED", "is unlogged", "ALTER TABLE items SET LOGGED"),
        ],
    )
    def test_is_named(self, items: Connection, change: str, cause: str, undone: str) -> None:
        write(items, 1)
        assert problems(items) == []
        items.execute(change)
        ((problem, _, detail),) = problems(items)
        assert problem == (
            "a table can no longer have an index: undo the change, or run SELECT foh.drop_index('idx')"
        )
        assert cause in detail
        assert items.execute("SELECT status FROM foh.index_stat").fetchone() == (problem,)
        with pytest.raises((errors.WrongObjectType, errors.InvalidTableDefinition), match=cause):
            items.execute("SELECT foh.refresh('idx')")
        write(items, 2)
        items.execute(undone)
        assert problems(items) == []
        assert items.execute("SELECT status FROM foh.index_stat").fetchone() == ("ready",)

    def test_a_partition_that_is_unlogged(self, connection: Connection) -> None:
        create_table(connection, partitioned=True)
        create_index(connection)
        connection.execute("ALTER TABLE items_low SET UNLOGGED")
        ((_, _, detail),) = problems(connection)
        assert "has a partition that is unlogged" in detail
        connection.execute("ALTER TABLE items_low SET LOGGED")
        assert problems(connection) == []

    @pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
    @pytest.mark.parametrize(
        ("change", "undone"),
        [
            ("CREATE TABLE child () INHERITS (items)", "DROP TABLE child"),
            ("ALTER TABLE items DROP CONSTRAINT items_pkey", "ALTER TABLE items ADD PRIMARY KEY (id)"),
        ],
    )
    def test_searches_refuse(
        self, items: Connection, database: Database, change: str, undone: str, isolation: str
    ) -> None:
        """In a session that has searched before: rows of a child are in no list, and keys need not be unique."""
        write(items, 1)
        session = database.connect()
        session.execute(f"SET default_transaction_isolation = '{isolation}'")
        query = f"SELECT id FROM foh.idx_search('{text(X[1])}', 1)"
        assert session.execute(query).fetchall() == [(1,)]
        items.execute(change)
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="has changed") as caught:
            session.execute(query)
        hint = str(caught.value.diag.message_hint)
        assert "undo the change, or run SELECT foh.drop_index('idx')" in hint or "says why it cannot" in hint
        items.execute(undone)
        assert session.execute(query).fetchall() == [(1,)]


class TestRefresh:
    def test_follows_names(self, items: Connection) -> None:
        for statement in (
            "ALTER TABLE items RENAME COLUMN embedding TO vec",
            "ALTER TABLE items RENAME COLUMN tags TO labels",
            "ALTER TABLE items RENAME COLUMN id TO number",
            "ALTER TABLE items RENAME TO things",
        ):
            items.execute(statement)
        write(items, 5, "number, vec", "things")
        items.execute("SELECT foh.refresh('idx')")
        write(items, 6, "number, vec", "things")
        assert codes(items) == {5: None, **expected_codes(items, {6: X[6]})}
        assert problems(items) == []
        items.execute("SELECT foh.drop_index('idx')")
        write(items, 7, "number, vec", "things")

    @pytest.mark.parametrize("type_", ["extensions.halfvec(8)", "extensions.vector", "real[]"])
    def test_follows_types(self, items: Connection, type_: str) -> None:
        items.execute(f"ALTER TABLE items ALTER embedding TYPE {type_} USING embedding::{type_}")
        value = X[5].tolist() if type_ == "real[]" else text(X[5])
        items.execute("INSERT INTO items (id, embedding) VALUES (5, %s)", [value])
        items.execute("SELECT foh.refresh('idx')")
        items.execute("INSERT INTO items (id, embedding) VALUES (6, %s)", [value])
        assert codes(items) == {5: None, **expected_codes(items, {6: X[5]})}
        assert problems(items) == []

    def test_takes_another_column(self, items: Connection) -> None:
        write(items, 1)
        items.execute("ALTER TABLE items DROP COLUMN embedding")
        with pytest.raises(errors.UndefinedColumn, match=r"column embedding of index 'idx' is gone"):
            items.execute("SELECT foh.refresh('idx')")
        items.execute("ALTER TABLE items ADD COLUMN vec extensions.vector(8)")
        items.execute("UPDATE items SET vec = %s", [text(X[2])])
        items.execute("SELECT foh.refresh('idx', embedding => 'vec')")
        # Rows that were not written since hold another vector now: the source has to be read again.
        assert "r" in {entry.op for entry in entries(items)}
        items.execute("UPDATE items SET vec = %s", [text(X[3])])
        assert codes(items) == expected_codes(items, {1: X[3]})
        assert problems(items) == []

    def test_takes_another_column_in_a_restored_database(
        self, items: Connection, superuser: Connection
    ) -> None:
        write(items, 1)
        items.execute("ALTER TABLE items ADD COLUMN vec extensions.vector(8)")
        # Where the oid of the table is another one, attribute numbers say nothing.
        superuser.execute("UPDATE foh.index SET source_oid = 1")
        items.execute("SELECT foh.refresh('idx')")
        assert "r" not in {entry.op for entry in entries(items)}
        superuser.execute("UPDATE foh.index SET source_oid = 1")
        items.execute("SELECT foh.refresh('idx', embedding => 'vec')")
        assert "r" in {entry.op for entry in entries(items)}

    def test_labels_of_another_type_are_read_again(self, connection: Connection) -> None:
        create_table(connection, more=", label text")
        create_index(connection, labels="label")
        connection.execute("ALTER TABLE items ALTER label TYPE text[] USING string_to_array(label, ',')")
        connection.execute("SELECT foh.refresh('idx')")
        assert [entry.op for entry in entries(connection)] == ["r"]

    def test_refuses_other_dimensions(self, items: Connection) -> None:
        items.execute("ALTER TABLE items ALTER embedding TYPE extensions.vector(9)")
        items.execute("INSERT INTO items (id, embedding) VALUES (1, '[1,2,3,4,5,6,7,8,9]')")
        with pytest.raises(
            errors.DatatypeMismatch, match="has 9 dimensions now, index 'idx' was made for 8"
        ) as refused:
            items.execute("SELECT foh.refresh('idx')")
        # No place sends to a refresh that would refuse.
        helps = "create another index on the table as it is now and build it, then run SELECT foh.drop_index('idx'), and SELECT foh.rename_index(..., 'idx')"
        assert helps in (refused.value.diag.message_hint or "")
        with pytest.raises(errors.ObjectNotInPrerequisiteState) as changed:
            items.execute("SELECT * FROM foh.idx_search('[1,2,3,4,5,6,7,8]', 1)")
        assert changed.value.diag.message_hint == f"What helps: {helps}."
        warnings = Warnings(items)
        items.execute("INSERT INTO items (id, embedding) VALUES (2, '[1,2,3,4,5,6,7,8,9]')")
        assert set(warnings.hints) == {f"What helps: {helps}."}
        assert {cure for (cure,) in items.execute("SELECT p.cure FROM foh.index i, foh._problems(i) p")} == {
            helps
        }
        items.execute("UPDATE items SET note = 5")

    def test_puts_back_what_was_removed(self, items: Connection) -> None:
        items.execute("DROP TRIGGER foh_idx_insert ON items")
        items.execute("ALTER TABLE items DISABLE TRIGGER foh_idx_update")
        assert {detail for problem, _, detail in problems(items) if "trigger is missing" in problem} == {
            "insert on public.items",
            "update on public.items",
        }
        items.execute("SELECT foh.refresh('idx')")
        write(items, 5)
        items.execute("UPDATE items SET embedding = %s", [text(X[6])])
        assert codes(items) == expected_codes(items, {5: X[6]})
        assert problems(items) == []

    def test_changes_nothing_where_nothing_changed(self, items: Connection) -> None:
        write(items, 1)
        before = entries(items), items.execute("SELECT i::text FROM foh.index i").fetchall()
        items.execute("SELECT foh.refresh('idx')")
        assert (entries(items), items.execute("SELECT i::text FROM foh.index i").fetchall()) == before

    def test_the_table_of_the_labels(self, connection: Connection) -> None:
        create_table(connection)
        connection.execute("CREATE TABLE tags (item int, tag text)")
        create_index(connection, labels="tag", labels_from="tags", labels_key="item")
        insert(connection, 1, X[1])
        connection.execute("ALTER TABLE tags RENAME COLUMN tag TO label")
        connection.execute("ALTER TABLE tags RENAME TO marks")
        insert(connection, 2, X[2])
        connection.execute("INSERT INTO marks VALUES (1, 'a')")
        assert [entry.op for entry in entries(connection)] == ["u", "u", "r"]
        assert newest(connection)[2].code is None
        connection.execute("SELECT foh.refresh('idx')")
        connection.execute("UPDATE marks SET label = 'b'")
        assert (entries(connection)[-1].key, entries(connection)[-1].op) == (1, "l")


class TestAlterIndex:
    @pytest.mark.parametrize(
        "change",
        [
            "ALTER embedding TYPE extensions.vector(9)",
            "ALTER id TYPE bigint",
            "RENAME embedding TO vec",
            "DROP COLUMN embedding",
        ],
    )
    def test_leaves_a_changed_table_to_refresh(self, items: Connection, change: str) -> None:
        items.execute(f"ALTER TABLE items {change}")
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="table of index 'idx' has changed"):
            items.execute("SELECT foh.alter_index('idx', '{\"probes\": 4}')")
        assert items.execute("SELECT options ->> 'probes' FROM foh.index").fetchone() == (None,)

    def test_the_form_of_the_triggers(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection)
        for form in ("row", "always", "statement"):
            connection.execute(
                "SELECT foh.alter_index('idx', %s)", [psycopg.types.json.Jsonb({"triggers": form})]
            )
            types = connection.execute(
                "SELECT tgtype & 1, tgenabled FROM pg_trigger WHERE tgname = 'foh_idx_update'"
            ).fetchone()
            assert types == (0 if form == "statement" else 1, "A" if form == "always" else "O")
            connection.execute("DELETE FROM items")
            write(connection, 1)
            assert codes(connection) == expected_codes(connection, {1: X[1]})
            assert problems(connection) == []
