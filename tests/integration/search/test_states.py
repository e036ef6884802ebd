"""The states an index can be in: what the lists say, what the stream says, and when neither is asked."""

from __future__ import annotations

import re
import threading

import numpy as np
import psycopg
import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, exact_distance, text, vectors

QUERY = vectors(1, seed=5)[0]
BASE = vectors(200)


def exact(base: np.ndarray, k: int) -> list[int]:
    return [int(key) for key in np.argsort(exact_distance(base, QUERY))[:k]]


class TestFallbacks:
    def test_building(self, shop: Shop) -> None:
        shop.run("UPDATE foh.index SET status = 'building'")
        assert shop.found(QUERY, 20, probes=1) == exact(BASE, 20)
        assert shop.explain(QUERY)["fallback"] == "the index is being built"

    def test_created_on_a_table_with_rows(self, database: Database) -> None:
        connection = database.connect("app_owner")
        connection.execute("CREATE TABLE old (id int PRIMARY KEY, embedding extensions.vector(8))")
        connection.cursor().executemany(
            "INSERT INTO old VALUES (%s, %s)", [(key, text(row)) for key, row in enumerate(BASE)]
        )
        connection.execute("SELECT foh.create_index('old', 'old', 'embedding')")
        connection.execute("DELETE FROM old WHERE id % 2 = 0")
        rows = connection.execute("SELECT id FROM foh.old_search(%s, 20)", [text(QUERY)]).fetchall()
        assert [row[0] for row in rows] == [key for key in exact(BASE, 200) if key % 2][:20]

    def test_untrained_and_small(self, new_shop) -> None:
        shop = new_shop(options={"exact_rows": 150})
        shop.fill(range(100), BASE[:100])
        assert shop.explain(QUERY)["fallback"] == "the index is small"
        assert shop.found(QUERY, 20) == exact(BASE[:100], 20)
        shop.install(trained=False)
        shop.fill(range(100, 150), BASE[100:150])
        assert shop.explain(QUERY)["fallback"] == "the index is small"
        shop.fill([150], BASE[150:151])
        assert shop.explain(QUERY)["fallback"] == "none"
        shop.run("DELETE FROM {source} WHERE {key} >= 100")
        shop.install(trained=True)
        assert shop.explain(QUERY)["fallback"] == "none"

    def test_few_deferred_rows_are_encoded_on_the_way(self, shop: Shop) -> None:
        with shop.connection.transaction():
            shop.run("SET LOCAL foh.defer = on")
            shop.fill(range(300, 310), vectors(10, seed=3))
            shop.fill([310], [QUERY])
        assert shop.explain(QUERY)["fallback"] == "none"
        assert shop.found(QUERY, 1) == shop.found(QUERY, 1, shortlist=0) == [310]
        assert set(shop.found(QUERY, 300, shortlist=0)) == {*range(200), *range(300, 311)}
        shop.run("DELETE FROM {source} WHERE {key} > 304")
        assert set(shop.found(QUERY, 300, shortlist=0)) == {*range(200), *range(300, 305)}

    def test_many_deferred_rows(self, shop: Shop) -> None:
        with shop.connection.transaction():
            shop.run("SET LOCAL foh.defer = on")
            shop.fill(range(1000, 1201), vectors(201, seed=3))
        assert (
            shop.explain(QUERY)["fallback"] == "too many rows are in no list yet: the next update places them"
        )
        both = np.vstack([BASE, vectors(201, seed=3)])
        assert shop.found(QUERY, 30) == [key if key < 200 else key + 800 for key in exact(both, 30)]

    def test_what_is_many_depends_on_the_table(self, shop: Shop) -> None:
        """A lookup for each of 201 rows costs less than a scan of a table that is larger by far."""
        with shop.connection.transaction():
            shop.run("SET LOCAL foh.defer = on")
            shop.fill(range(1000, 1201), vectors(201, seed=3))
        before = shop.found(QUERY, 30)
        # As if there were many: the number of items says how many rows there are.
        shop.run("INSERT INTO {item} SELECT g, 1 FROM generate_series(100000, 125000) g")
        assert shop.explain(QUERY)["fallback"] == "none"
        assert shop.found(QUERY, 30, probes=1000, shortlist=1000, labels=0) == before
        assert set(range(1000, 1201)) < set(shop.found(QUERY, 401))

    def test_source_to_be_read_again(self, shop: Shop) -> None:
        shop.run("INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0)")
        assert shop.explain(QUERY)["fallback"] == "the source must be read again"
        assert shop.found(QUERY, 20) == exact(BASE, 20)

    def test_an_empty_index(self, new_shop) -> None:
        shop = new_shop()
        assert shop.search(QUERY) == []
        assert shop.run("SELECT * FROM {candidates}(%s)", [text(QUERY)]).fetchall() == []
        shop.install()
        assert shop.search(QUERY) == []
        shop.fill([1], [QUERY])
        assert shop.found(QUERY) == [1]


