"""Conditions as data: compared in the lists, checked on the row, the same as SQL's."""

from __future__ import annotations

import datetime
import json
import random
import re
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from foh_pg.updater import build, rebuild, update
from tests.support.postgres import Database
from tests.support.shop import exact_distance, text, vectors

ROWS = 400
BASE = vectors(ROWS)
QUERY = vectors(1, seed=5)[0]
FAR = exact_distance(BASE, QUERY)

TYPES = {
    "small": ("smallint", [1, 2, -3, 7]),
    "number": ("int", [10, 20, 30, -40]),
    "big": ("bigint", [2**40, 2**41, -(2**50)]),
    "price": ("numeric(10,2)", [Decimal("9.99"), Decimal("100.00"), Decimal("0.5")]),
    "ratio": ("real", [0.5, 1.25, -2.0]),
    "weight": ("double precision", [0.1, 2.5, 1e9]),
    "sold": ("boolean", [True, False]),
    "status": ("text", ["new", "used", "it's", "a, {b}", ""]),
    "code": ("varchar(10)", ["x", "y", "Z"]),
    "owner": ("uuid", [uuid.UUID(int=n) for n in (1, 2, 3)]),
    "day": ("date", [datetime.date(2024, 1, day) for day in (1, 2, 3)]),
    "seen": ("timestamp", [datetime.datetime(2024, 1, 1, hour) for hour in (1, 2, 3)]),
    "made": (
        "timestamptz",
        [datetime.datetime(2024, 1, 1, h, tzinfo=datetime.timezone.utc) for h in (1, 2, 3)],
    ),
    "mood": ("public.mood", ["sad", "ok", "happy"]),
    "rank": ("public.rank", [1, 2, 3]),
}


class Goods:
    """A table with a column of every type that can be included."""

    def __init__(self, connection: psycopg.Connection[Any], dsn: str) -> None:
        self.connection, self.dsn = connection, dsn
        self.run("CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'happy'); CREATE DOMAIN public.rank AS int")
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
        self.run(
            f"CREATE TABLE public.goods (id int PRIMARY KEY, embedding extensions.vector({BASE.shape[1]}), tags text[], {columns})"
        )
        drawn = random.Random(0)
        self.rows = [[drawn.choice([*values, None]) for _, values in TYPES.values()] for _ in range(ROWS)]
        self.tags = [drawn.sample(["cat", "dog", "cow"], drawn.randrange(3)) for _ in range(ROWS)]

    def run(self, statement: str, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.connection.execute(statement.encode(), parameters)

    def fill(self, keys: range) -> None:
        names = ["id", "embedding", "tags", *TYPES]
        marks = ["%s", "%s", "%s", *(f"%s::{kind}" for kind, _ in TYPES.values())]
        with self.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO public.goods ({', '.join(names)}) VALUES ({', '.join(marks)})".encode(),
                [[key, text(BASE[key]), self.tags[key], *self.rows[key]] for key in keys],
            )

    def create(self, include: list[str], **options: Any) -> None:
        self.connection.execute(
            "SELECT foh.create_index('goods', 'public.goods', 'embedding', 'tags', include => %s, options => %s)",
            [include, json.dumps({"exact_rows": 0, "centers": 12, **options})],
        )

    def found(self, match: dict[str, Any], k: int = ROWS, **arguments: Any) -> list[int]:
        passed = "".join(f", {name} => %({name})s" for name in arguments)
        rows = self.connection.execute(
            f"SELECT id FROM foh.goods_search(%(query)s, %(k)s, match => %(match)s, labels => 0{passed})".encode(),
            {"query": text(QUERY), "k": k, "match": json.dumps(match, default=str), **arguments},
        )
        return [row[0] for row in rows]

    def expected(self, condition: str) -> list[int]:
        passing = [row[0] for row in self.run(f"SELECT id FROM public.goods WHERE {condition}")]
        return sorted(passing, key=lambda key: FAR[key])


@pytest.fixture
def goods(database: Database) -> Goods:
    connection = database.connect("app_owner")
    connection.autocommit = True
    return Goods(connection, database.dsn("app_owner"))


