"""Keys of several columns, and unique columns in place of the primary key: from the table to the client."""

from __future__ import annotations

import datetime
import subprocess
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import psycopg
import pytest
from psycopg import errors, sql

from foh_pg.errors import InputError
from foh_pg.index import Index
from foh_pg.quality.evaluate import evaluate
from foh_pg.updater import rebuild, update
from tests.support.postgres import Database, Server

Connection = psycopg.Connection[Any]

DIMENSIONS = 6
QUERY = "[" + ",".join(map(str, range(1, DIMENSIONS + 1))) + "]"
OPTIONS = '{"exact_rows": 0, "held_out": 0.2, "learn_rows": 20}'

# The columns of a key, their types, and an expression for each that is different for every number n.
KEYS: dict[str, list[tuple[str, str, str]]] = {
    "numbers": [("tenant_id", "int", "n % 5 - 2"), ("id", "bigint", "n * 1000000007::bigint")],
    "text": [("region", "varchar(40)", "repeat('ü \"\\,(x) ', n % 3)"), ("id", "int", "n")],
    "moment": [
        ("at", "timestamptz", "timestamptz '1999-12-31 23:59:59.5+02' + n * interval '37 ms'"),
        ("local", "timestamp", "CASE WHEN n % 9 = 0 THEN 'infinity' ELSE timestamp '2000-01-01' - n * interval '5 hours' END"),
        ("tenant_id", "uuid", "md5((n % 4)::text)::uuid"),
        ("id", "int", "n"),
    ],
    # Columns named as ours.
    "collated": [("distance", 'text COLLATE "C"', "'k' || n % 7"), ("score", "smallint", "n::smallint"), ("key", "int", "7")],
    # Names that are no names.
    "day": [('a "b"', "date", "date '1999-12-20' + n % 20"), ("{key}", "uuid", "md5(n::text)::uuid"), ("k1 %s", "int", "1")],
    "one day": [("day", "date", "date '2020-01-01' + n")],
}  # fmt: skip