class TestStream:
    def test_wins_over_lists(self, shop: Shop) -> None:
        far = shop.found(-QUERY, 1)[0]
        assert shop.found(QUERY, 1) != [far]
        shop.run("UPDATE {source} SET embedding = %s WHERE {key} = %s", [text(QUERY), far])
        for shortlist in (0, 100):
            rows = shop.search(QUERY, 200, probes=100, shortlist=shortlist)
            assert (rows[0][0], rows[0][2]) == (far, pytest.approx(0, abs=1e-6))
            assert len({row[0] for row in rows}) == 200
        assert shop.found(-QUERY, 1) != [far]

    def test_the_newest_entry_of_a_key_wins(self, shop: Shop) -> None:
        for vector in (QUERY, -QUERY, QUERY, -QUERY):
            shop.run("UPDATE {source} SET embedding = %s WHERE {key} = 7", [text(vector)])
            for shortlist in (0, 100):
                assert shop.found(vector, 1, shortlist=shortlist) == [7]
                assert shop.found(-vector, 1, shortlist=shortlist) != [7]

    def test_deleted_and_written_again(self, shop: Shop) -> None:
        shop.run("DELETE FROM {source} WHERE {key} = 7")
        assert 7 not in shop.found(BASE[7], 200)
        shop.fill([7], [QUERY])
        assert shop.found(QUERY, 1, shortlist=0) == [7]
        shop.run("UPDATE {source} SET {key} = 700 WHERE {key} = 7")
        assert shop.found(QUERY, 1, shortlist=0) == [700]
        assert 7 not in shop.found(QUERY, 1000)

    def test_only_entries_of_probed_centers_are_read(self, shop: Shop) -> None:
        shop.fill(range(1000, 1100), vectors(100, seed=8))
        everything = {row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 100)", [text(QUERY)])}
        some = {row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 1)", [text(QUERY)])}
        assert everything == {*range(200), *range(1000, 1100)}
        assert 0 < len(some & set(range(1000, 1100))) < 100

    def test_of_its_own_transaction_and_of_none_that_rolled_back(
        self, shop: Shop, database: Database
    ) -> None:
        other = shop.seen_by(database.connect("app_owner"))
        with shop.connection.transaction(force_rollback=True):
            shop.fill([900], [QUERY])
            assert shop.found(QUERY, 1) == [900]
            assert other.found(QUERY, 1) != [900]
        assert shop.found(QUERY, 1) != [900]