def built(goods: Goods, include: list[str] | None = None) -> Goods:
    goods.fill(range(300))
    goods.create(list(TYPES) if include is None else include)
    build(goods.connection, "goods")
    # The rest waits in the stream.
    goods.fill(range(300, ROWS))
    return goods


def literal(value: Any) -> str:
    return sql.Literal(value).as_string(None)


def random_condition(drawn: random.Random) -> tuple[dict[str, Any], str]:
    """A condition for one or two columns, as data and as SQL."""
    match: dict[str, Any] = {}
    conditions = []
    for name in drawn.sample(list(TYPES), drawn.choice([1, 1, 2])):
        kind, values = TYPES[name]
        chosen = drawn.choice(values)
        said = f"{literal(chosen)}::{kind}"
        form = drawn.randrange(7)
        if form == 0:
            match[name] = chosen
            conditions.append(f"{name} = {said}")
        elif form == 1:
            some = drawn.sample(values, min(2, len(values)))
            match[name] = some
            conditions.append(f"{name} IN ({', '.join(f'{literal(v)}::{kind}' for v in some)})")
        elif form == 2:
            match[name] = None
            conditions.append(f"{name} IS NULL")
        elif form == 3:
            match[name] = {"not": chosen}
            conditions.append(f"{name} <> {said}")
        elif form == 4:
            match[name] = [chosen, None]
            conditions.append(f"({name} = {said} OR {name} IS NULL)")
        elif form == 5:
            match[name] = {"not": None}
            conditions.append(f"{name} IS NOT NULL")
        else:
            operator = drawn.choice(["<", "<=", ">", ">="])
            match[name] = {operator: chosen}
            conditions.append(f"{name} {operator} {said}")
    return match, " AND ".join(conditions)


def test_any_condition_on_any_type(goods: Goods) -> None:
    built(goods)
    drawn = random.Random(1)
    for _ in range(60):
        match, condition = random_condition(drawn)
        expected = goods.expected(condition)
        assert set(goods.found(match)) == set(expected), (match, condition)
        assert goods.found(match, 5) == pytest.approx(expected[:5]) or len(
            set(goods.found(match, 5)) & set(expected[:5])
        ) >= min(3, len(expected)), (match, condition)
    update(goods.connection, "goods")
    assert goods.run("SELECT * FROM foh.check('goods')").fetchall() == []
    for _ in range(30):
        match, condition = random_condition(drawn)
        assert set(goods.found(match)) == set(goods.expected(condition)), (match, condition)


def test_labels(goods: Goods) -> None:
    built(goods, ["number"])
    tags = {row[0]: set(row[1]) for row in goods.run("SELECT id, tags FROM public.goods")}
    cases = [
        ("cat", lambda t: "cat" in t),
        (["cat", "dog"], lambda t: t & {"cat", "dog"}),
        ({"all": ["cat", "dog"]}, lambda t: t >= {"cat", "dog"}),
        ({"none": ["cat"]}, lambda t: "cat" not in t),
        ({"any": ["cow"], "none": ["cat"]}, lambda t: "cow" in t and "cat" not in t),
        ({"any": ["unheard of"]}, lambda t: False),
        ({"any": ["cat", "unheard of"]}, lambda t: "cat" in t),
    ]
    for asked, holds in cases:
        assert set(goods.found({"labels": asked})) == {key for key, t in tags.items() if holds(t)}, asked
    both = goods.found({"labels": "cat", "number": {">": 0}}, filter="id % 2 = 0")
    assert set(both) == {key for key in goods.expected("number > 0 AND id % 2 = 0") if "cat" in tags[key]}


def test_labels_that_are_asked_for_do_not_rank(goods: Goods) -> None:
    """All rows that pass are of a wanted kind, whatever kind the neighbors of the query are of."""
    goods.fill(range(300))
    # The nearest rows are dogs alone; some of those behind are cats as well.
    order = np.argsort(FAR[:300]).tolist()
    goods.run("UPDATE public.goods SET tags = '{dog}'")
    goods.run("UPDATE public.goods SET tags = '{cat}' WHERE id = ANY (%s)", [order[20::2]])
    goods.run("UPDATE public.goods SET tags = '{cat,dog}' WHERE id = ANY (%s)", [order[21:80:2]])
    goods.create([])
    build(goods.connection, "goods")
    cats = [key for key in order[20:] if key in set(order[20::2]) | set(order[21:80:2])]
    asked = (
        "SELECT id FROM foh.goods_search(%s, 10, probes => 12, shortlist => 300, labels => %s, match => %s)"
    )
    for dial in (0, 0.5, 1):
        for match in ({"labels": "cat"}, {"labels": {"all": ["cat"]}}):
            found = goods.connection.execute(asked, [text(QUERY), dial, json.dumps(match)])
            assert [key for (key,) in found] == cats[:10]
    said = goods.connection.execute(
        "SELECT value FROM foh.goods_explain(%s, labels => 1, match => %s) WHERE step = 'labels'",
        [text(QUERY), json.dumps({"labels": "cat"})],
    ).fetchall()
    assert said == [("not asked: nearest vectors only",)]


