from __future__ import annotations

import re
from pathlib import Path

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
    assert body in template(1, files.Piece("function", "f", "", ("reader",), body))


@pytest.mark.parametrize("name", files.sql_files(""))
def test_sql_files_survive_alembics_output(name: str) -> None:
    text = files.sql(name)
    assert "\t" not in text, "Alembic turns tabs into spaces when it writes SQL"
    assert "\r" not in text


class TestPieces:
    """What stands above a template says what it is, and nothing else does."""

    def write(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
        (tmp_path / "x.sql").write_text(text)
        monkeypatch.setattr(files, "folder", lambda _: tmp_path)
        return "x.sql"

    def test_reach_from_one_head_to_the_next(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = (
            "-- Of the file.\n\n-- foh: function f, if distributed, called by readers and updaters\n"
            "-- Why.\nSELECT 1;\n\n-- foh: fragment g\n    x\n"
        )
        name = self.write(tmp_path, monkeypatch, text)
        assert files.pieces(name) == [
            ("function", "f", "distributed", ("reader", "updater"), "-- Why.\nSELECT 1;"),
            ("fragment", "g", "", (), "x"),
        ]

    @pytest.mark.parametrize(
        "head", ["function", "function F", "functoin f", "function f, called by nobody", "table t, if"]
    )
    def test_a_head_that_says_nothing_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
    ) -> None:
        name = self.write(tmp_path, monkeypatch, f"-- foh: {head}\nSELECT 1;")
        with pytest.raises(ValueError, match=f"sql/x.sql: '-- foh: {head}' does not say"):
            files.pieces(name)

    @pytest.mark.parametrize("name", files.sql_files("index"))
    def test_every_object_of_an_index_has_a_head(self, name: str) -> None:
        """A function below another one's head would be made, but nobody could call it or would drop it."""
        for piece in files.pieces(name):
            made = re.findall(
                r"^CREATE (?:OR REPLACE )?(?:TABLE|TYPE|FUNCTION) \{(\w+)\}", piece.body, re.MULTILINE
            )
            if piece.kind in ("table", "type", "function", "node"):
                assert made in (["self"], [piece.name])
            elif piece.kind == "fragment":
                assert made == []


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
    assert len(templates) > 5
    for name in templates:
        for line in files.sql(name).splitlines():
            code, dashes, comment = line.partition("--")
            assert not dashes or not re.search(r"\{[a-z_0-9]+\}", comment), (name, line)
            assert not (dashes and code.strip()), (name, line)
