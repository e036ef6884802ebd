"""manage.py foh, on the database of the settings."""

from __future__ import annotations

import io
import json
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from foh_pg.django.databases import dsn
from tests.django_shop.catalog.models import Product
from tests.integration.django_shop.conftest import vector
from tests.support.postgres import Database


def names(found: Any) -> list[str]:
    return [product.name for product in found]


def foh(*arguments: str, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("foh", *arguments, stdout=out, stderr=err, no_color=True, **options)
    return out.getvalue(), err.getvalue()


def test_the_life_of_an_index(migrated: Database) -> None:
    rows = json.loads(foh("status", "--json")[0])
    assert [row["name"] for row in rows] == ["articles", "films_by_plot", "films_by_poster", "products"]
    assert all(row["stream"] > 0 for row in rows)
    runs = json.loads(foh("update", "--json")[0])
    assert [run["index"] for run in runs] == ["products", "articles", "films_by_plot", "films_by_poster"]
    assert [row["stream"] for row in json.loads(foh("status", "--json")[0])] == [0, 0, 0, 0]
    assert names(Product.objects.nearest(vector(7), k=1)) == ["product 7"]
    assert foh("check")[1].count("keeps its promises") == 4
    assert "P@10" in foh("evaluate", "products")[0]
    assert "ranks by" in foh("status", "products")[0]
    assert "products" in foh("status", "products", "articles", "--check")[0]


def test_exit_codes(migrated: Database) -> None:
    migrated.connect(None).execute("DELETE FROM foh.products_stream WHERE key = 1")
    with pytest.raises(CommandError, match="promises are broken") as caught:
        foh("check", "products", "articles")
    assert caught.value.returncode == 3
    with pytest.raises(CommandError, match="could not be done"):
        foh("update", "nothing")
    with pytest.raises(CommandError, match="invalid choice: 'other'"):
        foh("status", "--database", "other")


def test_doctor(migrated: Database) -> None:
    migrated.connect(None).execute("UPDATE foh.code SET digest = 'older'")
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="something is wrong") as caught:
        call_command("foh", "doctor", stdout=out, stderr=err, no_color=True)
    assert caught.value.returncode == 5
    assert "-> foh-pg migrate" in out.getvalue()


def test_the_role_that_django_assumes(shop: Any) -> None:
    settings = connections["default"].settings_dict["OPTIONS"]
    settings["assume_role"] = "app_owner"
    with psycopg.connect(dsn(connections["default"])) as connected:
        assert connected.execute("SELECT current_user, current_setting('search_path')").fetchone() == (
            "app_owner",
            "public,extensions",
        )
