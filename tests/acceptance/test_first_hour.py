"""Mistakes of a newcomer: each command says in one line what is wrong, and what helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.acceptance.test_cli import CommandLine
from tests.support.postgres import Database

ROWS = 300


def prepare(database: Database) -> None:
    connection = database.connect()
    connection.execute(
        "CREATE TABLE product (id int PRIMARY KEY, embedding extensions.vector(4), label text, code text)"
    )
    connection.execute(
        """
        INSERT INTO product
        SELECT i, ARRAY[sin(i), cos(i), sin(i * 3), 1]::real[]::extensions.vector, 'l' || i %% 3, md5(i::text)
        FROM generate_series(1, %s) i
        """,
        [ROWS],
    )
    connection.execute("SELECT foh.create_index('products', 'product', 'embedding', 'label', bits => 16)")


@pytest.fixture
def shop(copy_of: Callable[..., Database]) -> Database:
    return copy_of(prepare)


@pytest.fixture
def cli(shop: Database) -> CommandLine:
    return CommandLine(shop)


@pytest.fixture
def owner(shop: Database) -> psycopg.Connection[Any]:
    return shop.connect()


def test_a_table_that_is_not_there(cli: CommandLine) -> None:
    said = "there is no table 'produkt' here: give it as in SQL, with its schema if need be"
    for command in (
        ["advise", "produkt", "--embedding=embedding"],
        ["create-index", "other", "--source=produkt", "--embedding=embedding"],
        ["create-index", "other", "--source=product", "--embedding=embedding", "--labels=label",
         "--labels-from=produkt", "--labels-key=id"],
    ):  # fmt: skip
        assert said in cli(*command, code=1).stderr


def test_an_index_that_is_not_there(cli: CommandLine) -> None:
    for command in ("search prodcts --like 1", "labels product --like 1", "status prodcts", "build prodcts"):
        assert "existing are products\n" in cli(*command.split(), code=1).stderr, command
    said = cli("drop-index", "prodcts", answer="y\n", code=1).stderr
    assert "there is no index 'prodcts'" in said
    assert "Drop index" not in said


def test_a_key_of_another_type(cli: CommandLine) -> None:
    for command in ("search products --like socks", "labels products --missing --after socks"):
        said = cli(*command.split(), code=2).stderr
        assert "'socks' is no key of public.product, whose id is of type integer" in said


def test_a_table_whose_schema_was_left_out(cli: CommandLine, shop: Database) -> None:
    superuser = shop.connect(None)
    superuser.execute("CREATE SCHEMA app AUTHORIZATION app_owner")
    superuser.execute("CREATE TABLE app.ware (id int PRIMARY KEY, embedding extensions.vector(4))")
    for command in ("advise ware", "create-index wares --source ware"):
        error = cli(*command.split(), "--embedding=embedding", code=1).stderr
        assert "with its schema if need be; there is app.ware" in error


def test_labels_that_are_all_different(cli: CommandLine) -> None:
    shown = cli("advise", "product", "--embedding=embedding", "--labels=code")
    assert shown.stdout.splitlines()[0] == "Use plain pgvector."
    assert f"{ROWS} different labels on {ROWS} rows" in shown.stdout
    assert "Take a column whose values rows share" in shown.stdout
    # Nothing was measured, so that there are no figures to show.
    assert "--verbose" not in shown.stderr


def test_no_row_has_an_embedding(cli: CommandLine, owner: psycopg.Connection[Any]) -> None:
    owner.execute("UPDATE product SET embedding = NULL")
    assert "no row of public.product has an embedding yet" in cli("build", "products").stderr
    error = cli("evaluate", "products", code=1).stderr
    assert "rows that never train (option held_out) there is none" in error


@pytest.mark.parametrize("change", ["RENAME COLUMN embedding TO vec", "DROP COLUMN embedding"])
def test_the_column_of_the_embedding_has_changed(
    cli: CommandLine, owner: psycopg.Connection[Any], change: str
) -> None:
    """Every command says what helps, and that is true."""
    cli("build", "products")
    owner.execute(f"ALTER TABLE product {change}".encode())
    gone = "DROP" in change
    cure = "run SELECT foh.refresh('products'" + (
        ", embedding => '...') with the column that took its place" if gone else ")"
    )
    for command in (
        "search products --like=1",
        "labels products --like=1",
        "labels products --missing",
        "update products",
        "evaluate products",
    ):
        assert cure in cli(*command.split(), code=1).stderr
    assert cure in cli("check", "products", code=3).stdout
    if gone:
        owner.execute("ALTER TABLE product ADD COLUMN other extensions.vector(4) DEFAULT '[1, 2, 3, 4]'")
        assert "--embedding COLUMN with the column that took" in cli("doctor", code=5).stdout
        cli("alter-index", "products", "--embedding=other")
    else:
        assert "foh-pg alter-index products --refresh" in cli("doctor", code=5).stdout
        cli("alter-index", "products", "--refresh")
    assert cli("search", "products", "--like=1", "-k1").stdout


def test_the_embedding_has_other_dimensions(cli: CommandLine, owner: psycopg.Connection[Any]) -> None:
    """A query of the old dimensions and one of the new ones are told the same cure, by SQL and by every command."""
    cli("build", "products")
    owner.execute(
        """ALTER TABLE product ALTER COLUMN embedding TYPE extensions.vector(2)
           USING extensions.subvector(embedding, 1, 2)::extensions.vector(2)"""
    )
    owner.execute("UPDATE product SET label = NULL WHERE id = 7")
    cure = "create another index on the table as it is now and build it, then run SELECT foh.drop_index('products')"
    for command in (
        "search products --like=1",
        "search products --like=1 --explain",
        "search products --vector=[1,2]",
        "search products --vector=[1,2,3,4]",
        "labels products --like=1",
        "labels products --missing",
        "update products",
    ):
        assert cure in cli(*command.split(), code=1).stderr, command
    for called in ("search('[1, 2]')", "candidates('[1, 2]')", "explain('[1, 2]')", "labels('[1, 2]')"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
            owner.execute(f"SELECT * FROM foh.products_{called}".encode())
        assert cure in str(refused.value.diag.message_hint)


def test_a_column_beside_the_embedding_has_changed(cli: CommandLine, owner: psycopg.Connection[Any]) -> None:
    """Searches go on that do not need the column; what needs it says what helps."""
    owner.execute("SELECT foh.alter_index('products', include => '{code}')")
    cli("build", "products")
    match = '--match={"code": {"not": "x"}}'
    owner.execute("ALTER TABLE product RENAME COLUMN code TO hash")
    cure = "run SELECT foh.refresh('products')"
    assert cli("search", "products", "--like=1", "-k1").stdout
    assert cli("labels", "products", "--like=1", "-k1").stdout
    assert cure in cli("search", "products", "--like=1", match, code=1).stderr
    assert cure in cli("search", "products", "--like=1", match, "--explain", code=1).stderr
    cli("alter-index", "products", "--refresh")
    match = match.replace("code", "hash")
    assert cli("search", "products", "--like=1", match, "-k1").stdout
    owner.execute("ALTER TABLE product RENAME COLUMN label TO kind")
    assert cli("search", "products", "--like=1", "-k1").stdout
    assert cure in cli("search", "products", "--like=1", match, code=1).stderr
    for asked in ("--like=1", "--vector=[1,2,3,4]", "--missing"):
        assert cure in cli("labels", "products", asked, code=1).stderr
    cli("alter-index", "products", "--refresh")
    assert cli("labels", "products", "--like=1", "-k1").stdout


def test_a_filter_that_is_no_condition(cli: CommandLine) -> None:
    error = cli("search", "products", "--like=1", "--filter=id >", code=1).stderr
    assert "'id >' is no condition of SQL: syntax error" in error
    error = cli("search", "products", "--like=1", "--filter=code = 'x", code=1).stderr
    assert "boolean" not in error
    assert (
        'column "nope" does not exist'
        in cli("search", "products", "--like=1", "--filter=nope = 1", code=1).stderr
    )
    assert "k is 0, it must be 1 or more" in cli("search", "products", "--like=1", "-k0", code=1).stderr


def test_explain_says_what_becomes_of_a_filter(cli: CommandLine) -> None:
    plain = cli("search", "products", "--like=1", "--explain").stdout
    filtered = cli("search", "products", "--like=1", "--explain", "--filter=id > 3").stdout
    assert "condition" not in plain
    assert "of the rows pass" in filtered


def test_a_right_on_a_table_that_was_dropped(cli: CommandLine, owner: psycopg.Connection[Any]) -> None:
    owner.execute("DROP TABLE product")
    error = cli("grant", "products", "--reader=pg_monitor", code=1).stderr
    assert "SELECT foh.drop_index('products') removes what is left of the index" in error
    cli("drop-index", "products", "--yes")


def test_what_is_not_shown_is_not_explained(cli: CommandLine, owner: psycopg.Connection[Any]) -> None:
    owner.execute(
        "SELECT foh.create_index('plain', 'product', 'embedding', options => '{\"held_out\": 0.2}')"
    )
    cli("build", "plain")
    shown = cli("evaluate", "plain").stdout
    assert "recall@k is the share" in shown
    assert "P@k" not in shown
    assert "both@k" not in shown
