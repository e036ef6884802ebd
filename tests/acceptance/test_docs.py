"""The README and the docs say what is there: commands, options, files, links. test_examples.py runs them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psycopg
import pytest

from foh_pg.cli.commands import SUMMARIES, load
from tests.support.postgres import Database

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def shop(database: Database) -> psycopg.Connection:
    connection = database.connect("app_owner")
    connection.execute("SET search_path = public, extensions")
    return connection


def test_the_table_of_options_is_that_of_the_sql(shop: psycopg.Connection) -> None:
    rows = shop.execute(
        "SELECT name, standard #>> '{}', takes_effect, meaning FROM foh._options()"
    ).fetchall()
    table = "".join(
        f"| `{name}` | {'null' if standard is None else standard} | {takes_effect} | {meaning} |\n"
        for name, standard, takes_effect, meaning in rows
    )
    page = ROOT / "docs" / "reference" / "options.md"
    present = re.search(r"(?<=\|---\|---\|---\|---\|\n)(\|.*\n)+", page.read_text())
    assert present is not None
    if os.environ.get("FOH_RENDER"):
        page.write_text(page.read_text().replace(present[0], table))
        return
    assert present[0] == table, "run FOH_RENDER=1 pytest tests/acceptance/test_docs.py -k table_of_options"


def test_what_a_search_takes_unless_told_is_documented(shop: psycopg.Connection) -> None:
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, embedding vector(3))")
    shop.execute("SELECT foh.create_index('t', 't', 'embedding')")
    ranking = shop.execute("SELECT foh._ranking()").fetchone()[0]
    rows = (ROOT / "docs" / "reference" / "options.md").read_text()
    [shown] = re.findall(r"^\| `shortlist` .*else (\d+) \|$", rows, flags=re.MULTILINE)
    assert int(shown) == ranking["shortlist_default"]
    search = (ROOT / "docs" / "explained" / "search.md").read_text()
    assert f"two times as many and at least {ranking['looked']}." in search
    assert ranking["looked_times"] == 2


def test_readme_and_docs_stay_short() -> None:
    """Five minutes for the README; who adds a page to the docs asks which other one it replaces."""

    def words(*pages: Path) -> int:
        return sum(bool(re.search(r"\w", word)) for page in pages for word in page.read_text().split())

    assert words(ROOT / "README.md") <= 700
    assert words(*(ROOT / "docs").rglob("*.md")) <= 25000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_links_exist(page: Path) -> None:
    text = page.read_text()
    for name, rest in re.findall(r"foh-pg (?!foh-pg)([a-z][a-z-]*)((?: +[^\s`#;,)]+)*)", text):
        assert name in SUMMARIES, f"foh-pg {name}"
        command = load(name)
        for sub in rest.split()[:1]:
            command = getattr(command, "commands", {}).get(sub, command)
        known = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        given = set(re.findall(r"(?<=\s)(--[a-z-]+|-[a-z])\b", rest))
        assert given <= known | {"--help"}, f"foh-pg {name} {given - known}"
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (page.parent / target).exists(), target


def test_the_index_links_every_page() -> None:
    page = ROOT / "docs" / "index.md"
    linked = {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())}
    assert set(PAGES) - {page} <= linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """Paths in backquotes: a page that cites what is not in the repository helps nobody."""
    folders = "foh_pg|sql|tests|docs|migrations|lab|tools"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text()):
        assert (ROOT / name).exists(), name
    for module in re.findall(r"python -m (foh_pg[\w.]+)", page.read_text()):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module
    for folder, name in re.findall(r"python -m lab (study )?(\w+)", page.read_text()):
        assert (ROOT / "lab" / ("studies" if folder else "commands") / f"{name}.py").exists(), name
