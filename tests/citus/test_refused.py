"""Tables of Citus that an index cannot follow are refused, and noticed where they became so later."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

TABLE = "CREATE TABLE products (id bigint PRIMARY KEY, embedding extensions.vector(3))"
CREATE = "SELECT foh.create_index('products', 'products', 'embedding')"


def test_a_distributed_table_is_refused(owner: psycopg.Connection[Any]) -> None:
    owner.execute(TABLE)
    owner.execute("SELECT create_distributed_table('products', 'id')")
    with pytest.raises(
        psycopg.errors.WrongObjectType, match=r"distributed table of Citus.*undistribute_table"
    ):
        owner.execute(CREATE)
    assert owner.execute("SELECT count(*) FROM foh.index").fetchone() == (0,)


def test_a_table_that_is_distributed_later(owner: psycopg.Connection[Any]) -> None:
    owner.execute(TABLE)
    owner.execute(CREATE)
    with pytest.raises(psycopg.Error, match="trigger"):
        owner.execute("SELECT create_distributed_table('products', 'id')")
    for event in ("insert", "update", "delete", "truncate"):
        owner.execute(f"DROP TRIGGER foh_products_{event} ON products")
    owner.execute("SELECT create_distributed_table('products', 'id')")
    [status] = owner.execute("SELECT status FROM foh.index_stat").fetchone()
    assert "can have none any more" in status
    assert (
        "distributed table of Citus"
        in owner.execute("SELECT detail FROM foh.check('products')").fetchone()[0]
    )
    with pytest.raises(psycopg.errors.WrongObjectType, match="distributed table of Citus"):
        owner.execute("SELECT foh.refresh('products')")
