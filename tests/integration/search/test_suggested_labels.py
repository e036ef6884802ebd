"""Labels suggested for vectors and rows: right, with honest chances, and from rows that the caller can see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner

from foh_pg import AsyncIndex, Index
from foh_pg.cli import app
from foh_pg.quality import suggesting
from foh_pg.quality.evaluate import evaluate
from foh_pg.runs.run import Run
from foh_pg.runs.session import Session, open_session
from foh_pg.tables.index_row import IndexRow, find_index
from foh_pg.tables.source import Rows
from foh_pg.updater import build, chances, rebuild, update
from foh_pg.updater.chances import leans, odds
from foh_pg.updater.served_model import read_served
from tests.support.digits import HELD_OUT, create_index, create_table, digits, insert, vector
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


def learn(database: Database) -> None:
    """Learn the first 1500 digits, of which every tenth has no label."""
    connection = database.connect()
    create_table(connection)
    insert(connection, range(1500))
    connection.execute("UPDATE digit SET label = '' WHERE id % 10 = 0")
    create_index(connection, options='{"held_out": 0.2}')
    build(connection, "digits")


@pytest.fixture
def full(copy_of: Callable[..., Database]) -> Database:
    return copy_of(learn)


@pytest.fixture
def learned(full: Database) -> Connection:
    return full.connect()


def labels(connection: Connection, row: int, k: int = 3) -> list[tuple[str, float, int]]:
    return connection.execute(
        "SELECT label, chance, neighbors FROM foh.digits_labels(%s::extensions.vector, %s)",
        [vector(digits()[0][row]), k],
    ).fetchall()


class TestVectors:
    def test_right_with_chances_that_come_true(self, learned: Connection) -> None:
        target = digits()[1]
        found = [(row, labels(learned, row)) for row in HELD_OUT]
        first = [answer[0][0] == str(target[row]) for row, answer in found]
        assert np.mean(first) > 0.9
        said = [answer[0][1] for _, answer in found]
        assert abs(np.mean(said) - np.mean(first)) < 0.06
        # What is likelier is right more often.
        sure = np.array(said) > np.median(said)
        assert np.mean(np.array(first)[sure]) > np.mean(np.array(first)[~sure])
        for _, answer in found:
            assert all(0 < chance < 1 and 1 <= neighbors <= 20 for _, chance, neighbors in answer)
            assert [chance for _, chance, _ in answer] == sorted(
                (chance for _, chance, _ in answer), reverse=True
            )

    def test_the_chances_are_those_that_held_out_rows_have_shown(
        self, learned: Connection, full: Database
    ) -> None:
        """SQL computes from shares and code what Python has learned the three numbers for."""
        with open_session(full.dsn()) as session:
            model = read_served(session, find_index(session, "digits")).model
        assert model.ranking.chances is not None
        bias, votes, code = model.ranking.chances
        row = digits()[0][1600]
        names, shares = ["3", "7", "unheard of"], [0.5, 0.3, 0.2]
        [[found]] = learned.execute(
            "SELECT foh.digits_chances(%s::extensions.vector, %s, %s)", [vector(row), names, shares]
        ).fetchall()
        lean = leans(model, row[None])[0]
        leaning = [lean[model.numbers[name]] if name in model.numbers else 0 for name in names]
        expected = bias + votes * odds(np.array(shares)) + code * np.array(leaning)
        assert found == pytest.approx(1 / (1 + np.exp(-expected)), abs=1e-4)

    def test_before_any_held_out_row_was_asked_the_chance_is_the_share_of_the_votes(
        self, connection: Connection
    ) -> None:
        create_table(connection)
        create_index(connection)
        insert(connection, range(40))
        answer = labels(connection, 50, k=10)
        assert sum(chance for _, chance, _ in answer) == pytest.approx(1)
        assert sum(neighbors for _, _, neighbors in answer) == 20

    def test_rows_farther_away_vote_where_few_rows_have_labels(self, learned: Connection) -> None:
        learned.execute("UPDATE digit SET label = NULL WHERE id % 2 > 0")
        answer = labels(learned, 1600, k=10)
        assert sum(neighbors for _, _, neighbors in answer) == 20

    def test_they_read_enough_where_searches_read_little(self, learned: Connection) -> None:
        """A search that misses the nearest rows is cheap; votes of the wrong rows are wrong."""
        learned.execute("SELECT foh.alter_index('digits', '{\"exact_rows\": 0}')")
        asked = HELD_OUT[:40]
        before = [labels(learned, row) for row in asked]
        learned.execute("SELECT foh.alter_index('digits', '{\"probes\": 1, \"shortlist\": 10}')")
        assert [labels(learned, row) for row in asked] == before

    def test_bad_input(self, learned: Connection) -> None:
        for call, said in {
            "(NULL)": "the query is NULL",
            "('[1, 2]')": "has 64 dimensions, the query has 2",
            "((SELECT embedding FROM digit LIMIT 1), 0)": "k is 0",
        }.items():
            with pytest.raises(psycopg.Error, match=said):
                learned.execute(f"SELECT * FROM foh.digits_labels{call}")

    def test_an_index_without_labels(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection, labels=None)
        with pytest.raises(psycopg.Error, match="'digits' has no labels, so there are none") as caught:
            labels(connection, 0)
        assert "foh.refresh('digits', labels => ...)" in (caught.value.diag.message_hint or "")

    def test_several_labels_a_row_and_labels_of_another_table(
        self, connection: Connection, database: Database
    ) -> None:
        create_table(connection)
        insert(connection, range(400))
        connection.execute("CREATE TABLE tag (digit int, name text)")
        connection.execute(
            "INSERT INTO tag SELECT id, label FROM digit UNION ALL SELECT id, CASE WHEN label::int % 2 = 0 THEN 'even' END FROM digit"
        )
        create_index(connection, labels="name", labels_from="tag", labels_key="digit")
        build(database.dsn(), "digits")
        # Eights among whose exact 20 nearest hardly any other digit is: with fewer eights there, rows that bits
        # alone have chosen can outvote them.
        vectors, target = digits()
        there = vectors[:400] / np.linalg.norm(vectors[:400], axis=1, keepdims=True)
        near = {row: target[np.argsort(-(there @ vectors[row]))[:20]] for row in HELD_OUT}
        eights = [row for row in HELD_OUT if target[row] == 8 and (near[row] == 8).sum() >= 15]
        assert len(eights) > 10
        for row in eights:
            assert {label for label, _, _ in labels(connection, row, 2)} == {"8", "even"}
        # A transaction that must not disturb writers can ask, too.
        connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert len(labels(connection, eights[0], 2)) == 2
        connection.execute("ROLLBACK")


class TestRows:
    def test_rows_without_labels_page_by_page(self, learned: Connection) -> None:
        index = Index.open(learned, "digits")
        target = digits()[1]
        found, after = [], None
        while page := index.suggest(k=2, rows=40, after_key=after):
            found += page
            after = page[-1].key
        assert [row.key for row in found] == list(range(0, 1500, 10))
        right = [row.labels[0].label == str(target[row.key]) for row in found]
        assert np.mean(right) > 0.9
        assert all(len(row.labels) <= 2 for row in found)

    def test_a_row_for_which_nothing_can_be_said_is_passed_over(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection)
        insert(connection, range(5))
        connection.execute("UPDATE digit SET label = NULL")
        assert [(row.key, row.labels) for row in Index.open(connection, "digits").suggest()] == [
            (i, []) for i in range(5)
        ]

    def test_a_row_has_no_vote_for_itself(self, learned: Connection) -> None:
        index = Index.open(learned, "digits")
        learned.execute("UPDATE digit SET label = 'wrong' WHERE id = 1")
        assert "wrong" in [label for label, _, _ in labels(learned, 1, k=10)]
        like = index.labels_like(1, k=10)
        assert "wrong" not in [suggestion.label for suggestion in like]
        assert like[0].label == str(digits()[1][1])

    def test_async(self, learned: Connection, full: Database) -> None:
        async def ask() -> list[Any]:
            async with await psycopg.AsyncConnection.connect(full.dsn(), autocommit=True) as connection:
                index = await AsyncIndex.open(connection, "digits")
                return [
                    await index.labels(digits()[0][1600], k=1),
                    await index.labels_like(1, k=1),
                    await index.suggest(k=1, rows=2),
                ]

        index = Index.open(learned, "digits")
        expected = [
            index.labels(digits()[0][1600], k=1),
            index.labels_like(1, k=1),
            index.suggest(k=1, rows=2),
        ]
        assert asyncio.run(ask()) == expected


class TestRights:
    def test_a_reader_sees_labels_of_rows_that_policies_show(
        self, learned: Connection, full: Database
    ) -> None:
        learned.execute("SELECT * FROM foh.grant('digits', reader => 'app_reader')")
        learned.execute("GRANT SELECT (id, embedding) ON digit TO app_reader")
        reader = full.connect("app_reader")
        # To search is not to read labels.
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="table digit"):
            labels(reader, 1600)
        learned.execute("GRANT SELECT ON digit TO app_reader")
        shown = labels(reader, 1600)
        assert shown == labels(learned, 1600)
        best = shown[0][0]
        learned.execute(f"CREATE POLICY shown ON digit USING (label <> '{best}')")
        learned.execute("ALTER TABLE digit ENABLE ROW LEVEL SECURITY")
        hidden = labels(reader, 1600, k=10)
        assert hidden
        assert best not in [label for label, _, _ in hidden]
        assert labels(learned, 1600) == shown

    def test_a_hostile_search_path(self, learned: Connection) -> None:
        expected = labels(learned, 1600)
        learned.execute(
            "CREATE FUNCTION public.less(float8, float8) RETURNS float8 LANGUAGE sql AS 'SELECT 0::float8';"
            "CREATE OPERATOR public./ (LEFTARG = float8, RIGHTARG = float8, FUNCTION = public.less);"
            "CREATE OPERATOR public.* (LEFTARG = float8, RIGHTARG = float8, FUNCTION = public.less)"
        )
        learned.execute("SET search_path = public, pg_catalog")
        assert labels(learned, 1600) == expected


class TestCommandLine:
    def run(self, database: Database, *arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["labels", "digits", *arguments, f"--dsn={database.dsn()}"])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    def test_what_can_be_asked(self, learned: Connection, full: Database) -> None:
        missing = json.loads(self.run(full, "--missing", "--json", "-k1"))
        assert [row["id"] for row in missing] == list(range(0, 1500, 10))
        some = json.loads(self.run(full, "--missing", "--json", "-k1", "--rows=3", "--after=100"))
        assert [row["id"] for row in some] == [110, 120, 130]
        like = json.loads(self.run(full, "--like=1", "--json"))
        assert list(like[0]) == ["label", "chance", "neighbors"]
        assert like[0]["label"] in self.run(full, f"--vector={vector(digits()[0][1])}")
        assert "pass one of" in self.run(full, code=2)
        assert "no row with id = '5000'" in self.run(full, "--like=5000", code=1)


@pytest.mark.one_version
def test_evaluate_compares_with_a_vote_and_a_classifier(learned: Connection, full: Database) -> None:
    shown = CliRunner().invoke(app, ["evaluate", "digits", f"--dsn={full.dsn()}"]).stdout
    assert "suggested by the index" in shown
    [[metrics]] = learned.execute("SELECT metrics FROM foh.run ORDER BY id DESC LIMIT 1").fetchall()
    ours, vote, classifier = (metrics[way] for way in ("labels", "labels_vote", "labels_classifier"))
    assert ours["top1"] > 0.9
    assert ours["top1"] <= ours["top3"] <= 1
    assert ours["calibration"] < 0.1
    assert vote["top1"] > 0.9
    assert classifier["top1"] > 0.8
    assert (vote["calibration"], classifier["calibration"]) == (None, None)


@pytest.mark.one_version
def test_chances_are_judged_by_rows_that_they_were_not_learned_from(
    learned: Connection, full: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught, asked = set[int](), set[int]()

    def votes(queries: Rows, *near: Any) -> Any:
        taught.update(queries.keys.tolist())
        return chances_votes(queries, *near)

    def ask(session: Session, run: Run, index: IndexRow, rows: Rows) -> Any:
        asked.update(rows.keys.tolist())
        return suggesting_ask(session, run, index, rows)

    chances_votes, suggesting_ask = chances._votes, suggesting.ask
    monkeypatch.setattr(chances, "_votes", votes)
    monkeypatch.setattr(suggesting, "ask", ask)
    rebuild(full.dsn(), "digits")
    run = evaluate(full.dsn(), "digits")
    assert taught
    assert asked
    assert not taught & asked
    # Rows that taught may still ask for the nearest rows, where there are too few others.
    assert len(asked) < run.metrics["queries"]


def test_an_update_keeps_what_a_build_has_learned_of_chances(learned: Connection, full: Database) -> None:
    insert(learned, range(1500, 1550))
    update(full.dsn(), "digits")
    [[kept]] = learned.execute("SELECT chances FROM foh.model ORDER BY version DESC LIMIT 1").fetchall()
    assert len(kept) == 3