def test_a_change_of_an_included_column_alone_is_seen(goods: Goods) -> None:
    built(goods, ["number", "status"])
    goods.run("UPDATE public.goods SET number = 77 WHERE id IN (3, 350)")
    assert set(goods.found({"number": 77})) == {3, 350}
    assert set(goods.found({"number": {"<": 70}})) == set(goods.expected("number < 70"))
    goods.run("UPDATE public.goods SET price = 1")
    assert goods.run("SELECT count(*) FROM foh.goods_stream WHERE key < 300").fetchone()[0] == 1
    update(goods.connection, "goods")
    assert set(goods.found({"number": 77})) == {3, 350}
    assert goods.run("SELECT * FROM foh.check('goods')").fetchall() == []
    goods.run("ALTER TABLE public.goods DISABLE TRIGGER USER")
    goods.run("UPDATE public.goods SET number = 78 WHERE id = 3")
    goods.run("ALTER TABLE public.goods ENABLE TRIGGER USER")
    [problem] = goods.run("SELECT problem, key FROM foh.check('goods')").fetchall()
    assert problem == ("a list or the stream has other values of included columns than the row", "3")
    assert goods.run("SELECT * FROM foh.repair('goods')").fetchone() == (0, 0, 1)
    update(goods.connection, "goods")
    assert goods.found({"number": 78}) == [3]


def test_columns_are_added_and_removed(goods: Goods) -> None:
    built(goods, ["number"])
    goods.run("SELECT foh.alter_index('goods', include => '{status, number}')")
    expected = set(goods.expected("status = 'new' AND number = 10"))
    assert set(goods.found({"status": "new", "number": 10})) == expected
    goods.run("UPDATE public.goods SET status = 'brand new' WHERE id = 5")
    assert goods.found({"status": "brand new"}) == [5]
    assert goods.run("SELECT * FROM foh.check('goods')").fetchall() == []
    update(goods.connection, "goods")
    assert goods.run(
        "SELECT bool_and((c ->> 'filled')::boolean) FROM foh.index, jsonb_array_elements(included) c"
    ).fetchone()[0]
    assert goods.found({"status": "brand new"}) == [5]
    assert set(goods.found({"status": "new", "number": 10})) == expected - {5}
    assert goods.run("SELECT * FROM foh.check('goods')").fetchall() == []
    goods.run("SELECT foh.alter_index('goods', include => '{status}')")
    with pytest.raises(
        psycopg.errors.UndefinedColumn, match="match names number, which index 'goods' does not include"
    ):
        goods.found({"number": 10})
    assert goods.found({"status": "brand new"}) == [5]
    goods.run("SELECT foh.alter_index('goods', include => '{}')")
    columns = goods.run(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'foh.goods_list'::regclass AND attnum > 0 AND NOT attisdropped"
    )
    assert [name for (name,) in columns] == ["center", "part", "ids", "geometry", "marks"]


