from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from foh_pg.cli import app
from foh_pg.errors import InputError
from foh_pg.quality.evaluate import evaluate
from foh_pg.quality.history import quality
from foh_pg.updater import build, update
from tests.support.digits import create_index, create_table, digits, insert, vector
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


def build_digits(database: Database) -> None:
    connection = database.connect()
    create_table(connection)
    insert(connection, range(1400))
    create_index(connection, options='{"held_out": 0.2, "learn_rows": 200}')
    build(connection, "digits")


@pytest.fixture
def full(copy_of: Callable[..., Database]) -> Database:
    return copy_of(build_digits)


@pytest.fixture
def built(full: Database) -> Connection:
    return full.connect()


def test_the_index_beside_the_exact_distance(built: Connection) -> None:
    run = evaluate(built, "digits", queries=150)
    found, exact = (run.metrics[way] for way in ("index", "exact"))
    assert run.metrics["queries"] == 150
    assert run.metrics["table"] == 1400
    assert found["p10"] > 0.9
    assert found["map100"] > exact["map100"] + 0.03
    assert found["p100"] > exact["p100"]
    assert exact["recall10"] == 1
    # Of the nearest rows, those that share a label are the nearest of these: as many as precision counts.
    assert exact["both10"] == pytest.approx(exact["p10"], abs=1e-4)
    assert run.metrics["own_first"] > 0.9
    assert exact["distance10"] < found["distance10"] < 0.07
    assert min(found["both10"], found["recall10"]) > 0.9
    assert all(0 <= value <= 1 for way in (found, exact) for value in way.values())


def test_searches_with_a_condition(built: Connection, full: Database) -> None:
    """The recall is of the rows that pass, and a search that reads every list loses none of them."""
    built.execute("ALTER TABLE digit ADD COLUMN part int")
    built.execute("UPDATE digit SET part = id % 4")
    built.execute("SELECT foh.alter_index('digits', include => '{part}')")
    update(built, "digits")
    run = evaluate(built, "digits", queries=40, match={"part": 1})
    assert (run.metrics["queries"], run.metrics["match"]) == (40, {"part": 1})
    assert 0.7 < run.metrics["nearest"]["recall10"] <= 1
    assert run.metrics["index"]["rows"] == run.metrics["nearest"]["rows"] == 10
    built.execute("SELECT foh.alter_index('digits', '{\"probes\": 1000, \"shortlist\": 1000}')")
    assert evaluate(built, "digits", queries=40, match={"part": 1}).metrics["nearest"]["recall10"] == 1
    # Only two rows pass, and both come back.
    built.execute(
        "UPDATE digit SET part = 9 WHERE id IN (SELECT min(id) FROM digit UNION SELECT max(id) FROM digit)"
    )
    assert evaluate(built, "digits", queries=40, match={"part": 9}).metrics["nearest"]["rows"] <= 2
    shown = CliRunner().invoke(
        app, ["evaluate", "digits", "--queries", "20", "--match", '{"part": 1}', "--dsn", full.dsn()]
    )
    assert shown.exit_code == 0, shown.output
    assert "of the rows pass" in shown.output
    assert "recall@10" in shown.output
    # What such searches find is not taken for the quality of the version.
    assert built.execute("SELECT count(*) FROM foh.run WHERE kind = 'evaluate'").fetchone() == (0,)


def test_what_was_lost_where(built: Connection) -> None:
    """No step finds again what one before has lost; with all lists and rows read, nothing is lost but to labels."""
    kept = evaluate(built, "digits", queries=60).metrics["kept"]
    assert list(kept) == ["lists", "bits", "shortlist", "answer"]
    assert 1 >= kept["lists"] >= kept["bits"] >= kept["shortlist"] >= kept["answer"] > 0.3
    built.execute("""SELECT foh.alter_index('digits', '{"probes": 1000, "shortlist": 1400, "dial": 0}')""")
    found = evaluate(built, "digits", queries=60).metrics
    assert found["kept"] == {"lists": 1, "bits": 1, "shortlist": 1, "answer": 1}
    assert found["index"]["distance10"] == pytest.approx(found["exact"]["distance10"], abs=1e-4)


def test_exact_is_what_pgvector_finds(built: Connection) -> None:
    run = evaluate(built, "digits", queries=10_000)
    held = "SELECT id FROM digit WHERE ('x' || left(encode(sha256(convert_to(id::text, 'UTF8')), 'hex'), 8))::bit(32)::bigint < 0.2 * 4294967296"
    asking = [row[0] for row in built.execute(held)]
    assert run.metrics["queries"] == len(asking)
    data, target = digits()
    hits = 0
    for i in asking:
        found = built.execute(
            "SELECT id FROM digit WHERE id <> %s"
            " ORDER BY embedding OPERATOR(extensions.<=>) %s::extensions.vector LIMIT 10",
            [i, vector(data[i])],
        )
        hits += sum(target[row[0]] == target[i] for row in found)
    assert run.metrics["exact"]["p10"] == pytest.approx(hits / 10 / len(asking), abs=2e-5)


