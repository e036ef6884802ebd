"""What the templates make of an index depends on the index alone."""

from __future__ import annotations

import pytest
from psycopg.types.json import Json

from tests.support.postgres import Database

FUNCTIONS = """
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid) FROM pg_proc p
WHERE p.pronamespace = 'foh'::regnamespace AND starts_with(p.proname, 'products_') ORDER BY p.proname
"""
TRIGGERS = "SELECT t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE t.tgrelid = 'product'::regclass ORDER BY t.tgname"
SETTINGS = (
    "SET extra_float_digits = -15; SET quote_all_identifiers = on; SET standard_conforming_strings = off"
)


def test_no_function_has_the_name_of_an_option(database: Database) -> None:
    """Both are placeholders of the templates, and the option would win."""
    query = """SELECT array_agg(o) FROM jsonb_object_keys(foh._default_options()) o
               WHERE o IN (SELECT t.name FROM foh.template t)"""
    assert database.connect("app_owner").execute(query).fetchone() == (None,)


def rendered(database: Database, settings: str = "") -> list[tuple[str, str]]:
    owner = database.connect("app_owner")
    owner.execute("SET search_path = public, extensions")
    owner.execute(settings)
    # The number of an index is part of its functions.
    owner.execute("ALTER TABLE foh.index ALTER COLUMN id RESTART WITH 1")
    owner.execute("SELECT foh.create_index('products', 'product', 'embedding', labels => 'tags', bits => 16)")
    reader = database.connect(None)
    made = [row for query in (FUNCTIONS, TRIGGERS) for row in reader.execute(query).fetchall()]
    owner.execute("SELECT foh.drop_index('products')")
    return made


def test_settings_of_a_session_do_not_get_into_functions(database: Database) -> None:
    """How numbers are written, names are quoted and strings are read."""
    owner = database.connect("app_owner")
    owner.execute("CREATE TABLE product (id bigint PRIMARY KEY, tags text[], embedding extensions.vector(3))")
    plain = rendered(database)
    assert len(plain) > 25
    assert rendered(database, SETTINGS) == plain


@pytest.mark.parametrize("key", ["id", "tenant, id", "day, id, tenant"])
def test_functions_for_distributed_tables_can_be_made(database: Database, key: str) -> None:
    """Where there is no Citus to try them: every placeholder is known, and PL/pgSQL understands the text."""
    owner = database.connect("app_owner")
    owner.execute(
        "CREATE TABLE product (tenant text, id bigint, day date, tags text[], embedding extensions.vector(3),"
        f" PRIMARY KEY ({key}))".encode()
    )
    owner.execute("SELECT foh.create_index('products', 'product', 'embedding', labels => 'tags', bits => 16)")
    owner.execute(
        """CREATE OR REPLACE FUNCTION foh._citus_kind(relation oid) RETURNS text LANGUAGE sql STABLE
           AS $$ SELECT 'distributed' WHERE relation = 'public.product'::regclass $$"""
    )
    superuser = database.connect(None)
    [(names,)] = owner.execute(
        "SELECT foh._names(i) || foh._matching_names(i, false) FROM foh.index i"
    ).fetchall()
    templates = owner.execute(
        """SELECT t.kind, t.name, t.body FROM foh.index i, foh._templates(i) t
           WHERE t.kind = 'fragment' OR t.condition = 'distributed' AND t.kind IN ('function', 'node')
           ORDER BY t.kind <> 'fragment', t.at"""
    ).fetchall()
    assert {name for _, name, _ in templates} >= {"search", "exact", "read", "note", "pull"}
    for kind, name, body in templates:
        if name in names and kind == "fragment":
            # Empty where nothing is matched.
            continue
        [(text,)] = owner.execute(
            "SELECT foh._render(%s::text, %s::jsonb)", [body, Json({**names, "self": names.get(name)})]
        ).fetchall()
        if kind == "fragment":
            names[name] = text
        else:
            # Only a superuser may set a parameter of Citus where Citus is not known.
            superuser.execute(text)
        if kind == "node":
            # The nodes know nothing of schema foh, in which the type of a key of several columns is.
            assert "foh.products" not in text
