"""Whoever sets search_path, or makes temporary tables named like ours, changes nothing in what a search does."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.postgres import Database
from tests.support.shop import Shop, text, vectors
from tests.support.traps import set_traps

QUERY = vectors(1, seed=5)[0]


@pytest.fixture
def evil(shop: Shop, superuser: psycopg.Connection) -> psycopg.Connection:
    set_traps(superuser)
    return superuser


FORMS = (
    "SELECT * FROM {search}(%(query)s, 20)",
    "SELECT * FROM {search}(%(query)s, 20, shortlist => 0)",
    "SELECT * FROM {search}(%(query)s, 20, filter => 's.price OPERATOR(pg_catalog.<) 100')",
    "SELECT * FROM {search}(%(query)s, 20, filter => 's.price OPERATOR(pg_catalog.<) 3')",
    "SELECT * FROM {search}(%(query)s, 500)",
    "SELECT * FROM {search}(%(query)s, 20, recall => 1)",
    "SELECT * FROM {search}(%(query)s, 20, max_distance => 0.7)",
    "SELECT * FROM {search}(%(query)s, 20, max_distance => 0.7, filter => 's.price OPERATOR(pg_catalog.<) 100')",
    "SELECT * FROM {candidates}(%(query)s)",
    "SELECT * FROM {explain}(%(query)s)",
)


@pytest.mark.parametrize("path", ["evil, pg_catalog, extensions, public", "evil", "pg_catalog", "'', evil"])
def test_hostile_search_path(shop: Shop, evil: psycopg.Connection, database: Database, path: str) -> None:
    shop.run("UPDATE {source} SET price = {key}")
    values = {"query": text(QUERY)}
    expected = {
        state: [in_state(shop, state).run(form, values).fetchall() for form in FORMS]
        for state in ("ready", "building")
    }
    # A new session: its plans and its functions are compiled under the hostile path.
    victim = shop.seen_by(database.connect("app_owner"))
    victim.execute_text(f"SET search_path = {path}")
    for state, answers in expected.items():
        in_state(shop, state)
        assert [victim.run(form, values).fetchall() for form in FORMS] == answers
    victim.execute_text(
        "INSERT INTO public.item (id, embedding) SELECT 900, embedding FROM public.item WHERE id OPERATOR(pg_catalog.=) 7"
    )
    assert 900 in shop.found(vectors(200)[7], 2)


def test_types_of_embeddings_under_a_hostile_path(new_shop, evil, database: Database) -> None:
    for number, embedding_type in enumerate(["real[]", "double precision[]", "extensions.halfvec(8)"]):
        shop = new_shop(
            index=f"i{number}", source=f"public.t{number}", embedding_type=embedding_type, distance="l2"
        )
        rows = [text(row) for row in vectors(50)]
        shop.fill(
            range(50),
            [row.translate(str.maketrans("[]", "{}")) if "[]" in embedding_type else row for row in rows],
        )
        shop.install()
        before = shop.search(QUERY, 50)
        victim = shop.seen_by(database.connect("app_owner"))
        victim.execute_text("SET search_path = evil, pg_catalog, public")
        assert victim.search(QUERY, 50) == before


@pytest.mark.parametrize("key_type", ["text", "uuid", "date"])
def test_types_of_keys_under_a_hostile_path(new_shop, evil, database: Database, key_type: str) -> None:
    form = {"text": "{}", "uuid": "00000000-0000-0000-0000-0000000000{}", "date": "2026-01-{}"}[key_type]
    shop = new_shop(index="i", source="public.t", key_type=key_type)
    shop.fill([form.format(number) for number in range(10, 30)], vectors(20))
    expected = [shop.search(QUERY, 20), shop.search(QUERY, 20, filter="true")]
    victim = shop.seen_by(database.connect("app_owner"))
    victim.execute_text("SET search_path = evil, pg_catalog, public")
    assert [victim.search(QUERY, 20), victim.search(QUERY, 20, filter="true")] == expected


def in_state(shop: Shop, state: str) -> Shop:
    shop.run("UPDATE foh.index SET status = %s", [state])
    return shop


def test_temporary_objects_named_like_ours(shop: Shop, database: Database) -> None:
    expected = shop.search(QUERY, 20)
    victim = shop.seen_by(database.connect("app_owner"))
    for name in (
        "item",
        "items_list",
        "items_center",
        "items_stream",
        "items_projection",
        "items_area",
        "items_quantizer",
        "index",
        "model",
        "label",
    ):
        victim.execute_text(
            f"CREATE TEMP TABLE {name} (id int, key int, center int, ids int[], geometry bit(128)[])"
        )
    victim.execute_text(
        "CREATE FUNCTION pg_temp.vector_dims(extensions.vector) RETURNS int LANGUAGE sql AS 'SELECT 1/0'"
    )
    victim.execute_text("SET search_path = pg_temp, public, foh")
    assert victim.search(QUERY, 20) == expected
    victim.execute_text(
        "INSERT INTO public.item (id, embedding) SELECT 900, embedding FROM public.item WHERE id = 7"
    )
    assert victim.found(vectors(200)[7], 2, shortlist=0) in ([7, 900], [900, 7])
