"""docs/rendered/products.sql shows the objects of one index as the server has them, for people to read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.postgres import Database

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rendered" / "products.sql"
HEADER = """\
-- The objects of the index "products" in the server, made by
--     CREATE TABLE product (id bigint PRIMARY KEY, name text, tags text[], embedding vector(3));
--     SELECT foh.create_index('products', 'product', 'embedding', labels => 'tags', bits => 16);
-- from the templates in sql/index/. PostgreSQL 17 or later; pgvector is in schema "extensions".
-- Written by FOH_RENDER=1 pytest tests/integration/test_rendered_index.py; do not change it by hand.
"""
TABLES = "SELECT foh._render(t.body, foh._names(i)) FROM foh.template t, foh.index i WHERE t.name = 'tables'"
FUNCTIONS = """
SELECT pg_get_functiondef(p.oid) FROM pg_proc p
WHERE p.pronamespace = 'foh'::regnamespace AND starts_with(p.proname, 'products_') ORDER BY p.proname
"""
TRIGGERS = "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE t.tgrelid = 'product'::regclass ORDER BY t.tgname"


def test_no_function_has_the_name_of_an_option(database: Database) -> None:
    """Both are placeholders of the templates, and the option would win."""
    query = (
        "SELECT array_agg(o) FROM jsonb_object_keys(foh._default_options()) o WHERE o = ANY (foh._suffixes())"
    )
    assert database.connect(None).execute(query).fetchone() == (None,)


def rendered(database: Database, settings: str = "") -> str:
    owner = database.connect("app_owner")
    owner.execute("SET search_path = public, extensions")
    owner.execute("CREATE TABLE product (id bigint PRIMARY KEY, name text, tags text[], embedding vector(3))")
    owner.execute(settings)
    owner.execute("SELECT foh.create_index('products', 'product', 'embedding', labels => 'tags', bits => 16)")
    [(number,)] = owner.execute("SELECT 'product'::regclass::oid").fetchall()
    superuser = database.connect(None)
    superuser.execute("SET search_path = public, extensions")
    found = [row[0].strip() for query in (TABLES, FUNCTIONS, TRIGGERS) for row in superuser.execute(query)]
    text = "\n\n".join(part if part.endswith(";") else f"{part};" for part in found)
    # Another database counts its tables otherwise.
    return f"{HEADER}\n{text.replace(str(number), '16384')}\n"


def test_the_example_is_what_the_templates_make(database: Database) -> None:
    connection = database.connect("app_owner")
    if connection.info.server_version < 170000:
        pytest.skip("triggers compare columns in another way before PostgreSQL 17")
    made = rendered(database)
    if os.environ.get("FOH_RENDER"):
        PAGE.write_text(made)
        return
    hint = f"{PAGE} is not what the templates make now: look at the difference, then run"
    assert made == PAGE.read_text(), f"{hint} FOH_RENDER=1 pytest {Path(__file__).name}"


def test_settings_of_a_session_do_not_get_into_functions(database: Database) -> None:
    """How numbers are written, names are quoted and strings are read."""
    if database.connect("app_owner").info.server_version < 170000:
        pytest.skip("triggers compare columns in another way before PostgreSQL 17")
    settings = (
        "SET extra_float_digits = -15; SET quote_all_identifiers = on; SET standard_conforming_strings = off"
    )
    assert rendered(database, settings) == PAGE.read_text()