class Table:
    """Table items with index idx, seen through one connection."""

    def __init__(self, connection: Connection, columns: list[tuple[str, str, str]], **arguments: Any) -> None:
        self.connection, self.columns = connection, columns
        self.create(
            "CREATE TABLE items ({definitions}, embedding extensions.vector({d}), tags text[], PRIMARY KEY ({key}))"
        )
        self.index(**arguments)

    def create(self, statement: str) -> None:
        definitions = sql.SQL(", ").join(
            sql.SQL("{} " + kind).format(sql.Identifier(name)) for name, kind, _ in self.columns
        )
        self.run(statement, definitions=definitions, d=sql.Literal(DIMENSIONS))

    def index(self, **arguments: Any) -> None:
        given = {"labels": "tags", "bits": 16, **arguments}
        named = sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in given.items()
        )
        self.run("SELECT foh.create_index('idx', 'items', 'embedding', options => {options}, {named})",
                 named=named, options=sql.Literal(OPTIONS))  # fmt: skip

    @property
    def key(self) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(name) for name, _, _ in self.columns)

    @property
    def texts(self) -> sql.Composed:
        """Not every moment of PostgreSQL is one of Python."""
        return sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier(name)) for name, _, _ in self.columns
        )

    def run(self, statement: str, parameters: Any = None, **names: sql.Composable) -> psycopg.Cursor[Any]:
        text = sql.SQL(statement).format(key=self.key, texts=self.texts, **names)
        return self.connection.execute(
            text.as_string(None).encode() if parameters is None else text, parameters
        )

    def fill(self, first: int, last: int) -> None:
        values = sql.SQL(", ").join(sql.SQL(value) for _, _, value in self.columns)
        self.run(
            """INSERT INTO items ({key}, embedding, tags)
               SELECT {values}, ARRAY[cos(n), sin(n), cos(2 * n), sin(3 * n), cos(5 * n), sin(7 * n)]::extensions.vector, ARRAY['t' || n % 3]
               FROM generate_series({first}, {last}) n""",
            values=values, first=sql.Literal(first), last=sql.Literal(last),
        )  # fmt: skip

    def search(self, k: int = 10, **arguments: Any) -> list[Any]:
        """Keys, by the names of the table."""
        named = sql.SQL("").join(
            sql.SQL(", {} => {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in arguments.items()
        )
        return self.run("SELECT {texts} FROM foh.idx_search({query}, {k}{named})",
                        query=sql.Literal(QUERY), k=sql.Literal(k), named=named).fetchall()  # fmt: skip

    def keys(self) -> list[Any]:
        return sorted(map(str, self.run("SELECT {texts} FROM items WHERE embedding IS NOT NULL").fetchall()))

    def check(self) -> None:
        """No promise is broken, and every row can be found."""
        assert self.connection.execute("SELECT * FROM foh.check('idx')").fetchall() == []
        keys = self.keys()
        assert sorted(map(str, self.search(len(keys) + 5, probes=1000))) == keys


@pytest.fixture
def table(connection: Connection) -> Callable[..., Table]:
    def make(kind: str = "numbers", **arguments: Any) -> Table:
        return Table(connection, KEYS[kind], **arguments)

    return make


# Which triggers record a write changes nothing about keys: one case shows that they do.
@pytest.mark.one_version(but={"kind": ["text", "moment"], "triggers": ["statement"]})
@pytest.mark.parametrize(("kind", "triggers"), [*((kind, "statement") for kind in KEYS), ("moment", "row")])
def test_life_of_an_index(
    table: Callable[..., Table], database: Database, connection: Connection, kind: str, triggers: str
) -> None:
    connection.execute("SET DateStyle = 'SQL, DMY'")
    connection.execute("SET TimeZone = 'Asia/Kolkata'")
    items = table(kind)
    connection.execute("SELECT foh.alter_index('idx', jsonb_build_object('triggers', %s::text))", [triggers])
    items.fill(1, 150)
    items.check()
    update(database.dsn(), "idx")
    items.check()
    exact = items.run(
        "SELECT {texts} FROM items ORDER BY embedding OPERATOR(extensions.<=>) {query}, {key} LIMIT 10",
        query=sql.Literal(QUERY),
    ).fetchall()
    assert items.search(recall=1) == exact
    assert items.search(probes=1000, labels=0, shortlist=200) == exact
    assert len(items.search(shortlist=0)) == 10
    items.fill(151, 200)
    items.run("UPDATE items SET embedding = embedding OPERATOR(extensions.*) embedding WHERE tags = '{{t1}}'")
    items.run("DELETE FROM items WHERE tags = '{{t2}}'")
    # A row of great length has no bits: every search reads it.
    items.run(
        "UPDATE items SET embedding = ARRAY[1e19, 0, 0, 0, 0, 0]::extensions.vector WHERE ({key}) = (SELECT {key} FROM items LIMIT 1)"
    )
    assert {problem[1][:11] for problem in connection.execute("SELECT * FROM foh.check('idx')")} <= {
        "the embeddi"
    }
    update(database.dsn(), "idx")
    assert sorted(map(str, items.search(500, probes=1000))) == items.keys()
    items.run(
        "UPDATE items SET embedding = {query} WHERE extensions.vector_norm(embedding) > 1e18",
        query=sql.Literal(QUERY),
    )
    update(database.dsn(), "idx")
    items.check()
    rebuild(database.dsn(), "idx")
    items.check()
    assert evaluate(database.dsn(), "idx", queries=20).metrics
    connection.execute("TRUNCATE items")
    assert items.search() == []
    items.fill(100, 120)
    items.check()
    update(database.dsn(), "idx")
    items.check()


def test_a_part_of_the_key_changes(
    table: Callable[..., Table], database: Database, connection: Connection
) -> None:
    items = table()
    items.fill(1, 100)
    update(database.dsn(), "idx")
    connection.execute("UPDATE items SET tenant_id = tenant_id + 10 WHERE id % 2 = 0")
    items.check()
    # Keys that trade places: what was one row's is another's now.
    connection.execute("UPDATE items SET id = -id")
    connection.execute("UPDATE items SET tenant_id = -tenant_id, id = -id")
    items.check()
    update(database.dsn(), "idx")
    items.check()


def test_rows_written_without_triggers_are_repaired(
    table: Callable[..., Table], database: Database, connection: Connection
) -> None:
    items = table("text")
    items.fill(1, 60)
    update(database.dsn(), "idx")
    connection.execute("ALTER TABLE items DISABLE TRIGGER USER")
    items.fill(61, 70)
    connection.execute("DELETE FROM items WHERE id < 5")
    connection.execute(
        "UPDATE items SET embedding = embedding OPERATOR(extensions.*) embedding WHERE id BETWEEN 10 AND 12"
    )
    connection.execute("ALTER TABLE items ENABLE TRIGGER USER")
    assert connection.execute("SELECT missing, gone, changed FROM foh.repair('idx')").fetchone() == (10, 4, 3)
    items.check()
    update(database.dsn(), "idx")
    items.check()


def test_labels_in_another_table(connection: Connection, database: Database) -> None:
    items = Table.__new__(Table)
    items.connection, items.columns = connection, KEYS["numbers"]
    items.create(
        "CREATE TABLE items ({definitions}, embedding extensions.vector({d}), tags text[], PRIMARY KEY ({key}))"
    )
    connection.execute("CREATE TABLE topics (product bigint, tenant int, topic text)")
    with pytest.raises(errors.InvalidParameterValue, match="the key it refers to has the columns"):
        items.index(labels="topic", labels_from="topics", labels_key="product")
    with pytest.raises(
        errors.DatatypeMismatch, match=r"labels_key product of public\.topics is of type bigint"
    ):
        items.index(labels="topic", labels_from="topics", labels_key="{product,tenant}")
    items.index(labels="topic", labels_from="topics", labels_key="{tenant,product}")
    items.fill(1, 60)
    connection.execute(
        "INSERT INTO topics SELECT id, tenant_id, 't' || id % 3 FROM items UNION ALL VALUES (NULL::bigint, 1, 'x')"
    )
    update(database.dsn(), "idx")
    items.check()
    connection.execute("UPDATE topics SET topic = 'new' WHERE tenant = 1")
    connection.execute("DELETE FROM topics WHERE tenant = 2")
    update(database.dsn(), "idx")
    items.check()
    # The labels of every row are those that its entry has.
    assert connection.execute("SELECT missing, gone, changed FROM foh.repair('idx')").fetchone() == (0, 0, 0)


class TestAltered:
    def test_columns_of_the_key_are_renamed(
        self, table: Callable[..., Table], database: Database, connection: Connection
    ) -> None:
        items = table()
        items.fill(1, 50)
        update(database.dsn(), "idx")
        connection.execute("ALTER TABLE items RENAME tenant_id TO score")
        connection.execute("ALTER TABLE items RENAME id TO tenant_id")
        with pytest.raises(errors.ObjectNotInPrerequisiteState):
            connection.execute("SELECT * FROM foh.idx_search(%s)", [QUERY])
        connection.execute("INSERT INTO items (score, tenant_id, embedding) VALUES (99, 99, %s)", [QUERY])
        connection.execute("SELECT foh.refresh('idx')")
        items.columns = [("score", "int", "n % 5"), ("tenant_id", "bigint", "n")]
        assert ("99", "99") in items.search()
        row = connection.execute("SELECT * FROM foh.idx_search(%s)", [QUERY])
        assert [column.name for column in row.description or ()] == [
            "score",
            "tenant_id",
            "distance",
            "foh_score",
        ]
        update(database.dsn(), "idx")
        items.check()

    @pytest.mark.parametrize(
        ("change", "cause"),
        [
            ("ALTER TABLE items ALTER tenant_id TYPE bigint", "was integer, bigint when .* is bigint, bigint now"),
            ("ALTER TABLE items DROP COLUMN tenant_id", "column tenant_id of index 'idx' is gone"),
            ("ALTER TABLE items DROP CONSTRAINT items_pkey", r"has no primary key and no unique index over tenant_id, id alone.*CREATE UNIQUE INDEX ON public\.items \(tenant_id, id\)"),
        ],
    )  # fmt: skip
    def test_what_an_index_cannot_follow(
        self, table: Callable[..., Table], connection: Connection, change: str, cause: str
    ) -> None:
        items = table()
        items.fill(1, 20)
        connection.execute(change.encode())
        # Writes go on.
        connection.execute("INSERT INTO items (id, embedding) SELECT 5000, %s WHERE false", [QUERY])
        connection.execute("UPDATE items SET embedding = %s WHERE id = 1000000007", [QUERY])
        assert connection.execute("SELECT problem FROM foh.check('idx')").fetchall() != []
        with pytest.raises(psycopg.Error, match=cause):
            connection.execute("SELECT foh.refresh('idx')")

    def test_another_unique_index_serves_as_well(
        self, table: Callable[..., Table], connection: Connection
    ) -> None:
        items = table()
        items.fill(1, 20)
        connection.execute("CREATE UNIQUE INDEX other ON items (id, tenant_id)")
        connection.execute("ALTER TABLE items DROP CONSTRAINT items_pkey")
        connection.execute("ALTER TABLE items ALTER tenant_id SET NOT NULL, ALTER id SET NOT NULL")
        connection.execute("SELECT foh.refresh('idx')")
        items.check()
        assert len(items.search()) == 10


class TestUniqueColumns:
    def test_stand_in_for_the_primary_key(self, connection: Connection, database: Database) -> None:
        connection.execute(
            """CREATE TABLE items (id int PRIMARY KEY, uid uuid NOT NULL UNIQUE, tenant_id int NOT NULL, number int NOT NULL,
                                   embedding extensions.vector(6), tags text[], UNIQUE (number, tenant_id))"""
        )
        connection.execute(
            "SELECT foh.create_index('by_uid', 'items', 'embedding', key => 'uid', bits => 16)"
        )
        # In the order of the unique index.
        connection.execute(
            "SELECT foh.create_index('by_both', 'items', 'embedding', key => '{tenant_id,number}', bits => 16)"
        )
        connection.execute(
            """INSERT INTO items SELECT n, md5(n::text)::uuid, n % 3, n / 3, ARRAY[cos(n), sin(n), cos(2 * n), sin(3 * n), 1, 1]::extensions.vector
               FROM generate_series(1, 90) n"""
        )
        for index in ("by_uid", "by_both"):
            update(database.dsn(), index)
            assert connection.execute("SELECT * FROM foh.check(%s)", [index]).fetchall() == []
        both = connection.execute(
            "SELECT i.id FROM foh.by_uid_search(%s, 90, probes => 100) s JOIN items i USING (uid)", [QUERY]
        ).fetchall()
        assert len(both) == 90
        assert Index.open(connection, "by_both").about.key == ("number", "tenant_id")
        joined = connection.execute(
            "SELECT count(*) FROM foh.by_both_search(%s, 90, probes => 100) s JOIN items i USING (tenant_id, number)",
            [QUERY],
        ).fetchone()
        assert joined == (90,)
        # The primary key may change as it likes.
        connection.execute("UPDATE items SET id = id + 1000")
        connection.execute("UPDATE items SET uid = md5('x' || uid)::uuid WHERE number < 10")
        for index in ("by_uid", "by_both"):
            assert connection.execute("SELECT * FROM foh.check(%s)", [index]).fetchall() == []

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("uid", r"no unique index over uid alone.*ALTER TABLE public\.items ALTER COLUMN uid SET NOT NULL, and CREATE UNIQUE INDEX ON public\.items \(uid\)"),
            ("part", "no unique index over part alone"),
            ("late", "has a key that is DEFERRABLE"),
            ("{id,uid}", "no unique index over id, uid alone"),
            ("missing", "has no column missing"),
            ("{id", "key is '{id': give a column"),
            ("amount", "the key amount of public.items is of type numeric"),
        ],
    )  # fmt: skip
    def test_that_cannot_be_keys(self, connection: Connection, key: str, message: str) -> None:
        connection.execute(
            """CREATE TABLE items (id int PRIMARY KEY, uid uuid UNIQUE, part int NOT NULL, late int NOT NULL UNIQUE DEFERRABLE,
                                   amount numeric NOT NULL UNIQUE, embedding extensions.vector(6));
               CREATE UNIQUE INDEX ON items (part) WHERE part > 0"""
        )
        with pytest.raises(psycopg.Error, match=message):
            connection.execute("SELECT foh.create_index('idx', 'items', 'embedding', key => %s)", [key])
        assert connection.execute(
            "SELECT count(*) FROM pg_type WHERE typnamespace = 'foh'::regnamespace AND typname = 'idx_key'"
        ).fetchone() == (0,)

    def test_one_that_may_be_null_again(self, connection: Connection) -> None:
        connection.execute(
            "CREATE TABLE items (id int PRIMARY KEY, uid int NOT NULL UNIQUE, embedding extensions.vector(6))"
        )
        connection.execute("SELECT foh.create_index('idx', 'items', 'embedding', key => 'uid', bits => 16)")
        connection.execute("ALTER TABLE items ALTER uid DROP NOT NULL")
        connection.execute("INSERT INTO items VALUES (1, NULL, %s), (2, 2, %s)", [QUERY, QUERY])
        assert connection.execute("SELECT detail FROM foh.check('idx')").fetchone() == (
            "column uid is of type integer NULL",
        )
        with pytest.raises(errors.InvalidTableDefinition, match="ALTER COLUMN uid SET NOT NULL"):
            connection.execute("SELECT foh.refresh('idx')")


