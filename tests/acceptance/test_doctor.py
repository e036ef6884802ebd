"""foh-pg doctor: one test for each thing that a new user gets wrong, made wrong on a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from foh_pg.cli import app
from foh_pg.doctor import server as server_checks
from foh_pg.schema import requirements
from foh_pg.schema.requirements import REQUIREMENTS
from foh_pg.updater import build
from foh_pg.version import __version__
from tests.acceptance.test_cli import CommandLine
from tests.support.postgres import Database, install_pgvector

Findings = list[dict[str, Any]]


@pytest.fixture
def doctor(database: Database) -> Callable[..., Findings]:
    """Run the command; its exit code must agree with what it found."""

    def run(*arguments: str, role: str = "app_owner") -> Findings:
        return findings(database, role, *arguments)

    return run


def findings(database: Database, role: str | None = "app_owner", *arguments: str) -> Findings:
    result = CliRunner().invoke(app, ["doctor", "--json", f"--dsn={database.dsn(role)}", *arguments])
    answer = json.loads(result.stdout)
    wrong = [finding for finding in answer["findings"] if finding["severity"] != "note"]
    assert (result.exit_code, answer["well"]) == ((5, False) if wrong else (0, True))
    return answer["findings"]


def only(found: Findings, check: str) -> dict[str, Any]:
    [finding] = [finding for finding in found if finding["check"] == check]
    return finding


@pytest.fixture
def products(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """An index with nothing wrong: without rows there is nothing to build or to update."""
    connection.execute(
        "CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3), tags text[])"
    )
    connection.execute(
        "SELECT foh.create_index('products', source => 'product', embedding => 'embedding', labels => 'tags', bits => 16)"
    )
    return connection


def test_nothing_is_wrong(products: psycopg.Connection[Any], database: Database) -> None:
    assert findings(database) == []
    result = CommandLine(database)("doctor")
    assert result.stdout == ""
    assert "nothing is wrong" in result.stderr
    assert f"foh_pg {__version__}, PostgreSQL" in result.stderr


def test_an_answer_for_reading(products: psycopg.Connection[Any], database: Database) -> None:
    products.execute("ALTER TABLE product DISABLE TRIGGER USER")
    result = CommandLine(database)("doctor", code=5)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("error: products: a trigger is missing or disabled (delete on public.product")
    assert lines[1] == "  -> run foh-pg alter-index products --refresh, then foh-pg check products --repair"


class TestDatabase:
    def test_pgvector_is_not_installed(self, new_database: Callable[..., Database]) -> None:
        finding = only(findings(new_database(), "installer"), "pgvector")
        assert finding["severity"] == "error"
        assert finding["cure"].startswith("CREATE EXTENSION vector;")

    @pytest.mark.parametrize(
        ("version", "severity"), [("0.6.2", "error"), ("0.8.2", "warning"), ("0.8.3", "note")]
    )
    def test_pgvector_is_old(
        self, doctor: Callable[..., Findings], superuser: psycopg.Connection[Any], version: str, severity: str
    ) -> None:
        superuser.execute("UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", [version])
        # Before PostgreSQL 18 the slow ones are as fast as the others, and only worth a note.
        expected = "note" if severity == "warning" and superuser.info.server_version < 180000 else severity
        finding = only(doctor(), "pgvector")
        assert finding["severity"] == expected
        assert version in finding["found"]
        assert finding["cure"] == "ALTER EXTENSION vector UPDATE;"

    def test_the_schema_is_missing(self, new_database: Callable[..., Database]) -> None:
        database = new_database()
        install_pgvector(database.connect(None))
        finding = only(findings(database, "installer"), "schema")
        assert "not installed" in finding["found"]
        assert finding["cure"] == "foh-pg migrate"
        cure = only(findings(database, "app_writer"), "schema")["cure"]
        assert cure == f"GRANT CREATE ON DATABASE {database.name} TO app_writer; then foh-pg migrate"

    def test_the_schema_is_newer(
        self, doctor: Callable[..., Findings], superuser: psycopg.Connection[Any]
    ) -> None:
        superuser.execute("UPDATE foh.alembic_version SET version_num = '9999'")
        assert "'9999', which this foh_pg does not know" in only(doctor(), "schema")["found"]

    def test_the_functions_are_those_of_another_version(
        self, doctor: Callable[..., Findings], superuser: psycopg.Connection[Any], database: Database
    ) -> None:
        superuser.execute("UPDATE foh.code SET digest = 'another', version = '0.1.9'")
        finding = only(doctor(), "schema")
        assert finding["severity"] == "warning"
        assert "came with foh_pg 0.1.9" in finding["found"]
        CommandLine(database)("migrate")
        assert not [f for f in doctor() if f["check"] == "schema"]

    def test_the_schema_is_somebody_elses(self, new_database: Callable[..., Database]) -> None:
        database = new_database()
        superuser = database.connect(None)
        superuser.execute("CREATE SCHEMA foh AUTHORIZATION app_writer")
        superuser.execute("CREATE TABLE foh.alembic_version (version_num varchar)")
        finding = only(findings(database, None), "schema")
        assert finding["severity"] == "error"
        assert "belongs to role app_writer" in finding["found"]
        assert finding["cure"].startswith("Connect as app_writer")

    def test_all_tables_are_published(
        self,
        doctor: Callable[..., Findings],
        products: psycopg.Connection[Any],
        superuser: psycopg.Connection[Any],
    ) -> None:
        superuser.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        assert only(doctor(), "publications")["severity"] == "note"


@pytest.mark.one_version
class TestRights:
    def test_a_role_that_may_not_search(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        for found in (doctor(role="app_reader"), doctor("--role=app_reader")):
            finding = only(found, "rights")
            assert (finding["severity"], finding["index"]) == ("warning", "products")
            assert finding["cure"].startswith("foh-pg grant products --reader app_reader")

    def test_a_reader_that_may_not_read_the_table(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        products.execute("SELECT foh.grant('products', reader => 'app_reader')")
        for found in (doctor(role="app_reader"), doctor("--role=app_reader")):
            cure = only(found, "rights")["cure"]
            assert cure == "GRANT SELECT (id, embedding) ON public.product TO app_reader;"
        products.execute(cure)
        # What a reader cannot look at is said, and is no fault.
        assert only(doctor(role="app_reader"), "schema")["severity"] == "note"
        assert [finding["check"] for finding in doctor(role="app_reader")] == ["schema"]

    def test_a_role_that_may_not_create_the_first_index(self, doctor: Callable[..., Findings]) -> None:
        assert only(doctor("--role=app_writer"), "rights")["cure"].startswith(
            "connect as the owner of schema foh"
        )
        assert only(doctor(), "index")["severity"] == "note"

    def test_a_role_that_does_not_exist(self, products: psycopg.Connection[Any], database: Database) -> None:
        error = CommandLine(database)("doctor", "--role=nobody", code=1).stderr
        assert "there is no role 'nobody'" in error


@pytest.mark.one_version
class TestIndex:
    @pytest.mark.parametrize(
        "statement",
        [
            "ALTER TABLE product DISABLE TRIGGER foh_products_insert",
            "DROP TRIGGER foh_products_insert ON product",
        ],
    )
    def test_a_trigger_does_not_fire(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings], statement: str
    ) -> None:
        products.execute(statement)
        finding = only(doctor(), "triggers")
        assert "insert on public.product" in finding["found"]
        assert (
            finding["cure"]
            == "run foh-pg alter-index products --refresh, then foh-pg check products --repair"
        )

    def test_a_column_was_renamed(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        products.execute("ALTER TABLE product RENAME COLUMN tags TO labels")
        finding = only(doctor(), "table")
        assert (finding["severity"], finding["cure"]) == (
            "error",
            "run foh-pg alter-index products --refresh",
        )

    def test_the_table_was_dropped(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        products.execute("DROP TABLE product")
        assert "foh-pg drop-index products" in only(doctor(), "table")["cure"]

    def test_the_index_was_never_built(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings], database: Database
    ) -> None:
        products.execute(
            "CREATE TABLE full_of_rows AS SELECT 1 AS id, '[1,2,3]'::extensions.vector(3) AS embedding"
        )
        products.execute("ALTER TABLE full_of_rows ADD PRIMARY KEY (id)")
        products.execute(
            "SELECT foh.create_index('late', source => 'full_of_rows', embedding => 'embedding')"
        )
        finding = only(doctor(), "build")
        assert (finding["index"], finding["cure"]) == ("late", "foh-pg build late")
        CommandLine(database)("build", "late")
        assert doctor() == []

    def test_nobody_runs_the_job(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings], database: Database
    ) -> None:
        write(products, 1)
        assert doctor() == []
        finding = only(doctor("--max-lag=0"), "job")
        assert finding["severity"] == "error"
        assert "there was none yet" in finding["found"]
        CommandLine(database)("update", "products")
        assert doctor("--max-lag=0") == []
        write(products, 2)
        assert "the last began" in only(doctor("--max-lag=0"), "job")["found"]

    def test_the_stream_grows_although_the_job_runs(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings], database: Database
    ) -> None:
        write(products, 1)
        CommandLine(database)("update", "products")
        write(products, 2)
        # As if the run had begun long after the entry was written, and left it.
        products.execute("UPDATE foh.products_stream SET written_at = written_at - interval '1 hour'")
        finding = only(doctor("--max-lag=0"), "stream")
        assert (finding["severity"], "--batch-size" in finding["cure"]) == ("warning", True)

    def test_rows_were_deferred(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        with products.transaction():
            products.execute("SET LOCAL foh.defer = on")
            write(products, *range(200))
        assert only(doctor(), "deferred")["cure"] == "foh-pg update products"

    def test_the_last_run_failed(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        products.execute(
            "INSERT INTO foh.run (index, kind, finished_at, error) SELECT id, 'update', now(), 'no space left' FROM foh.index"
        )
        finding = only(doctor(), "run")
        assert (finding["severity"], "no space left" in finding["found"]) == ("error", True)

    def test_the_model_is_stale(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings], database: Database
    ) -> None:
        write(products, *range(200))
        CommandLine(database)("update", "products")
        never = only(doctor(), "model")
        assert "never learned" in never["found"]
        products.execute("UPDATE foh.model SET trained = true")
        assert doctor() == []
        products.execute("UPDATE foh.products_center SET stale = 0.2")
        assert "20.0% of the stored bits" in only(doctor(), "model")["found"]

    def test_new_models_are_refused(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        products.execute(
            """INSERT INTO foh.run (index, kind, finished_at, metrics)
               SELECT id, 'update', now(), '{"map": 0.3, "map_present": 0.5, "refused": true}'
               FROM foh.index, generate_series(1, 3)"""
        )
        assert only(doctor(), "model")["cure"].startswith("foh-pg build products --again")


def write(connection: psycopg.Connection[Any], *keys: int) -> None:
    connection.execute(
        "INSERT INTO product SELECT k, format('[%%s,1,%%s]', k %% 7, k %% 5)::extensions.vector, '{a}' FROM unnest(%s::int[]) k",
        [list(keys)],
    )


class TestNeverDies:
    def test_a_column_was_renamed(
        self, products: psycopg.Connection[Any], doctor: Callable[..., Findings]
    ) -> None:
        products.execute("GRANT USAGE ON SCHEMA public TO app_reader")
        products.execute('SELECT foh."grant"(%s, reader => %s)', ["products", "app_reader"])
        products.execute("ALTER TABLE product RENAME COLUMN embedding TO vec")
        for arguments in ([], ["--role=app_reader"]):
            found = doctor(*arguments)
            finding = only(found, "table")
            assert "column embedding is now named vec" in finding["found"]
            assert finding["cure"] == "run foh-pg alter-index products --refresh"
            assert not any("embedding)" in each["cure"] for each in found), "a right on a column that is gone"

    def test_what_cannot_be_looked_at_is_a_finding(
        self,
        products: psycopg.Connection[Any],
        superuser: psycopg.Connection[Any],
        doctor: Callable[..., Findings],
    ) -> None:
        products.execute("ALTER TABLE product DISABLE TRIGGER USER")
        superuser.execute("ALTER TABLE foh.run RENAME COLUMN metrics TO figures")
        found = doctor()
        assert "delete on public.product" in only(found, "triggers")["found"]
        assert "could not be looked at: column x.metrics does not exist" in only(found, "stream")["found"]


def test_labels_that_are_lists_in_one_text(
    connection: psycopg.Connection[Any], doctor: Callable[..., Findings], database: Database
) -> None:
    connection.execute("CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3), tags text)")
    connection.execute(
        """INSERT INTO product SELECT i, ARRAY[i, i % 7, 1]::real[]::extensions.vector,
                  CASE WHEN i % 10 > 0 THEN format('red,size %s', i) WHEN i % 20 = 0 THEN '' END
           FROM generate_series(1, 300) i"""
    )
    connection.execute(
        "SELECT foh.create_index('products', source => 'product', embedding => 'embedding', labels => 'tags', bits => 16)"
    )
    notes = build(database.dsn(), "products").notes
    commas, different = [note for note in notes if "label" in note and ";" in note]
    assert commas.startswith(
        "270 of 270 labels have a comma in them, such as 'red,size 1': each text is one label;"
    )
    assert different.startswith(
        "270 different labels on 270 rows: labels that no other row has teach nothing;"
    )
    found = [finding for finding in doctor() if finding["check"] == "labels"]
    assert [finding["severity"] for finding in found] == ["warning", "warning"]
    assert "string_to_array(column, ',')" in found[0]["cure"]


@pytest.mark.parametrize(
    "command",
    ["update", "build", "evaluate", "check", "status", "doctor", "alter-index", "refresh", "search", "like"],
)
def test_after_drop_table_every_command_says_drop_index(
    products: psycopg.Connection[Any], database: Database, command: str
) -> None:
    products.execute("DROP TABLE product")
    more = {
        "alter-index": ["products", "--option=probes=3"],
        "refresh": ["products", "--refresh"],
        "search": ["products", "--vector=[1,2,3]"],
        "like": ["products", "--like=1"],
        "doctor": [],
    }
    name = {"refresh": "alter-index", "like": "search"}.get(command, command)
    arguments = [name, *more.get(command, ["products"]), f"--dsn={database.dsn()}"]
    result = CliRunner().invoke(app, arguments)
    assert "drop_index" in result.output or "drop-index" in result.output, result.output
    assert name == "search" or "refresh" not in result.output, result.output


def test_requirements_are_said_in_the_same_words() -> None:
    root = Path(__file__).resolve().parents[2]
    for file in ("README.md", "docs/start/install.md"):
        assert REQUIREMENTS in " ".join((root / file).read_text().split()), file


def test_every_command_refuses_an_old_server_in_the_same_words(
    new_database: Callable[..., Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = new_database()
    install_pgvector(database.connect(None))
    monkeypatch.setattr(requirements, "OLDEST_SERVER", 99)
    monkeypatch.setattr(server_checks, "OLDEST_SERVER", 99)
    asked = ["search", "products", "--like=1"]
    for command in (["migrate"], ["doctor"], ["status"], asked, ["build", "products"]):
        result = CliRunner().invoke(app, [*command, f"--dsn={database.dsn('installer')}"])
        assert result.exit_code != 0
        assert f"is too old: {REQUIREMENTS}" in " ".join(result.output.split()), result.output
    with database.connect("app_owner") as connection:
        assert connection.execute("SELECT to_regnamespace('foh')").fetchone() == (None,)
