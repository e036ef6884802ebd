"""Fields that an index includes: conditions on them are told as data, all others as a filter."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, models
from django.db.models import Q
from django.test.utils import CaptureQueriesContext, isolate_apps
from pgvector.django import VectorField

from foh_pg.django import FohIndex, FohManager
from foh_pg.django.definition import included
from tests.integration.django_shop.conftest import DIMENSIONS, vector
from tests.support.postgres import Database


@pytest.fixture
def offer(shop: Database) -> Any:
    with isolate_apps("tests.django_shop.catalog"):

        class Offer(models.Model):
            embedding = VectorField(dimensions=DIMENSIONS)
            price = models.IntegerField(null=True, db_column="the price")
            status = models.TextField()
            other = models.IntegerField()
            objects = FohManager()

            class Meta:
                app_label = "catalog"
                indexes = [FohIndex("embedding", name="offers", include=["price", "status"], exact_rows=0)]  # noqa: RUF012

        with connection.schema_editor() as editor:
            editor.create_model(Offer)
        for n in range(40):
            Offer.objects.create(
                embedding=vector(n), price=n % 7 or None, status=["new", "it's used"][n % 2], other=n % 3
            )
        yield Offer


@pytest.mark.parametrize(
    ("condition", "data", "text"),
    [
        (Q(price__lt=3), True, False),
        (Q(price__gte=2, price__lte=4, status="it's used"), True, False),
        (Q(status__in=["new", "none"]), True, False),
        (Q(price=3, other=1), True, True),
        (Q(other=1), False, True),
        (Q(price__isnull=True), False, True),
        (Q(price__lt=3) | Q(status="new"), False, True),
        (~Q(price__lt=3), False, True),
    ],
)
def test_conditions(offer: Any, condition: Q, data: bool, text: bool) -> None:
    with CaptureQueriesContext(connection) as captured:
        found = {instance.pk for instance in offer.objects.filter(condition).nearest(vector(7), k=40)}
    assert found == set(offer.objects.filter(condition).values_list("pk", flat=True))
    [statement] = [query["sql"] for query in captured.captured_queries if "offers_search" in query["sql"]]
    assert ("match => " in statement) == data
    assert ("filter => " in statement) == text


def test_migrations_write_it(offer: Any) -> None:
    [index] = offer._meta.indexes
    _, _, arguments = index.deconstruct()
    assert tuple(arguments["include"]) == ("price", "status")
    assert included(index, offer) == ["the price", "status"]
