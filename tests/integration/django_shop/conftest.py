"""The project of tests/django_shop in a database of the test's own, on whatever Django is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import django
import numpy as np
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.postgres import Database, Server, install_pgvector

# Only here: programs that other tests start have settings of their own.
with mock.patch.dict(os.environ, DJANGO_SETTINGS_MODULE="tests.django_shop.settings"):
    django.setup()

from django.core.management import call_command
from django.db import connections, transaction

from tests.django_shop.catalog.models import (
    DIMENSIONS,
    Article,
    Book,
    Brand,
    Film,
    Genre,
    Product,
    Review,
    Topic,
)

ROWS = 60


def vector(seed: int) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).standard_normal(DIMENSIONS)]


def point_at(database: Database, role: str, **options: Any) -> None:
    """Let Django's default database be this one. Its connections, one for each thread, read the settings anew."""
    connections.close_all()
    parts = conninfo_to_dict(database.dsn(role))
    connections.settings["default"].update(
        NAME=database.name,
        USER=str(parts.get("user", "")),
        PASSWORD=str(parts.get("password", "")),
        HOST=str(parts.get("host", "")),
        PORT=str(parts.get("port", "")),
        OPTIONS={"options": "-c search_path=public,extensions", **options},
    )


@pytest.fixture
def empty(new_database: Callable[..., Database]) -> Iterator[Database]:
    """With pgvector and nothing of ours; Django is its owner."""
    database = new_database()
    install_pgvector(database.connect(None))
    point_at(database, "installer")
    yield database
    connections.close_all()


@pytest.fixture(scope="session")
def filled(server: Server) -> Iterator[Database]:
    """Migrated and filled; for tests that only read, and to clone. Schema foh was installed by another role."""
    database = server.create_database(template=server.template)
    point_at(database, "app_owner")
    call_command("migrate", verbosity=0)
    fill()
    connections.close_all()
    yield database
    connections.close_all()
    database.drop()


@pytest.fixture
def migrated(filled: Database, new_database: Callable[..., Database]) -> Iterator[Database]:
    """A database of the test's own with all of it; Django owns the tables."""
    connections.close_all()
    database = new_database(template=filled.name)
    point_at(database, "app_owner")
    yield database
    connections.close_all()


@pytest.fixture
def shop(filled: Database, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Django's connection, in a transaction that is rolled back."""
    point_at(filled, "app_owner", **getattr(request, "param", {}))
    with transaction.atomic():
        yield connections["default"]
        transaction.set_rollback(True)
    connections.close_all()


def fill() -> None:
    brands = Brand.objects.bulk_create([Brand(name="Acme"), Brand(name="O'Hara %s")])
    products = Product.objects.bulk_create(
        Product(
            name=f"product {i}",
            price=i,
            tags=["even" if i % 2 == 0 else "odd"],
            details={"size": i % 5, "color": "red" if i % 3 else "blue"},
            brand=brands[i % 2] if i % 10 else None,
            vector=vector(i),
        )
        for i in range(1, ROWS + 1)
    )
    Review.objects.bulk_create(
        Review(product=product, stars=stars)
        for product in products[:20]
        for stars in range(1, 2 + product.pk % 4)
    )
    for i in range(4):
        Book.objects.create(name=f"book {i}", price=5, tags=["book"], vector=vector(100 + i), isbn=f"978-{i}")
    for i in range(8):
        article = Article.objects.create(slug=f"article {i}", score=i, embedding=vector(200 + i))
        Topic.objects.create(article=article, name="even" if i % 2 == 0 else "odd")
    genres = Genre.objects.bulk_create([Genre(name="noir"), Genre(name="western")])
    for i in range(6):
        film = Film.objects.create(
            id=f"00000000-0000-0000-0000-00000000000{i}",
            maker=brands[i % 2],
            plot=vector(300 + i),
            poster=vector(400 + i)[:4],
        )
        film.genres.add(genres[i % 2])
