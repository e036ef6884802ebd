"""Rows that are deleted while an update splits their list."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg import updater
from foh_pg.updater import maintain
from tests.support.digits import create_index, create_table, digits, insert, vector, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


@pytest.mark.one_version
@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM digit WHERE id = ANY (%s)", "UPDATE digit SET embedding = NULL WHERE id = ANY (%s)"],
)
def test_rows_that_a_split_was_about_to_move(
    connection: Connection, database: Database, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """Deleted after the split has read them, and before their list is written: they are in no list, and so have no home."""
    create_table(connection)
    create_index(connection, options='{"learn_rows": 200}')
    insert(connection, range(600))
    updater.update(connection, "digits")
    # Many rows near one center.
    data, noise = digits()[0], np.random.default_rng(0)
    connection.cursor().executemany(
        "INSERT INTO digit VALUES (%s, %s::extensions.vector, '1')",
        [(n, vector(data[1] + noise.normal(0, 1, 64).astype(np.float32))) for n in range(10_000, 10_500)],
    )
    other, deleted = database.connect(), []

    split_one = maintain._split_one

    def split(session: Any, index: Any, rng: Any, center: int, *arguments: Any) -> Any:
        pieces = split_one(session, index, rng, center, *arguments)
        if len(pieces) > 1 and not deleted:
            members = other.execute(
                "SELECT ids FROM foh.digits_list WHERE center = %s AND part = 0", [center]
            )
            deleted.extend(members.fetchone()[0][:5])
            other.execute(statement.encode(), [deleted])
        return pieces

    monkeypatch.setattr(maintain, "_split_one", split)

    def compare(name: str, done: int, total: int) -> None:
        """After the switch of each batch."""
        if name == "vacuum":
            assert violations(other) == []

    updater.update(connection, "digits", batch_size=100, progress=compare)
    assert deleted
    updater.update(connection, "digits")
    assert violations(connection) == []
    keys = "SELECT unnest(ids) FROM foh.digits_list UNION ALL SELECT key FROM foh.digits_item"
    assert not {key for (key,) in connection.execute(keys)} & set(deleted)
