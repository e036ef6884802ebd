"""Databases of released versions, brought to the present one."""

from __future__ import annotations

import gzip
import runpy
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from foh_pg.errors import SchemaError
from foh_pg.quality.evaluate import evaluate
from foh_pg.schema import migrations
from foh_pg.schema.migrations import migrate, offline
from foh_pg.updater import build, rebuild, rollback, update
from tests.support.catalog import dump
from tests.support.postgres import Database, Server, install_pgvector

RELEASED = Path(__file__).parents[1] / "data" / "released"
INDEXES = ("documents", "events", "odd", "papers", "photos", "products", "songs")
UNBUILT = "odd"


def load(database: Database, owner: str = "foh_owner") -> Database:
    """Load the dump; with another owner of schema foh: as where no role could be created."""
    text = gzip.decompress((RELEASED / "0.1.0.sql.gz").read_bytes()).decode()
    with psycopg.connect(database.dsn(None), autocommit=True) as superuser:
        superuser.execute(text.replace("foh_owner", owner).encode())
        # In the database that was dumped these agreed, as they do where a version is upgraded in place.
        superuser.execute("UPDATE foh.index SET source_oid = source::oid, labels_from_oid = labels_from::oid")
    return database


def load_and_migrate(database: Database, way: str) -> None:
    load(database, "app_owner" if way == "app_owner" else "foh_owner")
    connection = database.connect(None if way == "superuser" else way)
    assert migrate(connection) == ("0002", migrations.head())


# Upgraded by a superuser, by the role that installed it, and by the one role that owns everything.
WAYS = {way: partial(load_and_migrate, way=way) for way in ("superuser", "installer", "app_owner")}


@pytest.fixture
def released(copy_of: Callable[..., Database]) -> Database:
    return copy_of(load, template="template1")


@pytest.fixture(params=WAYS)
def migrated(request: pytest.FixtureRequest, copy_of: Callable[..., Database]) -> Database:
    return copy_of(WAYS[request.param], template="template1")


class Table:
    """What a search must answer, by brute force from the table itself."""

    def __init__(self, owner: psycopg.Connection[Any], index: str) -> None:
        self.owner, self.index = owner, index
        found = owner.execute(
            "SELECT source_name, key, embedding, distance, labels IS NOT NULL FROM foh.index WHERE name = %s",
            [index],
        ).fetchone()
        assert found is not None
        self.source, self.key, self.embedding, self.distance, self.labelled = found
        columns = sql.SQL("SELECT {}, {}::real[] FROM ").format(
            sql.Identifier(self.key), sql.Identifier(self.embedding)
        )
        rows = owner.execute(columns + sql.SQL(self.source)).fetchall()
        rows = [row for row in rows if row[1] is not None]
        self.keys = [row[0] for row in rows]
        self.vectors = np.array([row[1] for row in rows])

    def exact(self, query: Any, k: int) -> list[float]:
        return sorted(self.distances(query))[:k]

    def distances(self, query: Any) -> Any:
        if self.distance == "l2":
            return np.linalg.norm(self.vectors - query, axis=1)
        if self.distance == "ip":
            return -self.vectors @ query
        return 1 - self.vectors @ query / np.linalg.norm(self.vectors, axis=1) / np.linalg.norm(query)

    def search(self, query: Any, k: int = 10, more: str = "") -> list[Any]:
        key, function = sql.Identifier(self.key), sql.Identifier("foh", f"{self.index}_search")
        vector = sql.Literal(list(map(float, query)))
        call = sql.SQL(f"SELECT {{}} FROM {{}}({{}}::real[]::extensions.vector, {k}{more})")
        return [found for (found,) in self.owner.execute(call.format(key, function, vector))]

    def queries(self, n: int = 15) -> Any:
        random = np.random.default_rng(1)
        chosen = random.choice(len(self.vectors), n, replace=False)
        return self.vectors[chosen] + 0.1 * random.standard_normal((n, self.vectors.shape[1]))

    def recall(self, more: str = "") -> float:
        """The share of the ten nearest rows among ten answers, all of which are rows."""
        hits = []
        for query in self.queries():
            answers = self.search(query, more=more)
            assert len(set(answers)) == 10
            distances = dict(zip(self.keys, self.distances(query), strict=True))
            far = self.exact(query, 10)[-1]
            hits.append(np.mean([distances[key] <= far + 1e-5 for key in answers]))
        return float(np.mean(hits))


