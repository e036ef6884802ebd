"""System checks of models."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import models
from django.test.utils import isolate_apps
from pgvector.django import VectorField

from foh_pg.django import FohIndex
from foh_pg.django.checks import _check_index, check_models


def ids(messages: list[Any]) -> list[str]:
    return [message.id.removeprefix("foh_pg.") for message in messages]


class TestModels:
    def test_the_sample_project_is_well(self) -> None:
        assert check_models() == []

    @isolate_apps("tests.django_shop.catalog")
    @pytest.mark.parametrize(
        ("index", "identifier", "message"),
        [
            (FohIndex("nothing", name="x"), "E001", "has no field 'nothing' (embedding); it has thing, id, text, vector"),
            (FohIndex("vector", labels="nothing", name="x"), "E001", "no field 'nothing' (labels)"),
            (FohIndex("vector", labels="friends__text", name="x"), "E001", "labels='friends' takes the rows themselves"),
            (FohIndex("vector", labels="other__text", name="x"), "E001", "leads through 'other'"),
            (FohIndex("text", name="x"), "E002", "field 'text' is a TextField"),
            (FohIndex("free", name="x"), "W003", "says how many dimensions"),
        ],
        ids=["embedding", "labels", "many to many", "foreign key", "type", "dimensions"],
    )  # fmt: skip
    def test_what_cannot_be_indexed(self, index: FohIndex, identifier: str, message: str) -> None:
        class Thing(models.Model):
            text = models.TextField()
            vector = VectorField(dimensions=3)
            free = VectorField()
            friends = models.ManyToManyField("self")
            other = models.ForeignKey("self", models.CASCADE)

            class Meta:
                app_label = "catalog"

        [found] = _check_index(Thing, index)
        assert ids([found]) == [identifier]
        assert message in found.msg