class TestPartitions:
    LEVELS = """
        CREATE TABLE items (day date, tenant_id int, id bigint, embedding extensions.vector(6), tags text[], PRIMARY KEY (day, tenant_id, id))
            PARTITION BY RANGE (day);
        CREATE TABLE items_1 PARTITION OF items FOR VALUES FROM ('2024-01-01') TO ('2024-02-01') PARTITION BY LIST (tenant_id);
        CREATE TABLE items_1_a PARTITION OF items_1 FOR VALUES IN (0, 1);
        CREATE TABLE items_1_b PARTITION OF items_1 FOR VALUES IN (2) PARTITION BY HASH (id);
        CREATE TABLE items_1_b0 PARTITION OF items_1_b FOR VALUES WITH (MODULUS 2, REMAINDER 0);
        CREATE TABLE items_1_b1 PARTITION OF items_1_b FOR VALUES WITH (MODULUS 2, REMAINDER 1);
        CREATE TABLE items_2 PARTITION OF items FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
        CREATE TABLE items_rest PARTITION OF items DEFAULT"""
    COLUMNS: ClassVar = [
        ("day", "date", "date '2024-01-01' + n % 75"),
        ("tenant_id", "int", "n % 3"),
        ("id", "bigint", "n"),
    ]

    @pytest.fixture
    def items(self, connection: Connection) -> Table:
        items = Table.__new__(Table)
        items.connection, items.columns = connection, self.COLUMNS
        connection.execute(self.LEVELS)
        items.index()
        return items

    def test_live_and_go(self, items: Table, database: Database, connection: Connection) -> None:
        items.fill(1, 300)
        items.check()
        update(database.dsn(), "idx")
        items.check()
        # Rows that move to another partition, since a part of their key changed.
        connection.execute(
            "UPDATE items SET day = day + 31, tenant_id = (tenant_id + 1) % 3 WHERE id % 4 = 0"
        )
        items.check()
        connection.execute("ALTER TABLE items DETACH PARTITION items_2")
        update(database.dsn(), "idx")
        items.check()
        connection.execute(
            "ALTER TABLE items ATTACH PARTITION items_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')"
        )
        connection.execute("DROP TABLE items_1_b1")
        update(database.dsn(), "idx")
        items.check()
        connection.execute("TRUNCATE items_1")
        update(database.dsn(), "idx")
        items.check()

    def test_a_condition_reads_only_partitions_that_can_match(
        self, items: Table, database: Database, connection: Connection
    ) -> None:
        items.fill(1, 300)
        update(database.dsn(), "idx")

        def reads() -> Counter[str]:
            rows = connection.execute(
                """SELECT relname, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_xact_all_tables
                   WHERE relname LIKE 'items%'"""
            )
            return Counter(dict(rows.fetchall()))

        with connection.transaction():
            before = reads()
            found = items.search(5, filter="day >= '2024-02-10' AND day < '2024-02-20'")
            assert set(reads() - before) == {"items_2"}
        assert len(found) == 5
        assert {day[5:7] for day, _, _ in found} == {"02"}
        # Without a condition, the row of each key is read in its own partition and in no other.
        with connection.transaction():
            before = reads()
            assert len(items.search(20, shortlist=20, labels=0)) == 20
            assert (reads() - before).total() == 20