def violations(owner: psycopg.Connection[Any], index: str) -> list[Any]:
    return owner.execute("SELECT * FROM foh.check(%s)", [index]).fetchall()


def catch_up(database: Database, index: str) -> None:
    if index == UNBUILT:
        build(database.dsn(), index)
    else:
        update(database.dsn(), index)


class TestAnswers:
    def test_are_right_before_and_after_the_update(self, migrated: Database) -> None:
        owner = migrated.connect()
        for index in INDEXES:
            table = Table(owner, index)
            assert table.recall() == 1, index
            assert violations(owner, index) == []
            catch_up(migrated, index)
            assert table.recall(", probes => 1000, shortlist => 1000, labels => 0") > 0.97, index
            assert table.recall(", labels => 0") > 0.7, index
            assert len(table.search(table.vectors[0])) == 10
            assert violations(owner, index) == []
            waiting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("foh", f"{index}_stream"))
            assert owner.execute(waiting).fetchone() == (0,)

    def test_what_was_learned_is_kept(self, released: Database) -> None:
        superuser = released.connect(None)
        learned = "SELECT bit, weights::text, bias FROM foh.products_projection ORDER BY bit"
        models = "SELECT index, version, trained, learned, mean::text, scale FROM foh.model ORDER BY 1, 2"
        states = "SELECT * FROM foh.model_state ORDER BY index, version, name, chunk"
        labels = "SELECT index, label, name, projection::text FROM foh.label ORDER BY 1, 2"
        before = [superuser.execute(query).fetchall() for query in (learned, models, states, labels)]
        migrate(superuser)
        assert [superuser.execute(query).fetchall() for query in (learned, models, states, labels)] == before
        update(released.dsn(), "products")
        assert superuser.execute(learned).fetchall() == before[0]
        # The learner goes on from where it was.
        owner = released.connect()
        owner.execute(
            "INSERT INTO product SELECT 3000 + n, 'new', '{red}', (SELECT embedding FROM product WHERE id = 1 + n)"
            " FROM generate_series(1, 200) n"
        )
        run = update(released.dsn(), "products")
        assert "flipped" in run.metrics
        assert violations(owner, "products") == []

    def test_a_model_of_before_can_be_returned_to(self, released: Database) -> None:
        migrate(released.connect(None))
        update(released.dsn(), "products")
        rollback(released.dsn(), "products", 2)
        owner = released.connect()
        assert violations(owner, "products") == []
        assert Table(owner, "products").recall(", labels => 0") > 0.7

    def test_every_other_command_works(self, released: Database) -> None:
        migrate(released.connect(None))
        released.connect(None).execute("SELECT foh.grant(owner => 'app_owner')")
        owner = released.connect()
        evaluate(released.dsn(), "products", queries=20)
        rebuild(released.dsn(), "papers")
        update(released.dsn(), "events", full=True)
        for index in INDEXES:
            catch_up(released, index)
            owner.execute("SELECT foh.alter_index(%s, '{\"probes\": 4}')", [index])
            owner.execute("SELECT foh.refresh(%s)", [index])
            owner.execute("SELECT foh.repair(%s)", [index])
            assert violations(owner, index) == []
            owner.execute("SELECT foh.drop_index(%s)", [index])