def test_altered_columns_are_followed(goods: Goods) -> None:
    built(goods, ["number", "status", "sold"])
    goods.run("ALTER TABLE public.goods RENAME number TO amount")
    goods.run("INSERT INTO public.goods (id, embedding, amount) VALUES (1000, '" + text(QUERY) + "', 10)")
    goods.run("SELECT foh.refresh('goods')")
    assert goods.found({"amount": 10})[0] == 1000
    goods.run("DELETE FROM public.goods WHERE id = 1000")
    goods.run("ALTER TABLE public.goods DROP COLUMN status")
    goods.run("UPDATE public.goods SET amount = 11 WHERE id = 1")
    goods.run("SELECT foh.refresh('goods')")
    assert goods.found({"amount": 11}) == [1]
    with pytest.raises(psycopg.errors.UndefinedColumn):
        goods.found({"status": "new"})
    goods.run("ALTER TABLE public.goods ALTER COLUMN amount TYPE text USING 'n' || amount")
    goods.run("UPDATE public.goods SET amount = 'n12' WHERE id = 2")
    goods.run("SELECT foh.refresh('goods')")
    assert goods.found({"amount": "n12"}) == [2]
    assert goods.found({"amount": "n11"}) == [1]
    update(goods.connection, "goods")
    assert goods.found({"amount": "n12"}) == [2]
    assert goods.run("SELECT * FROM foh.check('goods')").fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TYPE public.mood RENAME VALUE 'ok' TO 'fine'",
        "ALTER TYPE public.mood RENAME VALUE 'ok' TO 'fine'; ALTER TYPE public.mood ADD VALUE 'ok' AFTER 'fine'",
        "ALTER TYPE public.mood RENAME TO temper",
    ],
)
def test_renamed_enums_are_noticed_and_followed(goods: Goods, statement: str) -> None:
    built(goods, ["mood", "number"])
    moods = ["sad", "fine" if "VALUE" in statement else "ok", "happy"]
    assert goods.found({"mood": "ok"}) == goods.expected("mood = 'ok'")
    goods.run(statement)
    for condition in (moods[1], {"<": "happy"}, {"not": "sad"}):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed") as error:
            goods.found({"mood": condition})
        assert error.value.diag.message_hint == "What helps: run SELECT foh.refresh('goods')."
    [(problem,)] = goods.run("SELECT unnest(problems) FROM foh.health() WHERE name = 'goods'").fetchall()
    assert problem == "a column has changed: run SELECT foh.refresh('goods')"
    assert goods.found({"number": 10}) == goods.expected("number = 10")
    goods.run("SELECT foh.refresh('goods')")
    for _ in ("table", "lists"):
        for mood in moods:
            assert goods.found({"mood": mood}) == goods.expected(f"mood = '{mood}'")
        assert set(goods.found({"mood": {"<": "happy"}})) == set(goods.expected("mood < 'happy'"))
        update(goods.connection, "goods")
    assert goods.run("SELECT * FROM foh.check('goods')").fetchall() == []


def test_values_that_are_added_to_an_enum(goods: Goods) -> None:
    built(goods, ["mood"])
    goods.run("ALTER TYPE public.mood ADD VALUE 'calm' BEFORE 'ok'")
    goods.run("UPDATE public.goods SET mood = 'calm' WHERE id < 9")
    assert set(goods.found({"mood": "calm"})) == set(range(9))
    assert set(goods.found({"mood": {"<=": "calm"}})) == set(goods.expected("mood <= 'calm'"))
    update(goods.connection, "goods")
    assert set(goods.found({"mood": "calm"})) == set(range(9))
    goods.run("ALTER TYPE public.mood RENAME VALUE 'calm' TO 'quiet'")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has changed"):
        goods.found({"mood": "quiet"})


@pytest.mark.one_version
@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"number": "abc"}, "match asks column number of index 'goods' for \"abc\", which is no integer"),
        ({"number": 1.5}, "for 1.5, which is no integer"),
        ({"number": 10**12}, "which is no integer"),
        ({"number": True}, "for true, which is no integer"),
        ({"number": {"<": None}}, "for null, which is no integer"),
        ({"number": {"<": [1]}}, r"for \[1\], which is no integer"),
        ({"number": {"like": 1}}, "unknown comparison 'like'"),
        ({"number": {}}, "match says nothing of column number"),
        ({"status": 5}, "for 5, which is no pg_catalog.text"),
        ({"mood": "angry"}, 'for "angry", which is no public.mood'),
        ({"day": "yesterday's"}, "which is no pg_catalog.date"),
        ({"labels": {"some": ["a"]}}, "match asks for the labels"),
        ({"labels": [1]}, "match asks for the labels"),
        ({"labels": [""]}, "match asks for the labels"),
        ([1], "it must be a JSON object"),
    ],
)
def test_bad_conditions(goods: Goods, match: Any, message: str) -> None:
    goods.create(["number", "status", "mood", "day"])
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        goods.found(match)