@pytest.mark.parametrize("triggers", ["statement", "row"])
def test_conditions_on_included_columns(
    table: Callable[..., Table], database: Database, connection: Connection, triggers: str
) -> None:
    """A part of the key among them."""
    items = table(include="{tenant_id}")
    connection.execute("SELECT foh.alter_index('idx', jsonb_build_object('triggers', %s::text))", [triggers])
    items.fill(1, 150)
    for _ in range(2):
        found = items.search(10, match='{"tenant_id": 1}')
        assert len(found) == 10
        assert {tenant for tenant, _ in found} == {"1"}
        update(database.dsn(), "idx")
        items.check()
    connection.execute("UPDATE items SET tenant_id = 9 WHERE tenant_id = 1 AND id % 2 = 0")
    moved = items.run("SELECT {texts} FROM items WHERE tenant_id = 9").fetchall()
    assert sorted(items.search(100, match='{"tenant_id": 9}')) == sorted(moved) != []
    items.check()


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_an_index_is_renamed(
    table: Callable[..., Table], database: Database, connection: Connection, kind: str
) -> None:
    items = table(kind)
    items.fill(1, 50)
    update(database.dsn(), "idx")
    connection.execute("SELECT foh.rename_index('idx', 'other')")
    items.fill(51, 60)
    update(database.dsn(), "other")
    assert connection.execute("SELECT * FROM foh.check('other')").fetchall() == []
    connection.execute("SELECT foh.drop_index('other')")
    left = "SELECT count(*) FROM pg_type WHERE typnamespace = 'foh'::regnamespace AND typname LIKE '%other%'"
    assert connection.execute(left).fetchone() == (0,)


