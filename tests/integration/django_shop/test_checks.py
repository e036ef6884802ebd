"""System checks: of models, and of databases."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, models
from django.test.utils import isolate_apps
from pgvector.django import VectorField

from foh_pg.django import FohIndex
from foh_pg.django.checks import _check_index, check_databases, check_models
from foh_pg.schema import installed
from tests.integration.django_shop.conftest import point_at
from tests.support.postgres import Database


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


def found(**arguments: Any) -> list[str]:
    return ids(check_databases(databases=["default"], **arguments))


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


class TestDatabases:
    def test_nothing_is_said_of_what_migrations_will_do(self, empty: Database) -> None:
        assert found() == []
        assert check_databases(databases=None) == []

    def test_a_database_that_others_changed(self, migrated: Database) -> None:
        assert found() == []
        execute("SELECT foh.drop_index('articles')")
        execute("ALTER TABLE catalog_film RENAME TO movies")
        superuser = migrated.connect(None)
        superuser.execute("UPDATE foh.index SET status = 'building' WHERE name = 'products'")
        messages = {each.obj._meta.model_name: each for each in check_databases(databases=["default"])}
        assert messages["article"].id == "foh_pg.W013"
        assert messages["product"].id == "foh_pg.W015"
        assert "manage.py foh build products" in messages["product"].hint
        assert messages["film"].id == "foh_pg.W014"
        assert "RefreshFohIndex('film', 'films_by_" in messages["film"].hint

    def test_a_schema_that_went_missing(self, empty: Database) -> None:
        call_command("migrate", fake=True, verbosity=0)
        [message] = check_databases(databases=["default"])
        assert ids([message]) == ["W011"]
        assert "InstallFoh()" in message.hint

    def test_an_older_schema(self, empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        call_command("migrate", "catalog", "0002", verbosity=0)
        call_command("migrate", fake=True, verbosity=0)
        monkeypatch.setattr(installed, "revisions", lambda: ("0001", "0002"))
        message = check_databases(databases=["default"])[0]
        assert message.id == "foh_pg.W012"
        assert "is at revision 0001, this foh_pg needs" in message.msg
        assert "UpgradeFoh()" in message.hint
        execute("UPDATE foh.alembic_version SET version_num = '9999'")
        assert found() == ["W010"]

    def test_functions_of_another_version(self, empty: Database) -> None:
        call_command("migrate", "catalog", "0002", verbosity=0)
        call_command("migrate", fake=True, verbosity=0)
        execute("UPDATE foh.code SET digest = 'older'")
        message = check_databases(databases=["default"])[0]
        assert message.id == "foh_pg.W012"
        assert "functions of another version" in message.msg

    def test_a_role_that_may_only_search(self, migrated: Database) -> None:
        """It sees whether its indexes are there, and cannot be told more."""
        execute("GRANT SELECT ON django_migrations TO app_reader")
        point_at(migrated, "app_reader")
        assert found() == []
        migrated.connect().execute("SELECT foh.drop_index('articles')")
        assert found() == ["W013"]

    def test_a_schema_that_is_not_ours(self, empty: Database) -> None:
        execute("CREATE SCHEMA foh CREATE TABLE alembic_version (other text)")
        call_command("migrate", fake=True, verbosity=0)
        [message] = check_databases(databases=["default"])
        assert ids([message]) == ["W010"]
        assert "has a schema foh that foh_pg did not make" in message.msg
