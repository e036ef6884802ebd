"""evaluate and status, as a person or a script calls them."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from foh_pg.cli import app
from foh_pg.updater import update
from tests.support.digits import create_index, create_table, insert
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


class CommandLine:
    def __init__(self, database: Database) -> None:
        self.dsn = database.dsn()

    def __call__(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [*arguments, f"--dsn={self.dsn}"])
        assert result.exit_code == code, result.output
        return result


@pytest.fixture
def cli(database: Database) -> CommandLine:
    return CommandLine(database)


def stream(database: Database) -> None:
    connection = database.connect()
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300, "held_out": 0.2}')
    for start in range(0, 1200, 300):
        insert(connection, range(start, start + 300))
        update(database.dsn(), "digits")


pytestmark = pytest.mark.prepared(by=stream)


@pytest.fixture
def streamed(connection: Connection) -> Connection:
    return connection


class TestHealth:
    def test_well(self, streamed: Connection, cli: CommandLine) -> None:
        assert "digits: " not in cli("status", "--check").stdout
        [found] = json.loads(cli("status", "digits", "--check", "--json").stdout)
        assert (found["healthy"], found["problems"], found["lag_seconds"]) == (True, [], 0)

    def test_an_entry_that_waits_too_long(self, streamed: Connection, cli: CommandLine) -> None:
        insert(streamed, range(1200, 1210))
        streamed.execute("UPDATE foh.digits_stream SET written_at = now() - interval '1 hour'")
        cli("status", "--check", "--max-lag=4000")
        # Without --check the status only tells.
        assert "digits: an entry has waited" in cli("status", "--max-lag=3000").stdout
        result = cli("status", "--check", "--max-lag=3000", "--json", code=5)
        (index,) = json.loads(result.stdout)
        assert re.search(r"waited 36\d\d s in the stream, more than 3000", index["problems"][0])

    def test_a_run_that_failed_until_one_succeeds(
        self, streamed: Connection, cli: CommandLine, database: Database, superuser: Connection
    ) -> None:
        insert(streamed, range(1200, 1210))
        superuser.execute("ALTER TABLE foh.digits_item ADD CONSTRAINT no CHECK (key < 0) NOT VALID")
        with pytest.raises(psycopg.errors.CheckViolation):
            update(database.dsn(), "digits")
        assert "the last run failed" in cli("status", "--check", code=5).stdout
        superuser.execute("ALTER TABLE foh.digits_item DROP CONSTRAINT no")
        update(database.dsn(), "digits")
        cli("status", "--check")

    @pytest.mark.prepared(by=None)
    def test_not_built_and_unknown(self, connection: Connection, cli: CommandLine) -> None:
        create_table(connection)
        insert(connection, range(10))
        create_index(connection)
        assert "run foh-pg build 'digits'" in cli("status", "--check", code=5).stdout
        assert "no index 'digitz'" in cli("status", "--check", "digitz", code=1).stderr

    def test_in_sql(self, streamed: Connection) -> None:
        assert streamed.execute("SELECT name, healthy, problems FROM foh.health()").fetchall() == [
            ("digits", True, [])
        ]
        insert(streamed, range(1200, 1210))
        streamed.execute("UPDATE foh.digits_stream SET written_at = now() - interval '1 hour'")
        waited = "SELECT healthy, cardinality(problems) FROM foh.health(%s)"
        assert streamed.execute(waited, ["2 hours"]).fetchone() == (True, 0)
        assert streamed.execute(waited, ["59 minutes"]).fetchone() == (False, 1)
        for wrong in ("-1 s", None):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="max_lag is"):
                streamed.execute(waited, [wrong])

    @pytest.mark.prepared(by=None)
    def test_no_index(self, cli: CommandLine) -> None:
        assert "no index yet" in cli("status", "--check").stderr


class TestEvaluate:
    def test_a_table_and_json(self, streamed: Connection, cli: CommandLine) -> None:
        result = cli("evaluate", "digits", "--queries=60")
        assert "exact distance" in result.stdout
        assert "60 queries on 1200 rows" in result.stderr
        found = json.loads(cli("evaluate", "digits", "--queries=60", "--json").stdout)
        assert found["metrics"]["index"]["map100"] > found["metrics"]["exact"]["map100"]
        assert found["metrics"]["exact"]["recall10"] == 1
        assert "recall@10" in result.stdout
        assert "both@k is the share, of the k nearest rows that share a label" in result.stdout
        assert re.search(r"[\d.]+% of the queries are first in their own answer", result.stdout)
        assert 0 < found["metrics"]["index"]["both10"] <= 1
        assert 0 < found["metrics"]["index"]["both10_error"] < 0.1
        assert re.search(r"of the exact ten: [\d.]+% in the lists read, .* in the answer", result.stdout)

    def test_status_shows_the_trend(self, streamed: Connection, cli: CommandLine) -> None:
        cli("evaluate", "digits", "--queries=60")
        shown = cli("status", "digits").stdout
        assert re.search(r"(?m)^version +at +held-out mAP +P@10 ", shown)
        assert re.search(r"(?m)^ *5 +\d{4}-\S+ \S+ +0\.\d+ +0\.\d+ +0\.\d+ +0\.\d+", shown)
        assert re.search(r"ranks by geometry.*; default probes|ranks by geometry.*; probes", shown)
        row = json.loads(cli("status", "digits", "--json").stdout)[0]
        assert set(row["ranking"]) == {"code", "votes", "probes", "shortlist", "by_geometry_alone"}
        points = row["quality"]
        assert [point["version"] for point in points] == [2, 3, 4, 5]
        assert points[-1]["evaluated"]["queries"] == 60

    @pytest.mark.prepared(by=None)
    def test_status_without_any(self, connection: Connection, cli: CommandLine) -> None:
        create_table(connection)
        create_index(connection)
        assert "run foh-pg evaluate digits" in cli("status", "digits").stderr
