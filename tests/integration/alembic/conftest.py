"""The sample application in a database with pgvector and nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.config import Config

import tests.shop
from tests.support.engines import engine
from tests.support.postgres import Database, install_pgvector

MIGRATIONS = Path(tests.shop.__file__).parent / "migrations"


@pytest.fixture
def empty(new_database: Callable[..., Database]) -> Database:
    database = new_database()
    install_pgvector(database.connect(None))
    return database


@pytest.fixture
def alembic_engine(empty: Database) -> Iterator[sa.Engine]:
    made = engine(empty, "installer")
    yield made
    made.dispose()


@pytest.fixture
def alembic_config() -> dict[str, Any]:
    return {"script_location": str(MIGRATIONS)}


@pytest.fixture
def config(alembic_engine: sa.Engine) -> Config:
    """As the `alembic` command has it."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = alembic_engine
    return config
