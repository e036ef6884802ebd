"""What a run decides: when to learn, what to serve, what to encode again, where not to work at all."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.errors import BuildError, IndexNotFound, InputError
from foh_pg.learners import Learner
from foh_pg.runs.session import open_session
from foh_pg.tables.index_row import find_index
from foh_pg.tables.model_state import load_state
from foh_pg.updater import build, rollback, training, update
from foh_pg.updater.affected import find_affected
from tests.support.digits import create_index, create_table, insert, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


@pytest.fixture
def every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new model is served, however it does on held-out rows."""
    monkeypatch.setattr(training, "MARGIN", 2.0)


def prepare(connection: Connection, rows: int = 0, **options: Any) -> None:
    create_table(connection)
    create_index(connection, options=json.dumps({"learn_rows": 300, **options}))
    insert(connection, range(rows))


def value(connection: Connection, query: str) -> Any:
    row = connection.execute(query).fetchone()
    return None if row is None else row[0]


class TestLearning:
    def test_few_rows_are_merged_and_learned_later(self, connection: Connection) -> None:
        prepare(connection, 200)
        update(connection, "digits")
        assert value(connection, "SELECT bool_or(trained) FROM foh.model") is False
        insert(connection, range(200, 300))
        update(connection, "digits")
        assert value(connection, "SELECT trained FROM foh.model WHERE version = 3") is True
        assert violations(connection) == []

    @pytest.mark.parametrize("label", ["".join(map(chr, range(0x4E00, 0x5C00))), "1" * 5000])
    def test_a_label_too_long_to_be_a_name_stops_nothing(self, connection: Connection, label: str) -> None:
        prepare(connection, 400)
        connection.execute("UPDATE digit SET label = %s WHERE id IN (3, 7)", [label])
        update(connection, "digits")
        assert value(connection, "SELECT bool_or(trained) FROM foh.model") is True
        assert value(connection, "SELECT max(length(name)) FROM foh.label") == 1
        assert value(connection, "SELECT count(*) FROM foh.digits_stream") == 0
        assert violations(connection) == []

    def test_rows_change_before_anything_was_learned(self, connection: Connection) -> None:
        """The learner that forgets them has not begun, and is saved as one that has not."""
        prepare(connection, 100, learn_rows=50)
        connection.execute("UPDATE digit SET label = NULL")
        update(connection, "digits")
        for _ in range(2):
            connection.execute("UPDATE digit SET embedding = embedding OPERATOR(extensions.+) embedding")
            update(connection, "digits")
        connection.execute("TRUNCATE digit")
        insert(connection, range(100, 400))
        update(connection, "digits")
        assert value(connection, "SELECT count(*) FROM foh.digits_stream") == 0
        assert violations(connection) == []

    def test_the_learner_follows_altered_options(self, connection: Connection, every_model: None) -> None:
        prepare(connection, 600)
        update(connection, "digits")
        altered = {"label_weight": 0.5, "forget": 0.5}
        connection.execute("SELECT foh.alter_index('digits', %s::jsonb)", [json.dumps(altered)])
        insert(connection, range(600, 1000))
        update(connection, "digits")
        with open_session(connection) as session:
            find_index(session, "digits")
            saved = load_state(session, "learner", value(connection, "SELECT max(learned) FROM foh.model"))
        assert saved is not None
        learner = Learner.restored(saved)
        assert altered.items() <= learner.parameters().items()

    def test_labels_that_come_later_are_learned(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection, labels=None, options=json.dumps({"learn_rows": 300}))
        insert(connection, range(600))
        update(connection, "digits")
        connection.execute("SELECT foh.refresh('digits', labels => 'label')")
        insert(connection, range(600, 1000))
        update(connection, "digits")
        assert value(connection, "SELECT trained FROM foh.index_stat") is True
        assert violations(connection) == []

    def test_held_out_rows_never_train(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[int] = []
        learn = training.learn

        def watch(index: Any, learner: Any, rows: Any) -> None:
            seen.extend(rows.keys.tolist())
            learn(index, learner, rows)

        monkeypatch.setattr(training, "learn", watch)
        prepare(connection, 600, held_out=0.3)
        update(connection, "digits")
        held = connection.execute(
            "SELECT id FROM digit WHERE ('x' || left(encode(sha256(convert_to(id::text, 'UTF8')), 'hex'), 8))::bit(32)::bigint / 4294967296.0 < 0.3"
        ).fetchall()
        assert len(held) > 100
        assert len(seen) == 600 - len(held)
        assert not {key for (key,) in held} & set(seen)

    def test_nothing_to_do_is_no_run(self, connection: Connection) -> None:
        prepare(connection)
        run = update(connection, "digits")
        assert (run.rows, run.to_version, run.more) == (0, 1, False)
        assert value(connection, "SELECT count(*) FROM foh.run") == 0

    def test_time_is_up(self, connection: Connection) -> None:
        prepare(connection, 300)
        run = update(connection, "digits", max_seconds=0)
        assert run.more
        assert run.rows == 0

    def test_deleted_rows_leave_the_reservoir_and_the_centers(self, connection: Connection) -> None:
        prepare(connection, 600)
        update(connection, "digits")
        connection.execute("DELETE FROM digit WHERE id < 400")
        update(connection, "digits")
        assert value(connection, "SELECT count(*) FROM foh.digits_sample, unnest(ids) id WHERE id < 400") == 0
        with open_session(connection) as session:
            index = find_index(session, "digits")
            learned = session.one("SELECT max(learned) FROM foh.model")[0]
            saved = load_state(session, "learner", learned)
        assert saved is not None
        keys = saved["learned"]["reservoir_"]["keys"]
        assert index.key_types == ["integer"]
        assert len(keys) > 100
        assert keys.min() >= 400


class TestServing:
    def test_a_first_model_worse_than_random_is_not_served(
        self, connection: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        worsen(monkeypatch)
        prepare(connection, 900, held_out=0.2)
        run = update(connection, "digits")
        assert "worse than random" in run.notes[0]
        assert value(connection, "SELECT bool_or(trained) FROM foh.model") is False
        assert violations(connection) == []

    def test_a_worse_model_is_not_installed_and_the_rows_are(
        self, connection: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prepare(connection, 900, held_out=0.2)
        update(connection, "digits")
        before = connection.execute("SELECT bit, weights::text FROM foh.digits_projection").fetchall()
        insert(connection, range(900, 1300))
        with monkeypatch.context() as worse:
            worsen(worse)
            run = update(connection, "digits")
        assert "worse than the present one" in run.notes[0]
        assert run.metrics["refused"] is True
        assert connection.execute("SELECT bit, weights::text FROM foh.digits_projection").fetchall() == before
        assert value(connection, "SELECT count(*) FROM foh.digits_stream") == 0
        assert violations(connection) == []
        # It cannot jam: the learner has gone on, and the next model is a good one.
        insert(connection, range(1300, 1700))
        run = update(connection, "digits")
        assert "refused" not in run.metrics or run.notes == []
        assert value(connection, "SELECT learned FROM foh.model ORDER BY version DESC") == run.to_version
        assert violations(connection) == []

    def test_without_labels_hyperplanes_go_through_the_mean(self, connection: Connection) -> None:
        create_table(connection)
        create_index(connection, labels=None, options='{"learn_rows": 300}')
        insert(connection, range(400))
        update(connection, "digits")
        assert value(connection, "SELECT bool_or(bias <> 0) FROM foh.digits_projection")
        balance = value(
            connection,
            "SELECT avg(abs(share - 0.5)) FROM (SELECT avg(get_bit(c, b)) AS share FROM foh.digits_list,"
            " unnest(marks) c, generate_series(0, 31) b GROUP BY b) bits",
        )
        assert float(balance) < 0.2
        insert(connection, range(400, 800))
        before = connection.execute("SELECT bit, weights::text FROM foh.digits_projection").fetchall()
        run = update(connection, "digits")
        assert connection.execute("SELECT bit, weights::text FROM foh.digits_projection").fetchall() == before
        assert run.stale == 0
        assert violations(connection) == []


def worsen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model that is learned from now on gives all rows one code."""
    served = training.served

    def constant(*arguments: Any) -> Any:
        model = served(*arguments)
        return replace(model, weights=np.zeros_like(model.weights), bias=np.full_like(model.bias, -1e6))

    monkeypatch.setattr(training, "served", constant)


class TestAffected:
    def test_only_stale_lists_are_encoded_again(self, connection: Connection) -> None:
        prepare(connection, 400, max_stale=0.1)
        update(connection, "digits")
        homes = "SELECT array_agg((key, home) ORDER BY key) FROM foh.digits_item WHERE key < 400"
        before = value(connection, homes)
        insert(connection, range(400, 700))
        run = update(connection, "digits")
        assert 0 < run.rows_encoded < 400
        assert value(connection, homes) == before
        assert run.stale is not None
        assert run.stale > 0
        assert violations(connection) == []

    def test_budget(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        # The stalest come first; lists opened for centers that come and go are not asked about.
        seen: list[tuple[int, float, float]] = []

        def watch(session: Any, index: Any, centers: Any, *rest: Any) -> Any:
            found = find_affected(session, index, centers, *rest)
            others = np.delete(found.stale, found.lists)
            if len(found.lists):
                seen.append(
                    (centers.lengths[found.lists].sum(), found.stale[found.lists].min(), others.max())
                )
            return found

        monkeypatch.setattr("foh_pg.updater.merge.find_affected", watch)
        prepare(connection, 1200, max_stale=0, budget=100)
        update(connection, "digits", batch_size=1200)
        insert(connection, range(1200, 1500))
        update(connection, "digits")
        ((rows, stalest, rest),) = seen
        assert rows <= 100
        assert stalest >= rest

    @pytest.mark.parametrize("options", [{"max_stale": 1}, {"max_stale": 0, "budget": 1}])
    def test_check_knows_what_the_updater_left_stale(
        self, connection: Connection, every_model: None, options: dict[str, Any]
    ) -> None:
        """By a budget, or under a max_stale that was larger then. What nobody knew of is a violation."""
        prepare(connection, 400, **options)
        update(connection, "digits")
        insert(connection, range(400, 700))
        update(connection, "digits")
        stale = "SELECT sum(stale * length) / sum(length) FROM foh.digits_center"
        assert value(connection, stale) > 0.02
        connection.execute("SELECT foh.alter_index('digits', '{\"max_stale\": 0.001}')")
        assert violations(connection) == []
        with connection.transaction(force_rollback=True):
            connection.execute("UPDATE foh.digits_center SET stale = 0")
            assert {row[0] for row in violations(connection)} == {2}

    def test_long_lists_are_split(self, connection: Connection) -> None:
        prepare(connection, 200)
        update(connection, "digits")
        before = value(connection, "SELECT count(*) FROM foh.digits_center")
        insert(connection, range(200, 1700))
        update(connection, "digits", batch_size=100)
        longest, mean = connection.execute(
            "SELECT max(length), avg(length) FROM foh.digits_center"
        ).fetchone() or (0, 0)
        assert value(connection, "SELECT count(*) FROM foh.digits_center") > before
        assert longest < 8 * mean + 64
        assert violations(connection) == []

    def test_equal_rows_fill_many_parts(self, connection: Connection) -> None:
        prepare(connection, 10)
        connection.execute(
            "INSERT INTO digit SELECT 10000 + i, d.embedding, d.label"
            " FROM digit d, generate_series(1, 1500) i WHERE d.id = 1"
        )
        update(connection, "digits", batch_size=400)
        assert value(connection, "SELECT max(part) FROM foh.digits_list") >= 2
        assert value(connection, "SELECT max(cardinality(ids)) FROM foh.digits_list") <= 512
        assert violations(connection) == []
        connection.execute("DELETE FROM digit WHERE id > 10100")
        update(connection, "digits")
        assert violations(connection) == []


class TestRefusals:
    def test_unknown_index(self, connection: Connection) -> None:
        with pytest.raises(IndexNotFound, match="existing are none"):
            update(connection, "nothing")

    def test_not_built(self, connection: Connection) -> None:
        create_table(connection)
        insert(connection, range(10))
        create_index(connection)
        with pytest.raises(BuildError, match="foh-pg build 'digits'"):
            update(connection, "digits")

    def test_built_already(self, connection: Connection) -> None:
        prepare(connection, 50)
        update(connection, "digits")
        with pytest.raises(BuildError, match="built already"):
            build(connection, "digits")

    def test_inside_a_transaction(self, database: Database) -> None:
        own = database.connect(autocommit=False)
        own.execute("SELECT 1")
        with pytest.raises(InputError, match="inside a transaction"):
            update(own, "digits")

    def test_altered_source(self, connection: Connection) -> None:
        prepare(connection, 50)
        connection.execute("ALTER TABLE digit RENAME COLUMN label TO kind")
        with pytest.raises(BuildError, match=r"foh\.refresh"):
            update(connection, "digits")
        connection.execute("SELECT foh.refresh('digits')")
        update(connection, "digits")
        assert violations(connection) == []

    def test_no_such_version(self, connection: Connection) -> None:
        prepare(connection, 400)
        update(connection, "digits")
        for version in (1, 99):
            with pytest.raises(
                BuildError, match=f"has no model of version {version}: those kept are of versions 2 "
            ):
                rollback(connection, "digits", version)
        # Nothing was begun: no run that failed makes the index look ill.
        assert connection.execute("SELECT kind, error FROM foh.run").fetchall() == [("update", None)]
        assert connection.execute("SELECT healthy FROM foh.health()").fetchall() == [(True,)]

    def test_row_level_security_is_an_error_and_not_half_a_table(
        self, connection: Connection, database: Database
    ) -> None:
        prepare(connection, 100)
        connection.execute("ALTER TABLE digit ENABLE ROW LEVEL SECURITY")
        connection.execute("CREATE POLICY even ON digit USING (id % 2 = 0)")
        connection.execute("SELECT foh.grant(updater => 'app_writer')")
        # Rows are read as the owner of the table, whom the policy does not bind unless it is forced.
        update(database.dsn("app_writer"), "digits")
        assert value(connection, "SELECT count(*) FROM foh.digits_item") == 100
        insert(connection, range(100, 200))
        connection.execute("ALTER TABLE digit FORCE ROW LEVEL SECURITY")
        with pytest.raises(BuildError, match=r"security is forced.*run ALTER TABLE public.digit NO FORCE"):
            update(database.dsn("app_writer"), "digits")
        with pytest.raises(psycopg.Error, match=r"row-level security of public\.digit applies"):
            connection.execute("SELECT foh.refresh('digits')")
        connection.execute("ALTER TABLE digit NO FORCE ROW LEVEL SECURITY")
        update(connection, "digits")
        assert value(connection, "SELECT count(*) FROM foh.digits_item") == 200


def test_a_run_is_written_down(connection: Connection) -> None:
    prepare(connection, 400)
    update(connection, "digits")
    insert(connection, range(400, 700))
    update(connection, "digits")
    first, second = connection.execute(
        "SELECT kind, from_version, to_version, rows, finished_at IS NOT NULL, error, phases FROM foh.run"
        " ORDER BY id"
    ).fetchall()
    assert first[:6] == ("update", 1, 2, 400, True, None)
    assert second[:6] == ("update", 2, 3, 300, True, None)
    assert {"read", "learn", "compare", "sample", "centers", "place", "switch"} <= set(first[6])
    assert {"read", "learn", "compare", "encode", "encode again", "place", "switch"} <= set(second[6])


def test_another_label_weight_encodes_every_row_again(connection: Connection) -> None:
    prepare(connection, 400)
    update(connection, "digits")
    connection.execute("SELECT foh.alter_index('digits', '{\"label_weight\": 0.3}')")
    run = update(connection, "digits")
    assert "encoded again" in run.notes[0]
    assert run.rows_encoded == 400
    assert violations(connection) == []


def test_models_beyond_keep_versions_are_forgotten(connection: Connection, every_model: None) -> None:
    prepare(connection, 0, keep_versions=2)
    for start in range(0, 1500, 300):
        insert(connection, range(start, start + 300))
        update(connection, "digits")
    # The present model stands in the tables that searches read, only those before it are kept elsewhere.
    kept = "SELECT count(DISTINCT version) FROM foh.model_state WHERE name = 'served'"
    assert value(connection, kept) == 1
    assert value(connection, "SELECT count(*) FROM foh.model") == 2
