"""SQLAlchemy engines on a test database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict

from tests.support.postgres import Database

# pgvector is apart, as managed databases have it; the application reaches its types by its search_path.
SEARCH_PATH = "public, extensions"


def url(database: Database, role: str | None = "app_owner", driver: str = "psycopg") -> sa.URL:
    parts = conninfo_to_dict(database.dsn(role))
    query = {name: str(parts[name]) for name in ("host", "port") if name in parts}
    if driver != "asyncpg":
        query["options"] = f"-csearch_path={SEARCH_PATH.replace(' ', '')}"
    user, password = parts.get("user"), parts.get("password")
    return sa.URL.create(
        f"postgresql+{driver}",
        username=str(user) if user else None,
        password=str(password) if password else None,
        database=database.name,
        query=query,
    )


def engine(database: Database, role: str | None = "app_owner", **arguments: Any) -> sa.Engine:
    return sa.create_engine(url(database, role), **arguments)