class TestClients:
    def test_python(self, table: Callable[..., Table], database: Database, connection: Connection) -> None:
        items = table()
        items.fill(1, 120)
        update(database.dsn(), "idx")
        index = Index.open(connection, "idx")
        assert index.about.key == ("tenant_id", "id")
        vector = np.arange(1, DIMENSIONS + 1)
        found = index.search(vector, 5, labels=0)
        assert [tuple(map(str, match.key)) for match in found] == items.search(5, labels=0)
        many = index.search_many(np.stack([vector, -vector]), 5, labels=0)
        assert many[0] == found
        like = index.search_like(found[0].key, 4, labels=0)
        assert found[0].key not in [match.key for match in like]
        assert len(like) == 4
        assert index.embedding(list(found[0].key)).shape == (DIMENSIONS,)
        assert {match.key for match in found} <= {match.key for match in index.candidates(vector)}
        with pytest.raises(
            InputError, match=r"7 is no key of public\.items: give a tuple of 2, \(tenant_id, id\)"
        ):
            index.search_like(7)
        with pytest.raises(InputError, match="has no row with tenant_id = 1 and id = -1"):
            index.search_like((1, -1))
        assert index.labels_like(found[0].key)[0].label in {"t0", "t1", "t2"}
        connection.execute("UPDATE items SET tags = NULL WHERE tenant_id = 2")
        update(database.dsn(), "idx")
        suggested = index.suggest(1, rows=10)
        assert [row.key for row in suggested] == sorted(row.key for row in suggested)
        assert len(suggested) == 10
        further = index.suggest(1, rows=1000, after_key=suggested[-1].key)
        assert len(further) == 14
        assert further[0].key > suggested[-1].key

    def test_readers_see_what_policies_show(
        self, table: Callable[..., Table], database: Database, connection: Connection
    ) -> None:
        items = table()
        items.fill(1, 100)
        update(database.dsn(), "idx")
        connection.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
        connection.execute("CREATE POLICY own ON items USING (tenant_id = 1)")
        connection.execute("GRANT SELECT ON items TO app_reader")
        connection.execute("SELECT foh.grant('idx', reader => 'app_reader')")
        reader = database.connect("app_reader")
        found = reader.execute("SELECT tenant_id, id FROM foh.idx_search(%s, 10)", [QUERY]).fetchall()
        assert len(found) == 10
        assert {tenant for tenant, _ in found} == {1}

    def test_dates_come_back_as_dates(self, table: Callable[..., Table], connection: Connection) -> None:
        items = table("one day")
        items.fill(1, 30)
        index = Index.open(connection, "idx")
        first = index.search(np.arange(1, DIMENSIONS + 1), 1)[0].key
        assert isinstance(first, datetime.date)
        assert len(index.search_like(first, 3)) == 3


def test_dump_and_restore(
    table: Callable[..., Table], database: Database, server: Server, new_database: Callable[..., Database]
) -> None:
    items = table("moment", include="{id,at}")
    items.fill(1, 80)
    update(database.dsn(), "idx")
    items.fill(81, 90)
    items.run("DELETE FROM items WHERE id < 5")
    copy = new_database()
    dumped = subprocess.run(
        [str(server.bin / "pg_dump"), "--dbname", database.dsn(None)], capture_output=True, check=True
    )
    subprocess.run(
        [str(server.bin / "psql"), "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", copy.dsn(None)],
        input=dumped.stdout, capture_output=True, check=True,
    )  # fmt: skip
    restored = Table.__new__(Table)
    restored.connection, restored.columns = copy.connect(), items.columns
    restored.check()
    restored.fill(91, 95)
    # From the lists, and from the stream before and after the dump.
    for _ in range(2):
        restored.check()
        found = restored.search(10, match='{"id": [3, 7, 85, 92], "at": {"<": "2001-01-01"}}')
        assert sorted(int(row[-1]) for row in found) == [7, 85, 92]
        update(copy.dsn(), "idx")
    restored.check()