class TestVersions:
    def test_a_writer_that_was_in_flight(self, shop: Shop, database: Database) -> None:
        """Its trigger stored a center that is gone when it commits."""
        writer = shop.seen_by(database.connect("app_owner"))
        with writer.connection.transaction():
            writer.fill([900, 901], [QUERY, -QUERY])
            writer.run("DELETE FROM {source} WHERE {key} = 3")
            shop.install(centers=5, seed=1, consume=False)
        for probes in (1, 100):
            for shortlist in (0, 100):
                keys = shop.found(QUERY, 201, probes=probes, shortlist=shortlist)
                assert set(keys) == {*range(200), 900, 901} - {3}

    def test_several_versions_behind(self, shop: Shop) -> None:
        shop.fill([900], [QUERY])
        for seed in (1, 2, 3):
            shop.install(seed=seed, consume=False)
            shop.fill([900 + seed], vectors(1, seed=seed + 50))
            shop.run("DELETE FROM {list}; DELETE FROM {item}; UPDATE {center} SET length = 0")
            found = {row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 1)", [text(QUERY)])}
            assert found >= set(range(900, 900 + seed))

    def test_so_far_behind_that_nobody_knows_its_center(self, shop: Shop) -> None:
        shop.fill([900], [QUERY])
        shop.install(centers=5, consume=False)
        shop.run("DELETE FROM {list}; DELETE FROM {item}; UPDATE {center} SET length = 0")
        for _ in range(64):
            shop.new_version()
        assert [row[0] for row in shop.run("SELECT {key} FROM {candidates}(%s, 1)", [text(QUERY)])] == [900]

    def test_entries_of_centers_that_are_gone_are_read_up_to_a_number(self, shop: Shop) -> None:
        """A hundred one by one; where there are more, the source is read."""
        new = vectors(101, seed=8)
        shop.fill(range(300, 400), new[:100])
        shop.install(centers=5, consume=False)
        # What is written since has a center: it is not one of them.
        shop.fill([500], [-QUERY])
        assert shop.explain(QUERY)["fallback"] == "none"
        everything = np.vstack([BASE, new[:100], [-QUERY]])
        keys = [*range(200), *range(300, 400), 500]
        for arguments in ({}, {"shortlist": 0}):
            found = shop.found(QUERY, 301, probes=100, **arguments)
            assert sorted(found) == keys
        order = [keys[at] for at in np.argsort(exact_distance(everything, QUERY))]
        assert shop.found(QUERY, 20, probes=100, shortlist=1000) == order[:20]
        # One that is written again is no longer among them.
        shop.run("UPDATE {source} SET embedding = %s WHERE {key} = 300", [text(-QUERY)])
        assert shop.found(-QUERY, 2) in ([300, 500], [500, 300])
        shop.run("DELETE FROM {source} WHERE {key} = 301")
        assert 301 not in shop.found(new[1], 5, shortlist=1000)

    def test_check_names_an_entry_whose_center_is_not_known_to_be_gone(self, shop: Shop) -> None:
        shop.fill([900], [QUERY])
        shop.install(centers=5, consume=False)
        found = "SELECT key FROM foh.check('items') WHERE problem LIKE 'a search would not find an entry%%'"
        assert shop.run(found).fetchall() == []
        shop.run("UPDATE {stream} SET center = 1000")
        assert shop.run(found).fetchall() == [("900",)]

    @pytest.mark.parametrize("asked", [{}, {"shortlist": 0}], ids=["by the table", "by lists"])
    def test_one_snapshot(self, shop: Shop, database: Database, asked: dict[str, int]) -> None:
        """A version that is installed in the middle of a statement is not seen by half of it."""
        shop.run(
            """CREATE FUNCTION public.pause(key int) RETURNS boolean LANGUAGE plpgsql AS $$
               BEGIN PERFORM pg_advisory_xact_lock_shared(77); RETURN true; END $$"""
        )
        other = shop.seen_by(database.connect("app_owner"))
        before = shop.search(QUERY, 50, filter="public.pause(id)", **asked)
        holder = database.connect("app_owner")
        holder.execute("SELECT pg_advisory_lock(77)")
        answers: list[list[tuple]] = []
        thread = threading.Thread(
            target=lambda: answers.append(other.search(QUERY, 50, filter="public.pause(id)", **asked))
        )
        thread.start()
        waiting = """SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock'"""
        while holder.execute(waiting).fetchone() == (0,):
            assert thread.is_alive()
        shop.install(centers=3, seed=4)
        shop.run("DELETE FROM {source} WHERE {key} = ANY (%s)", [[row[0] for row in before[:10]]])
        holder.execute("SELECT pg_advisory_unlock(77)")
        thread.join()
        assert answers == [before]

    def test_repeatable_read_sees_its_own_version(self, shop: Shop, database: Database) -> None:
        reader = shop.seen_by(database.connect("app_owner"))
        reader.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with reader.connection.transaction():
            before = reader.search(QUERY, 200, probes=2)
            version = reader.explain(QUERY)["version"]
            shop.install(centers=3, seed=4)
            shop.run("DELETE FROM {source} WHERE {key} < 100")
            assert reader.search(QUERY, 200, probes=2) == before
            assert reader.explain(QUERY)["version"] == version
        assert set(reader.found(QUERY, 200)) == set(range(100, 200))