class TestWrites:
    def test_are_captured_at_every_point(self, migrated: Database) -> None:
        owner = migrated.connect()
        for point, key in (("before the update", 5001), ("after it", 5002)):
            far = [90 if place == key - 5000 else -40 for place in range(16)]
            owner.execute("INSERT INTO product VALUES (%s, 'new', '{red}', %s::real[])", [key, far])
            owner.execute("UPDATE product SET embedding = %s::real[] WHERE id = %s", [far, key - 4900])
            owner.execute("DELETE FROM product WHERE id = %s", [key - 4800])
            owner.execute("INSERT INTO paper_tag VALUES (%s, 'late')", [key - 4801])
            owner.execute("UPDATE event SET embedding = NULL WHERE id = %s", [key - 4900])
            table = Table(owner, "products")
            assert set(table.search(far, 2)) == {key, key - 4900}, point
            assert key - 4800 not in table.search(far, 400), point
            for index in ("products", "papers", "events"):
                catch_up(migrated, index)
                assert violations(owner, index) == [], point

    def test_that_wait_for_the_migration_are_captured(self, released: Database) -> None:
        superuser, writer = released.connect(None, autocommit=False), released.connect("app_writer")
        superuser.execute("SELECT 1")
        migrate(superuser)
        statement = (
            "INSERT INTO product VALUES (7777, 'late', '{red}', array_fill(9, '{16}')::extensions.vector)"
        )
        waiting = threading.Thread(target=writer.execute, args=[statement])
        waiting.start()
        blocked = "SELECT pg_blocking_pids(%s) = '{}' FROM pg_sleep(0.05)"
        while waiting.is_alive() and superuser.execute(blocked, [writer.info.backend_pid]).fetchone() == (
            True,
        ):
            pass
        assert waiting.is_alive()
        superuser.commit()
        waiting.join()
        owner = released.connect()
        assert owner.execute("SELECT count(*) FROM foh.products_stream WHERE key = 7777").fetchone() == (1,)
        assert Table(owner, "products").search([9] * 16, 1) == [7777]


class TestSchema:
    @pytest.fixture
    def fresh(self, new_database: Callable[..., Database], released: Database) -> Database:
        """The present version from the beginning, with the same indexes made in the same order."""
        database = new_database()
        superuser = database.connect(None)
        install_pgvector(superuser)
        superuser.execute("GRANT CREATE ON SCHEMA public TO app_owner")
        migrate(database.connect("installer"))
        superuser.execute("SELECT foh.grant(owner => 'app_owner')")
        owner = database.connect()
        owner.execute(runpy.run_path(str(RELEASED / "make_0_1_0.py"))["TABLES"])
        migrate(released.connect(None))
        made = released.connect(None).execute(
            """SELECT name, source_name, embedding, labels, labels_from_name, labels_key, bits, dimensions, distance,
                      options::text FROM foh.index ORDER BY id"""
        )
        for row in made:
            owner.execute(
                """SELECT foh.create_index(%s, %s::regclass, %s, %s, %s::regclass, %s, bits => %s, dimensions => %s,
                                           distance => %s, options => %s::jsonb)""",
                row,
            )
        owner.execute("SELECT foh.grant('products', reader => 'app_reader')")
        return database

    def test_equals_a_fresh_install(self, fresh: Database, released: Database) -> None:
        superuser = released.connect(None)
        superuser.execute("SELECT foh.grant(owner => 'app_owner')")
        there, here = dump(fresh.connect(None)), dump(superuser)
        assert [row for row in here if row not in there] == []
        assert [row for row in there if row not in here] == []

    def test_the_applications_tables_are_as_in_a_fresh_install(
        self, fresh: Database, released: Database
    ) -> None:
        """The same triggers, and nothing left that let foh's owner read."""
        left = """
            SELECT c.oid::regclass::text, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled::text
            FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = 'public'::regnamespace
            UNION ALL SELECT polrelid::regclass::text, polname, '', '' FROM pg_policy
            JOIN pg_class c ON c.oid = polrelid WHERE c.relnamespace = 'public'::regnamespace
            UNION ALL SELECT attrelid::regclass::text, attname, x.grantee::regrole::text, ''
            FROM pg_attribute a, aclexplode(a.attacl) x JOIN pg_roles r ON r.oid = x.grantee
            WHERE r.rolname = 'foh_owner' ORDER BY 1, 2, 3, 4"""
        assert released.connect(None).execute(left).fetchall() == fresh.connect(None).execute(left).fetchall()

    def test_the_printed_script_does_the_same(
        self, released: Database, new_database: Callable[..., Database]
    ) -> None:
        migrate(released.connect(None))
        other = load(new_database())
        other.connect(None).execute(offline(start="0002").encode())
        assert dump(other.connect(None)) == dump(released.connect(None))

    def test_options_follow_the_new_defaults_unless_chosen(self, migrated: Database) -> None:
        defaults = migrated.connect(None).execute("SELECT foh._default_options()").fetchone()
        rows = dict(migrated.connect(None).execute("SELECT name, options FROM foh.index").fetchall())
        assert defaults is not None
        assert {tuple(sorted(options)) for options in rows.values()} == {tuple(sorted(defaults[0]))}
        assert rows["photos"] == {**defaults[0], "exact_rows": 50}
        assert (rows["products"]["probes"], rows["products"]["shortlist"]) == (5, None)
        assert (rows["documents"]["probes"], rows["documents"]["shortlist"]) == (None, 80)


