"""Primary keys of several columns, which Django has since 5.2."""

from __future__ import annotations

from typing import Any

import django
import pytest
from django.db import connection, models
from django.test.utils import isolate_apps
from pgvector.django import VectorField

from foh_pg.django import FohIndex, FohManager
from tests.integration.django_shop.conftest import DIMENSIONS, vector
from tests.support.postgres import Database

pytestmark = pytest.mark.skipif(django.VERSION < (5, 2), reason="Django 5.2 has keys of several columns")


@pytest.fixture
def offer(shop: Database) -> Any:
    with isolate_apps("tests.django_shop.catalog"):

        class Offer(models.Model):
            # Fields in another order than those of the key, and a column that is named like one of ours.
            score = models.IntegerField()
            tenant = models.IntegerField(db_column="Tenant Id")
            pk = models.CompositePrimaryKey("tenant", "score")
            embedding = VectorField(dimensions=DIMENSIONS)
            price = models.IntegerField()
            objects = FohManager()

            class Meta:
                app_label = "catalog"
                indexes = [FohIndex("embedding", name="offers", exact_rows=0)]  # noqa: RUF012

        with connection.schema_editor() as editor:
            editor.create_model(Offer)
        for n in range(40):
            Offer.objects.create(tenant=n % 4, score=n // 4, embedding=vector(n), price=n)
        yield Offer


def test_instances_are_found(offer: Any) -> None:
    found = offer.objects.nearest(vector(7), k=3, score="rank", distance="far")
    first, *_ = found
    assert first.pk == (3, 1)
    assert first.far == pytest.approx(0, abs=1e-6)
    assert len({instance.pk for instance in found}) == 3


def test_conditions_are_part_of_the_search(offer: Any) -> None:
    found = offer.objects.filter(tenant=2, price__gte=10).nearest(vector(7), k=5, score="rank")
    assert len(found) == 5
    assert {instance.tenant for instance in found} == {2}


def test_similar_ones(offer: Any) -> None:
    instance = offer.objects.get(pk=(1, 2))
    for given in (instance, (1, 2)):
        found = offer.objects.similar_to(given, k=5, score="rank")
        assert len(found) >= 4
        assert (1, 2) not in {other.pk for other in found}