def test_what_the_search_gives_without_the_query_itself(built: Connection) -> None:
    """A row that asks has no vote on its own kind, however much labels count; and it stays in the index."""
    built.execute("""SELECT foh.alter_index('digits', '{"dial": 0.95}')""")
    run = evaluate(built, "digits", queries=10_000)
    assert built.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (0,)
    assert built.execute("SELECT * FROM foh.check('digits')").fetchall() == []
    held = "SELECT id FROM digit WHERE ('x' || left(encode(sha256(convert_to(id::text, 'UTF8')), 'hex'), 8))::bit(32)::bigint < 0.2 * 4294967296"
    data, target = digits()
    shares = []
    for (i,) in built.execute(held).fetchall():
        with built.transaction(force_rollback=True):
            built.execute("DELETE FROM digit WHERE id = %s", [i])
            found = built.execute(
                "SELECT id FROM foh.digits_search(%s::extensions.vector, 11)", [vector(data[i])]
            ).fetchall()
        others = [row[0] for row in found][:10]
        shares.append(sum(target[key] == target[i] for key in others) / 10)
    assert run.metrics["index"]["p10"] == pytest.approx(sum(shares) / len(shares), abs=2e-5)


def test_is_kept_with_the_run_and_the_version(built: Connection) -> None:
    run = evaluate(built, "digits", queries=50)
    kept = built.execute("SELECT kind, to_version, metrics, error FROM foh.run ORDER BY id DESC").fetchone()
    assert kept is not None
    assert (kept[0], kept[1], kept[3]) == ("evaluate", 2, None)
    assert kept[2]["index"] == run.metrics["index"]
    model = built.execute("SELECT metrics FROM foh.model WHERE version = 2").fetchone()
    assert model is not None
    assert model[0]["evaluated"]["index"] == run.metrics["index"]


def test_quality_over_versions(built: Connection, full: Database) -> None:
    evaluate(built, "digits", queries=50)
    insert(built, range(1400, 1650))
    update(full.dsn(), "digits")
    evaluate(built, "digits", queries=50)
    points = quality(built, "digits")
    assert [point.version for point in points] == [2, 3]
    assert all(point.evaluated is not None and point.map is not None for point in points)


def test_rows_in_the_stream_are_found_too(connection: Connection) -> None:
    create_table(connection)
    create_index(connection, options='{"held_out": 0.2, "exact_rows": 0}')
    insert(connection, range(500))
    run = evaluate(connection, "digits")
    assert run.metrics["table"] == 500
    assert run.metrics["index"]["p10"] > 0.5


@pytest.mark.parametrize("key", ["text", "uuid", "bigint", "varchar"])
def test_keys_of_each_kind(connection: Connection, key: str) -> None:
    create_table(connection)
    insert(connection, range(600))
    if key != "bigint":
        form = "lpad(to_hex(id), 32, '0')::uuid" if key == "uuid" else f"('row ' || id)::{key}"
        connection.execute(f"ALTER TABLE digit ALTER COLUMN id TYPE {key} USING {form}")
    create_index(connection, options='{"held_out": 0.3}')
    build(connection, "digits")
    run = evaluate(connection, "digits")
    assert run.metrics["queries"] > 100
    assert run.metrics["exact"]["p10"] > 0.85
    assert run.metrics["index"]["p10"] > 0.85


@pytest.mark.parametrize("distance", ["l2", "ip"])
def test_other_distances(connection: Connection, distance: str) -> None:
    create_table(connection)
    insert(connection, range(800))
    create_index(connection, distance=distance, options='{"held_out": 0.3}')
    build(connection, "digits")
    run = evaluate(connection, "digits")
    assert run.metrics["index"]["p10"] > 0.7
    assert run.metrics["exact"]["p10"] > 0.5


def test_refusals(connection: Connection) -> None:
    create_table(connection)
    create_index(connection)
    with pytest.raises(InputError, match="no row can be the query"):
        evaluate(connection, "digits")
    failed = connection.execute("SELECT error, finished_at IS NOT NULL FROM foh.run").fetchone()
    assert failed is not None
    assert "no row can be the query" in failed[0]
    assert failed[1]
    with pytest.raises(InputError, match="queries is 0"):
        evaluate(connection, "digits", queries=0)
    connection.execute("CREATE TABLE plain (id int PRIMARY KEY, embedding extensions.vector(2))")
    connection.execute("SELECT foh.create_index('plain', 'plain', 'embedding')")
    with pytest.raises(
        InputError, match=r"'plain' cannot be evaluated, since no row can be the query.*there is none"
    ):
        evaluate(connection, "plain")


def test_without_labels_nearness_is_measured(connection: Connection, database: Database) -> None:
    create_table(connection)
    create_index(connection, labels=None, options='{"held_out": 0.2}')
    insert(connection, range(600))
    update(database.dsn(), "digits")
    result = CliRunner().invoke(app, ["evaluate", "digits", "--queries=20", f"--dsn={database.dsn()}"])
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()
    assert "recall@10" in head
    assert "P@10" not in head
    assert len(rows[:3]) == 3
    run = evaluate(connection, "digits", queries=20)
    assert run.metrics["index"]["recall10"] > 0.5
    assert run.metrics["exact"]["recall10"] == 1
    assert (run.metrics["index"]["p10"], run.metrics["index"]["map100"]) == (None, None)