class TestRights:
    def test_a_reader_still_searches(self, released: Database) -> None:
        migrate(released.connect(None))
        reader = released.connect("app_reader")
        query = "SELECT count(*) FROM foh.products_search(array_fill(1, '{16}')::extensions.vector, 10)"
        assert reader.execute(query).fetchone() == (10,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT * FROM foh.papers_search(array_fill(1, '{8}')::extensions.vector, 10)")

    def test_who_may_not_act_for_the_owner_of_a_table_is_told(self, private_server: Server) -> None:
        private_server.execute(sql.SQL("CREATE ROLE foh_owner NOLOGIN"))
        private_server.execute(sql.SQL("GRANT foh_owner TO installer WITH ADMIN OPTION"))
        private_server.execute(sql.SQL("GRANT foh_owner TO app_owner GRANTED BY installer"))
        database = load(private_server.create_database())
        installer = database.connect("installer")
        before = dump(installer)
        with pytest.raises(
            SchemaError, match=r"belongs to role app_owner.*REVOKE foh_owner FROM app_owner; GRANT"
        ):
            migrate(installer)
        assert dump(installer) == before
        private_server.execute(sql.SQL("REVOKE foh_owner FROM app_owner GRANTED BY installer"))
        with pytest.raises(SchemaError, match="let one run GRANT app_owner TO foh_owner; first"):
            migrate(installer)
        private_server.execute(sql.SQL("GRANT app_owner TO foh_owner"))
        assert migrate(installer).end == migrations.head()
        assert Table(database.connect(), "products").recall() == 1


class TestDowngrade:
    def test_to_base_leaves_nothing(self, migrated: Database) -> None:
        superuser = migrated.connect(None)
        found = superuser.execute("SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'foh'")
        ((owner,),) = found
        # What a tenant owns would run with the rights of a superuser, so a superuser leaves it alone.
        migrate(superuser if owner == "foh_owner" else migrated.connect(owner), "base")
        assert superuser.execute("SELECT to_regnamespace('foh')").fetchone() == (None,)
        left = """SELECT (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'foh%'),
                         (SELECT count(*) FROM pg_policy WHERE polname = 'foh')"""
        assert superuser.execute(left).fetchone() == (0, 0)
        migrated.connect().execute("DELETE FROM product")

    def test_a_released_database_to_base(self, released: Database) -> None:
        superuser = released.connect(None)
        migrate(superuser, "base")
        assert superuser.execute("SELECT to_regnamespace('foh')").fetchone() == (None,)

    def test_the_tables_are_those_of_the_release_again(
        self, released: Database, new_database: Callable[..., Database]
    ) -> None:
        superuser = released.connect(None)
        migrate(superuser, "base")
        migrate(superuser, "0002")
        frozen = dump(superuser)
        migrate(superuser)
        migrate(superuser, "0002")
        assert dump(superuser) == frozen
