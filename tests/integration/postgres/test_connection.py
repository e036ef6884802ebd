from __future__ import annotations

import pytest

from foh_pg.postgres.connect import connect
from tests.support.postgres import Database


def test_is_named_unless_it_has_a_name(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def name(dsn: str) -> str:
        with connect(dsn) as connection:
            return connection.execute("SHOW application_name").fetchone()[0]

    assert name(database.dsn()) == "foh-pg"
    assert name(database.dsn() + " application_name=theirs") == "theirs"
    monkeypatch.setenv("PGAPPNAME", "environment")
    assert name(database.dsn()) == "environment"


def test_the_settings_of_a_database_do_not_count(database: Database) -> None:
    superuser = database.connect(None)
    superuser.execute(f"ALTER DATABASE {database.name} SET statement_timeout = '1s'")
    superuser.execute(f"ALTER DATABASE {database.name} SET default_transaction_isolation = 'serializable'")
    with connect(database.dsn()) as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_is_in_no_transaction(database: Database) -> None:
    with connect(database.dsn()) as connection:
        assert not connection.autocommit
        assert connection.info.transaction_status.name == "IDLE"
    with connect(database.dsn(), autocommit=True) as connection:
        assert connection.autocommit
