"""Every way of writing a row reaches the stream with its transaction, through each form of the triggers."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.postgres import Database
from tests.support.recorded import (
    Connection,
    add_centers,
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

X = vectors(300)
FORMS = ["statement", "partitioned"]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def items(connection: Connection, form: str) -> Connection:
    """Table items(id, embedding, tags, note) with an index, by statement triggers, or by row triggers."""
    create_table(connection, partitioned=form == "partitioned")
    create_index(connection, labels="tags", options={} if form == "partitioned" else {"triggers": form})
    return connection


def agrees(connection: Connection, rows: dict[int, int]) -> bool:
    """Whether the stream holds these keys alone, each with the code of its vector, and the check is clean."""
    assert codes(connection) == expected_codes(connection, {key: X[at] for key, at in rows.items()})
    assert problems(connection) == []
    return True


def fill(connection: Connection, keys: range) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO items (id, embedding) VALUES (%s, %s)", [(key, text(X[key])) for key in keys]
        )


class TestEvents:
    def test_insert(self, items: Connection) -> None:
        insert(items, 5, X[5])
        assert agrees(items, {5: 5})
        [entry] = entries(items)
        assert (entry.op, entry.version, entry.center) == ("u", 1, 0)

    def test_insert_of_many(self, items: Connection) -> None:
        items.execute(
            "INSERT INTO items (id, embedding) SELECT * FROM unnest(%s::int[], %s::extensions.vector[])",
            [list(range(200)), [text(x) for x in X[:200]]],
        )
        assert agrees(items, {key: key for key in range(200)})
        assert [entry.key for entry in entries(items)] == list(range(200))

    def test_update(self, items: Connection) -> None:
        fill(items, range(3))
        items.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[9])])
        assert agrees(items, {0: 0, 1: 9, 2: 2})
        assert len(entries(items)) == 4

    def test_delete(self, items: Connection) -> None:
        fill(items, range(3))
        items.execute("DELETE FROM items WHERE id <> 1")
        assert agrees(items, {1: 1})
        assert {key for key, entry in newest(items).items() if entry.op == "d"} == {0, 2}

    def test_copy(self, items: Connection) -> None:
        with items.cursor().copy("COPY items (id, embedding) FROM STDIN") as copy:
            for key in range(150):
                copy.write_row((key, text(X[key])))
        assert agrees(items, {key: key for key in range(150)})

    def test_on_conflict_do_update(self, items: Connection) -> None:
        fill(items, range(2))
        items.execute(
            """INSERT INTO items (id, embedding) VALUES (1, %s), (7, %s)
               ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding""",
            [text(X[11]), text(X[17])],
        )
        assert agrees(items, {0: 0, 1: 11, 7: 17})

    def test_on_conflict_do_nothing(self, items: Connection) -> None:
        fill(items, range(2))
        items.execute(
            "INSERT INTO items (id, embedding) VALUES (1, %s) ON CONFLICT DO NOTHING", [text(X[11])]
        )
        assert agrees(items, {0: 0, 1: 1})
        assert len(entries(items)) == 2

    def test_merge(self, items: Connection) -> None:
        fill(items, range(4))
        items.execute(
            """MERGE INTO items t
               USING (VALUES (1, %s::extensions.vector), (2, NULL), (8, %s)) AS s (id, v) ON s.id = t.id
               WHEN MATCHED AND v IS NULL THEN DELETE
               WHEN MATCHED THEN UPDATE SET embedding = v
               WHEN NOT MATCHED THEN INSERT (id, embedding) VALUES (s.id, v)""",
            [text(X[21]), text(X[28])],
        )
        assert agrees(items, {0: 0, 1: 21, 3: 3, 8: 28})

    def test_writes_in_one_statement_of_several(self, items: Connection) -> None:
        fill(items, range(3))
        items.execute(
            """WITH gone AS (DELETE FROM items WHERE id = 0 RETURNING 1),
                    changed AS (UPDATE items SET embedding = %s WHERE id = 1 RETURNING 1)
               INSERT INTO items (id, embedding) VALUES (50, %s)""",
            [text(X[31]), text(X[32])],
        )
        assert agrees(items, {1: 31, 2: 2, 50: 32})

    def test_statements_that_touch_no_row(self, items: Connection) -> None:
        items.execute("UPDATE items SET embedding = NULL WHERE false")
        items.execute("DELETE FROM items")
        items.execute("INSERT INTO items SELECT * FROM items")
        assert entries(items) == []


class TestWhatChanged:
    def test_an_unrelated_update_writes_nothing(self, items: Connection) -> None:
        fill(items, range(120))
        before = entries(items)
        items.execute("UPDATE items SET note = note + 1")
        items.execute("UPDATE items SET id = id, embedding = embedding, tags = tags WHERE id < 3")
        items.execute("SET foh.defer = on")
        items.execute("UPDATE items SET note = note + 1")
        assert entries(items) == before

    def test_an_equal_embedding_writes_nothing(self, items: Connection) -> None:
        fill(items, range(3))
        items.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[1])])
        assert len(entries(items)) == 3

    @pytest.mark.parametrize("tags", [["a"], [], ["a", None], None])
    def test_labels(self, items: Connection, tags: list[str | None] | None) -> None:
        insert(items, 1, X[1], tags=["b"])
        items.execute("UPDATE items SET tags = %s WHERE id = 1", [tags])
        items.execute("UPDATE items SET tags = %s WHERE id = 1", [tags])
        assert len(entries(items)) == 2
        assert agrees(items, {1: 1})

    def test_embeddings_come_and_go(self, items: Connection) -> None:
        insert(items, 1, None)
        items.execute("UPDATE items SET note = 5")
        assert entries(items) == []
        items.execute("UPDATE items SET embedding = %s", [text(X[1])])
        assert agrees(items, {1: 1})
        items.execute("UPDATE items SET embedding = NULL")
        assert agrees(items, {})
        items.execute("DELETE FROM items")
        assert [entry.op for entry in entries(items)] == ["u", "d"]

    def test_wide_vectors_live_outside_the_row(self, connection: Connection) -> None:
        connection.execute(
            "CREATE TABLE items (id int PRIMARY KEY, embedding extensions.vector(700), note int)"
        )
        create_index(connection)
        wide = vectors(3, 700)
        for key in (0, 1):
            insert(connection, key, wide[key])
        connection.execute("UPDATE items SET note = 1")
        connection.execute("UPDATE items SET embedding = %s WHERE id = 0", [text(wide[0])])
        assert len(entries(connection)) == 2
        connection.execute("UPDATE items SET embedding = %s WHERE id = 0", [text(wide[2])])
        assert codes(connection) == expected_codes(connection, {0: wide[2], 1: wide[1]})


class TestKeys:
    def test_a_key_changes(self, items: Connection) -> None:
        fill(items, range(2))
        items.execute("UPDATE items SET id = 190 WHERE id = 1")
        assert agrees(items, {0: 0, 190: 1})

    def test_keys_move_up_by_one(self, items: Connection) -> None:
        # From the highest down, as a unique index that is checked row by row asks for.
        fill(items, range(54, 47, -1))
        items.execute("UPDATE items SET id = id + 1")
        assert agrees(items, {key + 1: key for key in range(48, 55)})
        assert [key for key, entry in newest(items).items() if entry.op == "d"] == [48]

    def test_keys_swap(self, items: Connection) -> None:
        fill(items, range(1, 3))
        with items.transaction():
            items.execute("UPDATE items SET id = -1 WHERE id = 1")
            items.execute("UPDATE items SET id = 1 WHERE id = 2")
            items.execute("UPDATE items SET id = 2 WHERE id = -1")
        assert agrees(items, {1: 2, 2: 1})

    def test_a_key_comes_again(self, items: Connection) -> None:
        fill(items, range(2))
        items.execute("DELETE FROM items WHERE id = 1")
        insert(items, 1, X[5])
        assert agrees(items, {0: 0, 1: 5})

    def test_the_newest_is_the_one_with_the_highest_sequence(
        self, items: Connection, database: Database
    ) -> None:
        """The transaction that began first writes last: its identifier is the lower one."""
        insert(items, 1, X[1])
        early, late = database.connect(autocommit=False), database.connect(autocommit=False)
        for session in (early, late):
            session.execute("SELECT pg_current_xact_id()")
        late.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[2])])
        late.commit()
        early.execute("UPDATE items SET embedding = %s WHERE id = 1", [text(X[3])])
        early.commit()
        assert agrees(items, {1: 3})
        assert items.execute(
            "SELECT seqcache FROM pg_sequence WHERE seqrelid = 'foh.idx_stream_seq_seq'::regclass"
        ).fetchone() == (1,)


class TestTransactions:
    def test_rollback(self, items: Connection) -> None:
        fill(items, range(2))
        with items.transaction(force_rollback=True):
            insert(items, 9, X[9])
            items.execute("DELETE FROM items WHERE id = 0")
            items.execute("TRUNCATE items")
            assert codes(items) == {}
        assert agrees(items, {0: 0, 1: 1})

    def test_savepoint(self, items: Connection) -> None:
        with items.transaction():
            insert(items, 1, X[1])
            with items.transaction(force_rollback=True):
                items.execute("UPDATE items SET embedding = %s", [text(X[8])])
                insert(items, 2, X[2])
            with items.transaction():
                insert(items, 3, X[3])
        assert agrees(items, {1: 1, 3: 3})

    def test_others_see_it_at_commit(self, items: Connection, database: Database) -> None:
        writer = database.connect(autocommit=False)
        insert(writer, 1, X[1])
        assert entries(items) == []
        writer.commit()
        assert agrees(items, {1: 1})

    def test_a_prepared_transaction(self, items: Connection, database: Database) -> None:
        writer = database.connect(autocommit=False)
        writer.tpc_begin("foh")
        insert(writer, 1, X[1])
        writer.tpc_prepare()
        assert entries(items) == []
        writer.tpc_commit()
        assert agrees(items, {1: 1})


class TestTruncate:
    def test_leaves_one_marker(self, items: Connection) -> None:
        fill(items, range(150))
        items.execute("TRUNCATE items")
        assert [entry.op for entry in entries(items)[150:]] == ["t"]
        assert agrees(items, {})

    def test_keys_come_again(self, items: Connection) -> None:
        fill(items, range(3))
        items.execute("TRUNCATE items")
        insert(items, 1, X[7])
        assert agrees(items, {1: 7})

    def test_restart_identity(self, connection: Connection) -> None:
        connection.execute("CREATE TABLE items (id serial PRIMARY KEY, embedding extensions.vector(8))")
        create_index(connection)
        for at in range(3):
            connection.execute("INSERT INTO items (embedding) VALUES (%s)", [text(X[at])])
        connection.execute("TRUNCATE items RESTART IDENTITY")
        connection.execute("INSERT INTO items (embedding) VALUES (%s)", [text(X[5])])
        assert agrees(connection, {1: 5})

    def test_in_the_transaction_that_fills(self, items: Connection) -> None:
        with items.transaction():
            fill(items, range(3))
            items.execute("TRUNCATE items")
            fill(items, range(1, 2))
        assert agrees(items, {1: 1})

    def test_lists_before_it_do_not_count(self, items: Connection) -> None:
        add_centers(items, X[:1])
        items.execute(
            "INSERT INTO foh.idx_list SELECT 1, 0, '{7}', a.geometry, ARRAY[repeat('0', 96)::bit(96)]"
            " FROM foh.idx_area a WHERE a.area = 1"
        )
        items.execute("INSERT INTO foh.idx_item VALUES (7, 1)")
        items.execute("UPDATE foh.idx_center SET length = 1")
        assert [problem for problem, _, _ in problems(items)] == [
            "a list holds a row that is gone from the source"
        ]
        items.execute("TRUNCATE items")
        assert problems(items) == []


class TestOtherTriggers:
    """The application's own triggers write too, before or after ours: the row as it ends up counts."""

    def trigger(self, connection: Connection, body: str, event: str = "AFTER INSERT") -> None:
        connection.execute(
            f"CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NEW; END $$"
        )
        # Row triggers fire in the order of their names: before all of ours, and after.
        for name in ("aaa", "zzz"):
            connection.execute(
                f"""CREATE TRIGGER {name} {event} ON items FOR EACH ROW
                    WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION own()"""
            )

    def test_changes_the_row_before_it_is_written(self, items: Connection) -> None:
        self.trigger(items, f"NEW.embedding := '{text(X[40])}'", "BEFORE INSERT")
        insert(items, 1, X[1])
        assert agrees(items, {1: 40})

    def test_changes_the_row_afterwards(self, items: Connection) -> None:
        self.trigger(items, f"UPDATE items SET embedding = '{text(X[40])}' WHERE id = NEW.id")
        insert(items, 1, X[1])
        assert agrees(items, {1: 40})

    def test_removes_the_embedding(self, items: Connection) -> None:
        self.trigger(items, "UPDATE items SET embedding = NULL WHERE id = NEW.id")
        insert(items, 1, X[1])
        assert agrees(items, {})

    def test_changes_the_key(self, items: Connection) -> None:
        self.trigger(items, "UPDATE items SET id = NEW.id + 1000 WHERE id = NEW.id")
        insert(items, 1, X[1])
        found = newest(items)
        assert found[1001].code == expected_codes(items, {1: X[1]})[1]
        # Whatever is said of the old key, it leads to no row.
        assert found[1].code is None
        assert problems(items) == []

    def test_deletes_the_row(self, items: Connection) -> None:
        self.trigger(items, "DELETE FROM items WHERE id = NEW.id")
        insert(items, 1, X[1])
        assert all(entry.code is None for entry in newest(items).values())
        assert problems(items) == []

    def test_puts_a_deleted_row_back(self, items: Connection) -> None:
        insert(items, 1, X[1])
        self.trigger(
            items,
            f"INSERT INTO items (id, embedding) VALUES (OLD.id, '{text(X[41])}') ON CONFLICT DO NOTHING",
            "AFTER DELETE",
        )
        items.execute("DELETE FROM items")
        assert agrees(items, {1: 41})


