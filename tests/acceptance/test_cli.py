from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner, Result

import foh_pg
from foh_pg.cli import app
from foh_pg.schema import migrations
from tests.support.postgres import Database, install_pgvector


class CommandLine:
    """Runs foh-pg on a database, found through --dsn."""

    def __init__(self, database: Database, role: str = "app_owner") -> None:
        self.dsn = database.dsn(role)

    def __call__(self, *arguments: str, code: int = 0, answer: str = "") -> Result:
        result = CliRunner().invoke(app, [*arguments, f"--dsn={self.dsn}"], input=answer)
        assert result.exit_code == code, result.output
        return result


@pytest.fixture
def cli(database: Database) -> CommandLine:
    connection = database.connect("app_owner")
    connection.execute(
        "CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(3), tags text[])"
    )
    return CommandLine(database)


@pytest.fixture
def created(cli: CommandLine) -> CommandLine:
    cli("create-index", "products", "--source=product", "--embedding=embedding", "--labels=tags", "--bits=16")
    return cli


class TestMigrate:
    @pytest.fixture
    def installer(self, new_database) -> CommandLine:
        database = new_database()
        install_pgvector(database.connect(None))
        return CommandLine(database, "installer")

    def test_up_and_down(self, installer: CommandLine) -> None:
        result = installer("migrate")
        assert result.stdout == ""
        assert f"base to {migrations.head()}" in result.stderr
        assert "nothing to do" in installer("migrate").stderr
        assert json.loads(installer("migrate", "--json").stdout)["end"] == migrations.head()
        assert "to base" in installer("migrate", "--to=base", "--yes").stderr

    def test_asks_before_going_back(self, installer: CommandLine) -> None:
        installer("migrate")
        assert "drops indexes" in installer("migrate", "--to=base", answer="n\n", code=1).stderr
        assert "nothing to do" in installer("migrate").stderr
        installer("migrate", "--to=base", answer="y\n")

    @pytest.mark.parametrize("name", ["nowhere", "", "+1", "0001:0002"])
    def test_checks_the_revision_before_it_connects(self, name: str) -> None:
        result = CliRunner().invoke(app, ["migrate", f"--to={name}", "--dsn=host=/no/such/directory"])
        assert result.exit_code == 1
        known = ", ".join(f"{n:04}" for n in range(1, int(migrations.head()) + 1))
        assert result.stderr == f"foh-pg: there is no revision {name!r}: give head, base or one of {known}\n"

    def test_without_pgvector(self, new_database) -> None:
        error = CommandLine(new_database(), "installer")("migrate", code=1).stderr
        assert re.fullmatch(r"foh-pg: the extension pgvector is not installed.*\n", error)

    @pytest.mark.parametrize(
        "command", [["status"], ["search", "--like=1"], ["labels", "--like=1"], ["build"]]
    )
    def test_other_commands_say_so_where_it_is_missing(
        self, installer: CommandLine, command: list[str]
    ) -> None:
        name, *others = command
        about = [] if name == "status" else ["items"]
        assert "run foh-pg migrate first" in installer(name, *about, *others, code=1).stderr

    def test_for_another_role(self, new_database) -> None:
        database = new_database()
        install_pgvector(database.connect(None))
        superuser = CommandLine(database, None)
        superuser("migrate", "--owner=app_owner")
        assert "no index yet" in CommandLine(database)("status").stderr
        error = superuser("status", code=1).stderr
        assert re.fullmatch(
            r"foh-pg: schema foh .* belongs to role app_owner.*Connect as app_owner;.*\n", error
        )
        assert "to base" in superuser("migrate", "--owner=app_owner", "--to=base", "--yes").stderr