class TestTruncate:
    def test_keys_may_come_again(self, shop: Shop) -> None:
        shop.fill([900], [QUERY])
        shop.run("TRUNCATE {source}")
        assert shop.search(QUERY) == []
        assert shop.run("SELECT * FROM {candidates}(%s, 100)", [text(QUERY)]).fetchall() == []
        shop.fill([3, 4], [QUERY, -QUERY])
        for shortlist in (0, 100):
            assert shop.found(QUERY, 10, shortlist=shortlist) == [3, 4]
        assert shop.violations() == []

    def test_rolled_back(self, shop: Shop) -> None:
        with shop.connection.transaction(force_rollback=True):
            shop.run("TRUNCATE {source}")
            shop.fill([3], [QUERY])
            assert shop.found(QUERY, 10) == [3]
        assert set(shop.found(QUERY, 1000)) == set(range(200))


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("id bigint PRIMARY KEY", "extensions.vector(8)"),
        ("id varchar(20) PRIMARY KEY", "extensions.halfvec(8)"),
        ("id uuid PRIMARY KEY", "real[]"),
        ("id int, part text, PRIMARY KEY (part, id)", "extensions.vector"),
    ],
)
def test_a_source_that_looks_as_recorded_is_known_to(connection, key: str, column: str) -> None:
    """Else every search would look at the state of the index more closely, for half of its time."""
    connection.execute(f"CREATE TABLE plain ({key}, embedding {column})")
    connection.execute("SELECT foh.create_index('plain', 'plain', 'embedding', dimensions => 8)")
    (definition,) = connection.execute("SELECT pg_get_functiondef('foh.plain_near'::regproc)").fetchone()
    (known,) = re.findall(r"foh\._intact_in_plan\(.*?'\)", definition)
    assert connection.execute(f"SELECT {known}").fetchone() == (True,)