@pytest.mark.one_version
def test_columns_that_cannot_be_included(goods: Goods) -> None:
    for include, error, message in [
        (["tags"], psycopg.errors.DatatypeMismatch, r"of type text\[\], and cannot be included"),
        (["nothing"], psycopg.errors.UndefinedColumn, "has no column nothing"),
        (["number", "number"], psycopg.errors.DuplicateColumn, "is to be included twice"),
    ]:
        with pytest.raises(error, match=message):
            goods.create(include)


def test_hostile_values(goods: Goods) -> None:
    built(goods, ["status", "number"])
    evil = [
        "'); DROP TABLE goods; --",
        "x' OR 'a' = 'a",
        "$1",
        "%s",
        "\\'",
        "{a,b}",
        'a"b',
        "NULL",
        "{status}",
        "$body$",
        "\u00fc",
    ]
    for at, value in enumerate(evil):
        goods.connection.execute("UPDATE public.goods SET status = %s WHERE id = %s", [value, at])
    for _ in range(2):
        for at, value in enumerate(evil):
            assert goods.found({"status": value}) == [at]
            assert goods.found({"status": [value, "no such"], "labels": {"none": [value]}}) == [at]
            assert goods.found({"labels": value}) == []
        update(goods.connection, "goods")


def test_the_inner_step_takes_data_only(goods: Goods, database: Database) -> None:
    """Who may search may call the step that reads lists, and tell it anything."""
    built(goods, ["number", "status"])
    goods.run("SELECT foh.grant('goods', reader => 'app_reader'); GRANT SELECT ON public.goods TO app_reader")
    reader = database.connect("app_reader")
    call = (
        "SELECT cardinality(keys) FROM foh.goods_nearmatching(%s, 10, 100, 50, NULL, 0, 1, false, NULL, %s)"
    )
    assert reader.execute(call, [text(QUERY), json.dumps({"1 nulls": False, "1 >": "0"})]).fetchone()[0] > 0
    reader.rollback()
    for tests in (
        {"1 nulls": "1); SELECT 1/0"},
        {"1 among": "{1} OR true", "1 nulls": True},
        {"1 <": "(SELECT 1)", "1 nulls": False},
    ):
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            reader.execute(call, [text(QUERY), json.dumps(tests)])
        reader.rollback()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="probes is 0, it must be 1 or more"):
        reader.execute(call.replace("100, 50", "0, 50"), [text(QUERY), "{}"])


def test_rows_that_a_policy_hides(goods: Goods, database: Database) -> None:
    built(goods, ["number"])
    goods.run("SELECT foh.grant('goods', reader => 'app_reader'); GRANT SELECT ON public.goods TO app_reader")
    goods.run("ALTER TABLE public.goods ENABLE ROW LEVEL SECURITY")
    goods.run("CREATE POLICY even ON public.goods TO app_reader USING (id % 2 = 0)")
    reader = Goods.__new__(Goods)
    reader.connection = database.connect("app_reader")
    expected = [key for key in goods.expected("number > 5") if key % 2 == 0]
    assert set(reader.found({"number": {">": 5}})) == set(expected)
    assert len(reader.found({"number": {">": 5}}, 20)) == 20


def test_a_column_that_the_caller_may_not_read(goods: Goods, database: Database) -> None:
    """The lists know the column, and tell nothing of it to who may not read it."""
    built(goods, ["number"])
    goods.run("SELECT foh.grant('goods', reader => 'app_reader')")
    goods.run("GRANT SELECT (id, embedding) ON public.goods TO app_reader")
    reader = Goods.__new__(Goods)
    reader.connection = database.connect("app_reader")
    assert len(reader.found({}, 10)) == 10
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.found({"number": {">": 5}}, 10)


def test_a_row_that_changed_without_triggers_does_not_pass(goods: Goods, database: Database) -> None:
    """The lists still tell the old value, so what they tell is tested on the row."""
    built(goods, ["number"])
    before = set(goods.expected("number > 5"))
    superuser = database.connect(None)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE public.goods SET number = 0 WHERE number > 5 AND id % 2 = 0")
    expected = set(goods.expected("number > 5"))
    assert expected < before
    assert set(goods.found({"number": {">": 5}}, len(before))) <= expected