class TestDefer:
    @pytest.fixture
    def deferring(self, items: Connection) -> Connection:
        add_centers(items, X[:2])
        fill(items, range(3))
        items.execute("SET foh.defer = on")
        return items

    def test_queues_keys_only(self, deferring: Connection) -> None:
        fill(deferring, range(10, 60))
        queued = entries(deferring)[3:]
        assert [entry.key for entry in queued] == list(range(10, 60))
        assert {entry[2:] for entry in queued} == {("u", 0, 0, None)}
        assert problems(deferring) == []

    def test_all_events(self, deferring: Connection) -> None:
        deferring.execute("UPDATE items SET embedding = %s WHERE id = 0", [text(X[5])])
        deferring.execute("UPDATE items SET id = 70 WHERE id = 1")
        deferring.execute("DELETE FROM items WHERE id = 2")
        queued = entries(deferring)[3:]
        assert sorted(entry.key for entry in queued) == [0, 1, 2, 70]
        assert {entry[2:] for entry in queued} == {("u", 0, 0, None)}
        assert problems(deferring) == []

    def test_ends_with_the_transaction(self, items: Connection) -> None:
        with items.transaction():
            items.execute("SET LOCAL foh.defer = on")
            insert(items, 1, X[1])
        insert(items, 2, X[2])
        assert codes(items) == {1: None, **expected_codes(items, {2: X[2]})}

    @pytest.mark.parametrize(
        ("value", "deferred"), [("true", True), ("1", True), ("ON", True), ("off", False), ("", False)]
    )
    def test_values(self, connection: Connection, value: str, deferred: bool) -> None:
        create_table(connection)
        create_index(connection)
        connection.execute("SELECT set_config('foh.defer', %s, false)", [value])
        insert(connection, 1, X[1])
        assert (codes(connection)[1] is None) == deferred


