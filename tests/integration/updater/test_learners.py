"""Every learner that an index may be driven by drives one, through the build and through an update."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foh_pg import learners
from foh_pg.updater import build, update
from tests.support.digits import create_index, create_table, insert, precision, violations
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]

# Precision of the first ten rows that codes of 32 bits reach on digits; AdaptHash and SketchHash learn little.
LEAST = {"adapthash": 0.5, "sketchhash": 0.6}


@pytest.mark.parametrize(
    "name", [name for name in learners.names() if learners.get(name).linear and name != "random"]
)
def test_drives_an_index(name: str, connection: Connection, database: Database) -> None:
    create_table(connection)
    insert(connection, range(1200))
    create_index(connection, learner=name, bits=32)
    build(database.dsn(), "digits")
    insert(connection, range(1200, 1500))
    update(database.dsn(), "digits")
    assert violations(connection) == []
    if name not in LEAST:
        # Served are its hash functions, not the random ones that stand in for a model that learned nothing.
        assert connection.execute("SELECT bool_and(trained) FROM foh.model WHERE version > 1").fetchone() == (
            True,
        )
    assert precision(connection, range(1600, 1650)) > LEAST.get(name, 0.75)


def test_refuses_a_learner_with_a_feature_map(connection: Connection) -> None:
    create_table(connection)
    with pytest.raises(psycopg.Error, match="okh"):
        create_index(connection, learner="okh")