class TestIndexes:
    def test_create_prints_the_name(self, cli: CommandLine) -> None:
        result = cli(
            "create-index", "products", "--source=public.product", "--embedding=embedding", "-o", "probes=3"
        )
        assert result.stdout == "products\n"
        [row] = json.loads(cli("status", "--json").stdout)
        assert (row["name"], row["bits"], row["options"]["probes"]) == ("products", 64, 3)

    def test_create_passes_every_argument(self, cli: CommandLine, connection) -> None:
        connection.execute("CREATE TABLE product_tag (product_id int, tag text)")
        cli(
            *("create-index", "products", "--source=product", "--embedding=embedding", "--labels=tag"),
            *(
                "--labels-from=product_tag",
                "--labels-key=product_id",
                "--bits=32",
                "--dimensions=3",
                "--distance=l2",
            ),
            *("-o", "centers=7", "-o", "label_weight=0.5"),
        )
        row = connection.execute(
            """SELECT labels, labels_from::text, labels_key, bits, dimensions, distance,
                      (options->>'centers')::int, (options->>'label_weight')::float
               FROM foh.index"""
        ).fetchone()
        assert row == ("tag", "product_tag", ["product_id"], 32, 3, "l2", 7, 0.5)

    def test_errors_are_one_line(self, cli: CommandLine) -> None:
        arguments = ("create-index", "products", "--embedding=embedding")
        error = cli(*arguments, "--source=nowhere", code=1).stderr
        assert error.startswith("foh-pg: there is no table 'nowhere' here")
        assert error.count("\n") == 1
        assert cli(*arguments, "--source=product", "-o", "proves=3", code=1).stderr.count("\n") == 1
        assert cli(*arguments, code=2).stdout == ""
        assert "NAME=VALUE" in cli(*arguments, "--source=product", "-o", "probes", code=2).stderr

    def test_drop(self, created: CommandLine) -> None:
        created("drop-index", "products", answer="n\n", code=1)
        created("drop-index", "products", "--yes")
        assert "no index 'products'" in created("drop-index", "products", "--yes", code=1).stderr
        created("drop-index", "products", "--yes", "--if-exists")
        assert created("status", "--json").stdout == "[]\n"

    def test_status(self, created: CommandLine) -> None:
        result = created("status")
        assert "products" in result.stdout
        assert result.stderr == ""
        assert "no index 'other'" in created("status", "other", code=1).stderr

    def test_check(self, created: CommandLine, connection, database: Database) -> None:
        connection.execute("INSERT INTO product VALUES (1, '[1,2,3]'), (2, '[3,2,1]')")
        result = created("check", "products")
        assert (result.stdout, result.stderr) == ("", "index 'products' keeps its promises\n")
        assert json.loads(created("check", "products", "--json").stdout) == []
        connection.execute("DELETE FROM foh.products_stream WHERE key = 2")
        result = created("check", "products", "--json", code=3)
        [violation] = json.loads(result.stdout)
        assert violation["key"] == "2"
        assert "1 violation" in result.stderr
        assert "in no list" in created("check", "products", code=3).stdout


class TestConnection:
    def test_libpqs_environment(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in database.environment().items():
            monkeypatch.setenv(name, value)
        result = CliRunner().invoke(app, ["migrate", "--json"])
        assert json.loads(result.stdout) == {"start": migrations.head(), "end": migrations.head()}

    def test_nobody_there(self) -> None:
        result = CliRunner().invoke(app, ["status", "--dsn=host=/nowhere"])
        assert result.exit_code == 1
        assert re.fullmatch(r"foh-pg: .*/nowhere.*\n", result.stderr)
        assert "--dsn" not in result.stderr

    @pytest.mark.parametrize("command", ["status", "doctor"])
    def test_who_names_no_database_is_told_how(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PGHOST", "/nowhere")
        result = CliRunner().invoke(app, [command])
        assert result.exit_code == 1
        assert re.fullmatch(r"foh-pg: .*/nowhere.*\w\. Name the database with --dsn.*\n", result.stderr)

    def test_version(self) -> None:
        assert CliRunner().invoke(app, ["--version"]).stdout == f"foh-pg {foh_pg.__version__}\n"
