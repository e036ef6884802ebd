"""foh-pg search, alter-index, repair and grant, as a person types them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from foh_pg.cli import app
from foh_pg.updater import rebuild
from tests.acceptance.test_cli import CommandLine
from tests.support.postgres import Database
from tests.support.shop import Shop, text, vectors

BASE = vectors(60)
QUERY = text(BASE[7])


def stock(database: Database) -> None:
    shop = Shop(database.connect("app_owner"), options={"centers": 4})
    shop.fill(range(60), BASE, label=[f"row {n}" for n in range(60)], price=[float(n) for n in range(60)])
    rebuild(database.dsn(), "items")


pytestmark = pytest.mark.prepared(by=stock)


@pytest.fixture
def cli(shop: Shop, database: Database) -> CommandLine:
    return CommandLine(database)


def test_columns_named_like_ours(database: Database) -> None:
    shop = Shop(database.connect("app_owner"), key="distance", source="public.named", index="named")
    shop.run("ALTER TABLE {source} ADD score int DEFAULT 9")
    shop.fill(range(10), BASE[:10])
    cli = CommandLine(database)
    found = cli("search", "named", "--vector", QUERY, "-k1", "--columns", "score", "--json").stdout
    [row] = json.loads(found)
    assert list(row) == ["distance", "score", "foh_distance", "foh_score"]
    assert (row["distance"], row["score"]) == (7, 9)


class TestSearch:
    def test_table(self, cli: CommandLine) -> None:
        lines = cli(
            "search", "items", "--vector", QUERY, "-k", "3", "--columns", "label, price"
        ).stdout.splitlines()
        assert lines[0].split() == ["id", "label", "price", "distance", "score"]
        assert lines[1].split() == ["7", "row", "7", "7", "0", lines[1].split()[-1]]
        assert float(lines[1].split()[-1]) < 1e-6
        assert len(lines) == 4

    def test_json(self, cli: CommandLine, shop: Shop) -> None:
        rows = json.loads(cli("search", "items", "--vector", QUERY, "--json", "--columns=label").stdout)
        assert [row["id"] for row in rows] == shop.found(BASE[7], 10)
        assert rows[0]["label"] == "row 7"

    def test_like_leaves_out_the_row(self, cli: CommandLine, shop: Shop) -> None:
        rows = json.loads(cli("search", "items", "--like", "7", "-k5", "--json").stdout)
        assert [row["id"] for row in rows] == shop.found(BASE[7], 6)[1:]
        error = cli("search", "items", "--like", "700", code=1).stderr
        assert error == "foh-pg: public.item has no row with id = '700' that this role can see\n"

    def test_filter_and_params(self, cli: CommandLine) -> None:
        arguments = ("search", "items", "--vector", QUERY, "--json", "--filter")
        rows = json.loads(
            cli(*arguments, "label = params ->> 'label' OR price = (params ->> 'p')::float8",
                "--param", "label=row 9", "--param", "p=11").stdout
        )  # fmt: skip
        assert sorted(row["id"] for row in rows) == [9, 11]
        assert json.loads(cli(*arguments, "false").stdout) == []
        assert "no row matches" in cli("search", "items", "--vector", QUERY, "--filter", "false").stderr
        assert "syntax error" in cli(*arguments, "true) or (true", code=1).stderr

    def test_standard_input(self, cli: CommandLine) -> None:
        rows = json.loads(cli("search", "items", "--vector", "-", "-k1", "--json", answer=QUERY).stdout)
        assert rows[0]["id"] == 7

    def test_explain(self, cli: CommandLine) -> None:
        steps = json.loads(
            cli("search", "items", "--vector", QUERY, "--probes=2", "--explain", "--json").stdout
        )
        assert {"step": "centers probed", "value": "2"} in steps
        assert "fallback" in cli("search", "items", "--like", "7", "--explain").stdout
        assert (
            "nearest vectors only" in cli("search", "items", "--like", "7", "--labels=1", "--explain").stdout
        )

    def test_the_dial(self, cli: CommandLine, shop: Shop) -> None:
        rows = json.loads(cli("search", "items", "--vector", QUERY, "--labels", "0", "--json").stdout)
        assert [row["id"] for row in rows] == shop.found(BASE[7], 10, labels=0)
        rows = json.loads(cli("search", "items", "--like", "7", "--labels", "1", "--json").stdout)
        assert 7 not in [row["id"] for row in rows]

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            ((), 2, "either --vector or --like"),
            (("--vector", "[1]", "--like", "1"), 2, "either --vector or --like"),
            (("--vector", "1, 2"), 2, "not a list of numbers"),
            (("--vector", "[[1]]"), 2, "not a list of numbers"),
            (("--vector", "[1, 2]"), 1, "foh-pg: index 'items' has 8 dimensions, the query has 2"),
            (("--vector", QUERY, "-k", "0"), 1, "k is 0, it must be 1 or more"),
            (
                ("--vector", QUERY, "--labels", "2"),
                1,
                "labels is 2, it must be between 0 (nearest vectors only)",
            ),
            (("--vector", QUERY, "--labels", "2", "--explain"), 1, "labels is 2, it must be between 0"),
            (("--vector", QUERY, "--param", "a=1"), 1, "there is no filter"),
            (("--vector", QUERY, "--param", "a"), 2, "NAME=VALUE"),
            (("--vector", QUERY, "--columns", "nosuch"), 1, 'column "nosuch" does not exist'),
        ],
    )
    def test_errors_teach(
        self, cli: CommandLine, arguments: tuple[str, ...], code: int, message: str
    ) -> None:
        result = cli("search", "items", *arguments, code=code)
        assert result.stdout == ""
        assert message in " ".join(result.stderr.replace("│", " ").split())

    def test_unknown_index(self, cli: CommandLine) -> None:
        assert "no index 'other'" in cli("search", "other", "--vector", QUERY, code=1).stderr

    def test_who_may_not(self, cli: CommandLine, shop: Shop, database: Database) -> None:
        reader = CommandLine(database, "app_reader")
        error = reader("search", "items", "--vector", QUERY, code=1).stderr
        assert "foh-pg grant items --reader app_reader" in error
        cli("grant", "items", "--reader=app_reader")
        shop.run("GRANT SELECT ON {source} TO app_reader")
        assert json.loads(reader("search", "items", "--vector", QUERY, "--json").stdout)[0]["id"] == 7
        assert reader("search", "items", "--like=7", "--columns=label").stdout
        cli("grant", "items", "--reader=app_reader", "--revoke")
        reader("search", "items", "--vector", QUERY, code=1)


def test_grant(cli: CommandLine, database: Database) -> None:
    result = cli("grant", "--reader=app_reader")
    assert "row-level security hides" in result.stdout
    assert "GRANT SELECT (id, embedding) ON public.item TO app_reader;" in result.stdout
    assert "run the statements above" in result.stderr
    rows = json.loads(cli("grant", "items", "--reader=app_reader", "--json").stdout)
    assert [row["kind"] for row in rows] == ["reader"]
    assert "--reader" in cli("grant", "items", code=2).stderr
    assert "no role" in cli("grant", "items", "--reader=nobody_here", code=1).stderr
    assert "build, update, roll back" in cli("grant", "--updater=app_writer").stdout
    assert "leave out the name 'items'" in cli("grant", "items", "--updater=app_writer", code=1).stderr


def test_alter_and_refresh(cli: CommandLine, shop: Shop) -> None:
    cli("alter-index", "items", "-o", "probes=2", "--option", "shortlist=0")
    options = json.loads(cli("status", "items", "--json").stdout)[0]["options"]
    assert (options["probes"], options["shortlist"]) == (2, 0)
    assert "Known options" in cli("alter-index", "items", "-o", "proves=2", code=1).stderr
    assert cli("alter-index", "items", code=2).stdout == ""
    shop.run("ALTER TABLE {source} RENAME COLUMN embedding TO emb")
    assert "foh.refresh('items')" in cli("search", "items", "--vector", QUERY, code=1).stderr
    assert "reads emb of public.item" in cli("alter-index", "items", "--refresh").stderr
    assert json.loads(cli("search", "items", "--vector", QUERY, "-k1", "--json").stdout)[0]["id"] == 7
    assert "no index 'other'" in cli("alter-index", "other", "--refresh", code=1).stderr


def test_repair(cli: CommandLine, shop: Shop) -> None:
    assert "has all that its table has" in cli("check", "items", "--repair").stderr
    shop.run("ALTER TABLE {source} DISABLE TRIGGER USER")
    shop.fill([900], [BASE[7]])
    shop.run("DELETE FROM {source} WHERE {key} = 3")
    shop.run("ALTER TABLE {source} ENABLE TRIGGER USER")
    result = cli("check", "items", "--repair", "--json")
    assert json.loads(result.stdout) == {"missing": 1, "gone": 1, "changed": 0}
    assert "foh-pg update items" in result.stderr
    assert 900 in shop.found(BASE[7], 2)


def test_help_names_every_option() -> None:
    shown = CliRunner().invoke(app, ["search", "--help"]).stdout
    assert all(
        option in shown for option in ("--vector", "--like", "--labels", "--filter", "--explain", "--columns")
    )
