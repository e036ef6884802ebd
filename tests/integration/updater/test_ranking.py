"""How a search ranks is chosen on rows that never train: kept where labels help, geometry alone where they do not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner

from foh_pg.cli import app
from foh_pg.quality.evaluate import evaluate
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.source import Rows
from foh_pg.updater import build, plan, rebuild, rollback, training, update, weighing
from foh_pg.updater import fill as filling
from foh_pg.updater.gathering import Gathered
from foh_pg.updater.prices import Prices
from foh_pg.updater.weighing import ALLOWED
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

ROWS, DIMENSIONS, LABELS = 1500, 24, 6
OPTIONS = json.dumps({"held_out": 0.2, "learn_rows": 400})
ALONE = "labels do not clearly help on held-out rows: searches rank by geometry alone"


def fill(connection: Connection, signal: float, shuffled: bool) -> None:
    """Rows whose labels move some directions, in the noise of others; shuffled labels say nothing."""
    rng = np.random.default_rng(3)
    labels = rng.integers(LABELS, size=ROWS)
    X = rng.normal(size=(ROWS, DIMENSIONS))
    X[:, :8] *= 3
    X[:, 8:] += signal * rng.normal(size=(LABELS, DIMENSIONS - 8))[labels]
    if shuffled:
        labels = rng.permutation(labels)
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(24), label text)")
    with connection.cursor().copy("COPY item FROM STDIN") as copy:
        for i in range(ROWS):
            copy.write_row((str(i), "[" + ",".join(f"{x:.5f}" for x in X[i]) + "]", f"l{labels[i]}"))
    connection.execute(
        "SELECT foh.create_index('items', 'item', 'embedding', 'label', bits => 32, options => %s)", [OPTIONS]
    )


def ranking_of(connection: Connection) -> dict[str, Any]:
    row = connection.execute("SELECT ranking FROM foh.index_stat").fetchone()
    assert row is not None
    found: dict[str, Any] = row[0]
    return found


def status(database: Database) -> str:
    result = CliRunner().invoke(app, ["status", "items", f"--dsn={database.dsn()}"])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.one_version
@pytest.mark.parametrize("kind", ["build", "rebuild"])
def test_labels_that_are_noise(connection: Connection, database: Database, kind: str) -> None:
    fill(connection, signal=1.0, shuffled=True)
    run = build(connection, "items")
    if kind == "rebuild":
        run = rebuild(connection, "items")
    assert ALONE in run.notes
    [notes] = connection.execute("SELECT metrics -> 'notes' FROM foh.run ORDER BY id DESC LIMIT 1").fetchone()
    assert ALONE in notes
    ranking = ranking_of(connection)
    assert ranking["by_geometry_alone"] is True
    assert (ranking["code"], ranking["votes"]) == (0, 0)
    assert "ranks by geometry alone" in status(database)
    found = evaluate(connection, "items", queries=200).metrics
    # Nobody can tell such labels: all are within what the draw of 200 queries does.
    assert found["index"]["p10"] == pytest.approx(found["exact"]["p10"], abs=0.03)
    # What is left to be good at is nearness.
    assert found["index"]["recall10"] > 0.5


@pytest.mark.one_version
def test_labels_that_help(connection: Connection, database: Database) -> None:
    fill(connection, signal=1.0, shuffled=False)
    run = build(connection, "items")
    assert ALONE not in run.notes
    ranking = ranking_of(connection)
    assert ranking["by_geometry_alone"] is False
    assert ranking["code"] + ranking["votes"] > 0
    assert run.metrics["ranking"]["code"] == ranking["code"]
    assert "ranks by geometry, votes" in status(database)
    found = evaluate(connection, "items", queries=200).metrics
    assert found["index"]["p10"] > found["exact"]["p10"] + 0.05


def test_options_have_the_last_word_and_a_rollback_brings_weights_back(connection: Connection) -> None:
    fill(connection, signal=1.0, shuffled=False)
    build(connection, "items")
    learned = ranking_of(connection)
    connection.execute("SELECT foh.alter_index('items', '{\"probes\": 5}')")
    assert ranking_of(connection) == {**learned, "probes": 5}
    connection.execute("SELECT foh.alter_index('items', '{\"probes\": null}')")
    assert ranking_of(connection) == learned
    # From now on the labels are noise.
    connection.execute("UPDATE item SET label = 'l' || abs(hashint4(id)) % 6")
    rebuild(connection, "items")
    assert ranking_of(connection)["by_geometry_alone"] is True
    rollback(connection, "items", 2)
    assert ranking_of(connection) == learned


def test_an_index_without_labels_ranks_by_geometry_alone(connection: Connection) -> None:
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(2))")
    connection.execute("SELECT foh.create_index('items', 'item', 'embedding')")
    assert ranking_of(connection)["by_geometry_alone"] is True


def test_a_table_that_has_doubled_is_weighed_again(connection: Connection) -> None:
    """With labels or without: what must be read for a recall changes, and the next update knows what was chosen."""
    rng = np.random.default_rng(0)
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(3))")
    connection.execute(
        "SELECT foh.create_index('items', 'item', 'embedding', options => '{\"exact_rows\": 0}')"
    )

    def write(first: int, rows: int) -> None:
        with connection.cursor().copy("COPY item FROM STDIN") as copy:
            for key, row in enumerate(rng.random((rows, 3)).round(4).tolist(), start=first):
                copy.write_row((key, str(row)))

    def reach() -> Any:
        (found,) = connection.execute(
            "SELECT reach_recall || reach_probes::float8[] || reach_shortlist::float8[] FROM foh.model ORDER BY version DESC LIMIT 1"
        ).fetchone() or (None,)
        return found

    write(0, 3000)
    build(connection, "items")
    chosen = reach()
    assert chosen
    write(3000, 500)
    assert "weigh" not in update(connection, "items").phases
    write(3500, 3000)
    run = update(connection, "items")
    assert "weigh" in run.phases
    assert run.metrics["ranking"]["asked"] == 300
    again = reach()
    assert again != chosen
    write(6500, 100)
    run = update(connection, "items")
    assert "weigh" not in run.phases
    assert len(reach()) == len(again)


@pytest.mark.one_version
@pytest.mark.parametrize(("signal", "most"), [(0.3, None), (0.5, None), (1.0, 1.0)])
def test_where_labels_say_little_answers_are_not_below_the_exact_distance_or_the_build_says_so(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, signal: float, most: float | None
) -> None:
    """One of 40 lists is read at first, and `both` is then far below what the exact distance gives."""
    monkeypatch.setattr(Prices, "labels", 1.0)
    if most is not None:
        monkeypatch.setattr(Prices, "most", most)
    fill(connection, signal, shuffled=False)
    connection.execute("SELECT foh.alter_index('items', '{\"centers\": 40}')")
    run = build(connection, "items")
    found = evaluate(connection, "items", queries=300).metrics
    said = [note for note in run.notes if "a higher recall, as an option or an argument, finds more" in note]
    below = found["exact"]["both10"] - found["index"]["both10"]
    if most is None:
        # A search also finds rows that have asked, which are no answers in the choice.
        assert below < ALLOWED + 0.01
        assert found["index"]["p10"] > found["exact"]["p10"] - ALLOWED - 0.01
        assert not said
    else:
        assert below > 0.05
        assert said


@pytest.mark.one_version
def test_a_build_is_judged_by_all_rows_whatever_its_sample(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(plan, "ROWS_PER_CENTER", 1)
    monkeypatch.setattr(filling, "LEAST_PAGE_ROWS", 400)
    monkeypatch.setattr(filling, "PAGE_BYTES", 0)
    seen: list[Gathered] = []

    def chosen(*given: Any) -> Any:
        seen.append(given[2])
        return weighing.with_ranking(*given)

    monkeypatch.setattr(filling, "with_ranking", chosen)
    fill(connection, signal=1.0, shuffled=False)
    run = build(connection, "items")
    [found] = seen
    asking = found.queries.keys.tolist()
    assert 40 <= len(asking) < 200
    assert run.metrics["ranking"]["asked"] == len(asking)
    assert found.rows == ROWS - len(asking)
    [distances] = zip(
        *connection.execute(
            "SELECT (SELECT array_agg(d.distance ORDER BY d.distance) FROM (SELECT o.embedding OPERATOR(extensions.<=>) q.embedding AS distance "
            "FROM item o WHERE o.id <> ALL (%(asking)s) ORDER BY 1 LIMIT 10) d) FROM item q JOIN unnest(%(asking)s::int[]) WITH ORDINALITY a (id, place) USING (id) ORDER BY a.place",
            {"asking": asking},
        ),
        strict=True,
    )
    assert found.nearest["far"][:, :10] == pytest.approx(np.array(distances), abs=1e-6)


@pytest.mark.one_version
def test_in_a_small_table_further_rows_ask_a_model_that_has_not_learned_from_them(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(connection, signal=1.0, shuffled=False)
    connection.execute("SELECT foh.alter_index('items', '{\"held_out\": 0.02}')")
    taught: list[Any] = []
    learn = training.learn

    def watched(index: IndexRow, learner: Any, rows: Rows) -> None:
        taught.append(set(rows.keys.tolist()))
        learn(index, learner, rows)

    monkeypatch.setattr(training, "learn", watched)
    asked: list[Any] = []
    hold_out = weighing.hold_out_enough

    def chosen(index: Any, model: Any, rows: Rows) -> Any:
        held, model = hold_out(index, model, rows)
        asked.append(set(rows.keys[held].tolist()))
        return held, model

    monkeypatch.setattr(weighing, "hold_out_enough", chosen)
    run = build(connection, "items")
    assert run.metrics["ranking"]["asked"] == 0.2 * ROWS
    [asking] = asked
    # The index itself learns from all rows but the few that it holds out, the model that is asked from the others.
    served = set.union(*taught[: len(taught) // 2])
    tried = set.union(*taught[len(taught) // 2 :])
    assert 0 < len(asking - served) < 0.04 * ROWS
    assert not tried & asking
    assert tried | asking == set(range(ROWS))