class TestChangedSource:
    @pytest.mark.parametrize(
        "change",
        [
            "ALTER TABLE {source} RENAME COLUMN embedding TO renamed",
            "ALTER TABLE {source} RENAME COLUMN {key} TO renamed",
            "ALTER TABLE {source} RENAME TO renamed",
        ],
    )
    def test_says_so_and_refresh_cures(self, shop: Shop, change: str) -> None:
        before = shop.search(QUERY, 20)
        shop.run(change)
        for call in (
            "{search}(%s)",
            "{search}(%s, filter => 'true')",
            "{search}(%s, shortlist => 0)",
            "{candidates}(%s)",
        ):
            with pytest.raises(
                psycopg.errors.ObjectNotInPrerequisiteState, match="table of index 'items' has changed"
            ) as caught:
                shop.run(f"SELECT * FROM {call}", [text(QUERY)])
            assert "foh.refresh('items')" in caught.value.diag.message_hint
        shop.run("SELECT foh.refresh('items')")
        assert shop.search(QUERY, 20) == before

    def test_a_retyped_embedding(self, shop: Shop) -> None:
        shop.run("ALTER TABLE {source} ALTER COLUMN embedding TYPE extensions.halfvec(8)")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            shop.search(QUERY)
        shop.run("SELECT foh.refresh('items')")
        assert len(shop.found(QUERY, 20)) == 20

    @pytest.mark.parametrize(
        "change",
        [
            "ALTER TABLE {source} RENAME COLUMN embedding TO old; ALTER TABLE {source} RENAME COLUMN other TO embedding",
            "ALTER TABLE {source} DROP COLUMN embedding; ALTER TABLE {source} RENAME COLUMN other TO embedding",
            "ALTER TABLE {source} RENAME TO old; CREATE TABLE {source} (LIKE old INCLUDING ALL)",
            "ALTER TABLE {source} ALTER COLUMN embedding TYPE extensions.vector USING embedding",
        ],
    )
    @pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
    def test_sessions_that_have_their_plans(
        self, shop: Shop, database: Database, change: str, isolation: str
    ) -> None:
        """Names and types are still right, and yet another table or column stands behind them."""
        shop.run("ALTER TABLE {source} ADD COLUMN other extensions.vector(8)")
        planned = shop.seen_by(database.connect("app_owner"))
        planned.execute_text(f"SET default_transaction_isolation = '{isolation}'")
        before = [planned.search(QUERY, 5), planned.search(QUERY, 5, shortlist=0)]
        shop.run(change)
        for arguments in ({}, {"shortlist": 0}):
            for session in (planned, shop):
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                    session.search(QUERY, 5, **arguments)
        assert len(before[0]) == 5

    def test_a_plan_made_under_an_old_snapshot(self, shop: Shop, database: Database) -> None:
        shop.run("ALTER TABLE {source} ADD COLUMN other extensions.vector(8)")
        reader = shop.seen_by(database.connect("app_owner", autocommit=False))
        reader.execute_text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute_text("SELECT count(*) FROM foh.index")
        shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO old")
        shop.run("ALTER TABLE {source} RENAME COLUMN other TO embedding")
        # Here it cannot know better. The plan it makes must not outlive the transaction as one that is in order.
        reader.search(QUERY, 5, shortlist=0)
        reader.connection.commit()
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            reader.search(QUERY, 5, shortlist=0)

    def test_after_explain_in_the_same_transaction(self, shop: Shop, database: Database) -> None:
        """It holds the locks of a search, and so would hear nothing of an ALTER."""
        shop.run("ALTER TABLE {source} ADD COLUMN other extensions.vector(8)")
        reader = shop.seen_by(database.connect("app_owner", autocommit=False))
        reader.search(QUERY, 5)
        reader.connection.commit()
        reader.explain(QUERY)
        shop.execute_text("SET lock_timeout = 100")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO old")
        assert len(reader.search(QUERY, 5)) == 5
        reader.connection.commit()

    def test_an_alter_that_is_rolled_back(self, shop: Shop) -> None:
        before = shop.search(QUERY, 5)
        shop.execute_text("BEGIN")
        shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO old")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            shop.search(QUERY, 5)
        shop.execute_text("ROLLBACK")
        assert shop.search(QUERY, 5) == before

    def test_in_a_restored_database(self, shop: Shop, superuser: psycopg.Connection) -> None:
        """Another oid than the one recorded: every search looks for itself until a refresh."""
        before = shop.search(QUERY, 5)
        superuser.execute("UPDATE foh.index SET source_oid = 1")
        assert shop.seen_by(shop.connection).search(QUERY, 5) == before
        shop.run("SELECT foh._make_functions(i) FROM foh.index i")
        assert shop.search(QUERY, 5) == before
        shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO old")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            shop.search(QUERY, 5)

    def test_a_dropped_source(self, shop: Shop) -> None:
        shop.run("DROP TABLE {source}")
        with pytest.raises(psycopg.Error):
            shop.search(QUERY)


def test_names_of_the_index(new_shop) -> None:
    for number, name in enumerate(["select", "two_words", "a" * 40]):
        shop = new_shop(index=name, source=f"public.item{number}")
        shop.fill(range(30), BASE[:30])
        shop.install()
        assert len(shop.found(QUERY, 5)) == 5
        assert len(shop.found(QUERY, 5, filter="id > 3")) == 5
