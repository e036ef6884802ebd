from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from foh_pg.schema import files, migrations
from foh_pg.schema.script import literal, statement, template, unused_tags

sql_like = st.text(st.sampled_from("ab1 :%$'\"\\[]=(){}\n@é"), max_size=40)


@given(sql_like)
def test_sqlalchemy_passes_the_text_on_unchanged(text: str) -> None:
    assert str(literal(text).compile(dialect=PGDialect_psycopg(paramstyle="named"))) == text


@given(sql_like, st.integers(0, 3))
def test_dollar_quotes_do_not_occur_in_the_text(text: str, number: int) -> None:
    body = text + "".join(f"$foh_do{i}$ $foh_file{i}$" for i in range(number))
    outer, inner = unused_tags(body)
    assert outer != inner
    assert outer not in body
    assert inner not in body


def test_a_file_stands_between_its_quotes_as_it_is() -> None:
    body = "CREATE FUNCTION f() AS $$ SELECT '%s :x \\ @vector@' $$"
    assert body in statement("functions/f.sql", body)
    assert body in template("f", body)


@pytest.mark.parametrize("name", files.sql_files(""))
def test_sql_files_survive_alembics_output(name: str) -> None:
    text = files.sql(name)
    assert "\t" not in text, "Alembic turns tabs into spaces when it writes SQL"
    assert "\r" not in text


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="'nonsense' of foh_pg is missing"):
        files.folder("nonsense")


@pytest.mark.parametrize(
    ("start", "to", "down"),
    [
        ("base", "head", False),
        ("head", "base", True),
        ("0001", "0001", False),
    ],
)
def test_direction(start: str, to: str, down: bool) -> None:
    assert migrations.is_downgrade(migrations.resolve(start), to) is down


def test_there_is_one_head() -> None:
    assert migrations._scripts().get_heads() == [migrations.head()]


def test_no_template_fills_a_comment() -> None:
    """A name with a line break in it would end the comment, and the rest of the name would be run."""
    templates = files.sql_files("index")
    assert len(templates) > 20
    for name in templates:
        for line in files.sql(name).splitlines():
            code, dashes, comment = line.partition("--")
            assert not dashes or not re.search(r"\{[a-z_0-9]+\}", comment), (name, line)
            assert not (dashes and code.strip()), (name, line)