def test_k_rows_wherever_they_are(goods: Goods) -> None:
    """The rows that pass lie all on the other side."""
    goods.fill(range(300))
    farthest = [int(key) for key in np.argsort(-FAR[:300])[:15]]
    goods.run("UPDATE public.goods SET number = 0")
    goods.connection.execute("UPDATE public.goods SET number = 1 WHERE id = ANY (%s)", [farthest])
    goods.create(["number"])
    build(goods.connection, "goods")
    goods.run("ANALYZE public.goods")
    # Statistics of another time.
    assert set(goods.found({"number": 1}, 15)) == set(farthest)
    assert set(goods.found({"number": 1}, 15, probes=1)) == set(farthest)
    assert len(goods.found({"number": 1}, 10, probes=1)) == 10


def test_explain_says_which_way(goods: Goods) -> None:
    built(goods, ["number"])
    goods.run("ANALYZE public.goods")
    for match in ({"number": {">": 5}}, {"number": 10}):
        rows = goods.connection.execute(
            "SELECT step, value FROM foh.goods_explain(%s, labels => 0, match => %s)",
            [text(QUERY), json.dumps(match)],
        )
        told = dict(rows)
        assert "of the rows" in told["condition"]
        assert told["recall"] == "0.9 of the ten nearest that pass wanted"


def test_explain_counts_the_rows_of_an_index_that_was_built_again(goods: Goods) -> None:
    """The table of items has twice as many pages then, half of them empty."""
    built(goods, ["number"])
    rebuild(goods.dsn, "goods")
    goods.run("VACUUM ANALYZE public.goods, foh.goods_item")
    [(share,)] = goods.run("SELECT 100.0 * count(*) FILTER (WHERE number > 5) / count(*) FROM public.goods")
    [(said,)] = goods.run(
        "SELECT value FROM foh.goods_explain(%s, match => '{\"number\": {\">\": 5}}') WHERE step = 'condition'",
        [text(QUERY)],
    )
    found = re.search(r"[\d.]+(?= %)", said)
    assert found
    assert float(found[0]) == pytest.approx(float(share), rel=0.1)


def test_explain_says_how_a_filter_is_answered(goods: Goods, database: Database) -> None:
    built(goods, ["number"])
    goods.run("ANALYZE public.goods")
    asked = (
        "SELECT value FROM foh.goods_explain(%(query)s, labels => %(labels)s, {}) WHERE step = 'condition'"
    )

    def said(arguments: str, labels: float = 0, **values: Any) -> str:
        given = {"query": text(QUERY), "labels": labels, **values}
        [(value,)] = goods.run(asked.format(arguments), given).fetchall()
        assert "of the rows pass" in value
        return str(value)

    assert "ranked exactly" in said("filter => 'id = 7'")
    with_values = "filter => %(filter)s, params => %(params)s"
    assert "ranked exactly" in said(with_values, filter="id = (params ->> 'id')::int", params='{"id": 7}')
    # Where labels count, no more rows than exact_rows, which is 0 here, are ranked exactly.
    listed = said("filter => 'id >= 0'", labels=0.5)
    assert listed.endswith("filter is tested on the rows that the lists lead to")
    both = said("""filter => 'id >= 0', match => '{"number": {">": -1000}}'""", labels=0.5)
    assert both.endswith("the lists are asked for match, and filter is tested on the rows")


def test_explain_plans_a_filter_with_the_rights_of_the_caller(goods: Goods, database: Database) -> None:
    """PostgreSQL runs immutable functions of a filter when it plans it."""
    built(goods, ["number"])
    goods.run("SELECT foh.grant('goods', reader => 'app_reader')")
    goods.run("GRANT SELECT ON public.goods TO app_reader")
    reader = database.connect("app_reader")
    reader.execute(
        "CREATE FUNCTION pg_temp.whoami() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN RAISE EXCEPTION 'run as %', current_user; END $$"
    )
    with pytest.raises(psycopg.errors.RaiseException, match="run as app_reader"):
        reader.execute("SELECT * FROM foh.goods_explain(%s, filter => 'pg_temp.whoami()')", [text(QUERY)])