class TestHomes:
    @pytest.mark.parametrize("distance", ["cosine", "l2", "ip"])
    def test_a_row_goes_to_the_nearest_center(self, connection: Connection, distance: str) -> None:
        create_table(connection)
        create_index(connection, distance=distance)
        add_centers(connection, X[100:120])
        fill(connection, range(40))
        nearest = connection.execute(
            """SELECT DISTINCT ON (s.key) s.key, c.center
               FROM foh.idx_stream s, (SELECT unnest(ids) AS center, unnest(geometry) AS geometry FROM foh.idx_area WHERE area = 1) c
               ORDER BY s.key, bit_count(s.geometry # c.geometry), c.center"""
        ).fetchall()
        assert {key: entry.center for key, entry in newest(connection).items()} == dict(nearest)
        assert len({center for _, center in nearest}) > 3

    def test_no_centers_is_center_zero(self, items: Connection) -> None:
        fill(items, range(3))
        assert {entry.center for entry in entries(items)} == {0}


def test_the_triggers_never_notify(items: Connection, database: Database) -> None:
    """A NOTIFY would serialise every commit of the application."""
    functions = items.execute(
        "SELECT prosrc FROM pg_proc WHERE pronamespace = 'foh'::regnamespace"
    ).fetchall()
    assert not any("notify" in source.lower() for (source,) in functions)


def test_wrong_dimensions_are_pgvectors_to_refuse(items: Connection) -> None:
    with pytest.raises(psycopg.errors.DataException, match="expected 8 dimensions"):
        insert(items, 1, X[1][:3])
