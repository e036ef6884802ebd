"""The digits in a table that Citus distributes, and what the tests of such a table ask again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from foh_pg import Index, updater
from tests.support.digits import create_index, digits

if TYPE_CHECKING:
    from tests.citus.conftest import Cluster

# The lists answer, however few rows there are.
LISTS_ANSWER = '{"exact_rows": 0}'


def create_table(owner: psycopg.Connection[Any], key: str) -> None:
    owner.execute(
        f"CREATE TABLE digit ({key}, embedding extensions.vector(64), label text, price int DEFAULT -1)".encode()
    )


def distribute(owner: psycopg.Connection[Any], key: str, by: str) -> None:
    """Make the table, with the columns of its key, and distribute it by one of them."""
    create_table(owner, key)
    distribute_existing(owner, by)


def distribute_existing(owner: psycopg.Connection[Any], by: str) -> None:
    owner.execute("SET citus.shard_count = 4")
    owner.execute("SELECT create_distributed_table('digit', %s, colocate_with => 'none')", [by])


def build_index(cluster: Cluster, owner: psycopg.Connection[Any], **arguments: Any) -> Index:
    create_index(owner, **{"options": LISTS_ANSWER, **arguments})
    updater.build(cluster.dsn(), "digits")
    return Index.open(owner, "digits")


def nearest(index: Index, number: int, **arguments: Any) -> Any:
    """The key of the row that is nearest to a digit; None where there is none."""
    found = index.search(digits()[0][number], 1, labels=0, **arguments)
    return found[0].key if found else None


def inbox(owner: psycopg.Connection[Any]) -> int:
    """How many entries wait on the nodes."""
    return int(owner.execute("SELECT count(*) FROM foh_digits_inbox").fetchone()[0])  # type: ignore[index]


def pull(owner: psycopg.Connection[Any]) -> None:
    """Move what waits on the nodes into the stream, as the first step of an update."""
    (entries,) = owner.execute("SELECT foh.digits_pull(1000)").fetchone()  # type: ignore[misc]
    owner.execute("SELECT foh.digits_pulled(%s)", [entries])
    assert inbox(owner) == 0


def sound(owner: psycopg.Connection[Any]) -> None:
    assert owner.execute("SELECT * FROM foh.check('digits')").fetchall() == []
    assert owner.execute("SELECT * FROM foh.repair('digits')").fetchone() == (0, 0, 0)
