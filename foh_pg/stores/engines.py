"""The engines behind a store: one for its methods, one for their async forms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from foh_pg.errors import InputError

T = TypeVar("T")


class Engines:
    """Runs a function on a connection, in a transaction of its own, with or without an event loop."""

    def __init__(self, connection: str | sa.URL | sa.Engine | AsyncEngine) -> None:
        self._given = connection

    def run(self, function: Callable[[sa.Connection], T]) -> T:
        with self._sync.begin() as connection:
            return function(connection)

    async def arun(self, function: Callable[[sa.Connection], T]) -> T:
        if isinstance(self._given, sa.Engine):
            return await asyncio.to_thread(self.run, function)
        async with self._async.begin() as connection:
            return await connection.run_sync(function)

    def close(self) -> None:
        if "_sync" in self.__dict__ and not isinstance(self._given, sa.Engine):
            self._sync.dispose()

    async def aclose(self) -> None:
        self.close()
        if "_async" in self.__dict__ and not isinstance(self._given, AsyncEngine):
            await self._async.dispose()

    @cached_property
    def _sync(self) -> sa.Engine:
        if isinstance(self._given, AsyncEngine):
            raise InputError(
                "this store has an AsyncEngine: call the async methods, "
                "or give it a connection string, which serves both"
            )
        return self._given if isinstance(self._given, sa.Engine) else sa.create_engine(url(self._given))

    @cached_property
    def _async(self) -> AsyncEngine:
        if isinstance(self._given, AsyncEngine):
            return self._given
        assert not isinstance(self._given, sa.Engine)
        return create_async_engine(url(self._given))


def url(given: str | sa.URL) -> sa.URL:
    """A SQLAlchemy address, from one, from a URI, or from a libpq connection string (``dbname=shop``)."""
    if isinstance(given, str) and "://" not in given:
        parts = {name: str(value) for name, value in conninfo_to_dict(given).items() if value is not None}
        user, password, database = (parts.pop(name, None) for name in ("user", "password", "dbname"))
        return sa.URL.create("postgresql+psycopg", user, password, database=database, query=parts)
    address = sa.make_url(given)
    # psycopg 3 is what we depend on, and the same address serves both kinds of engine.
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    return address
