"""The connection of an updater: its transactions, its lock, and proof that it still has both."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from string import Formatter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import LiteralString

import numpy as np
import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from foh_pg.arrays.side_by_side import join
from foh_pg.errors import BusyError, InputError, SessionError
from foh_pg.postgres.binary_copy import Column, copy_in, copy_out
from foh_pg.postgres.connect import PID, connect, refuse_pooled_transactions
from foh_pg.schema.installed import refuse_foreign

# Asks a pool that sends reads to replicas, in pgpool's words, to send all statements of an updater to the
# primary.
TO_PRIMARY: LiteralString = "/*NO LOAD BALANCE*/ "

STANDBY = (
    "a standby answered this updater in place of the primary: a pool that sends reads to replicas is "
    "between; connect an updater to the primary itself"
)

# The names of types are compared: quotes would make other names of them.
PINNED = (
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),"
    " pg_catalog.set_config('quote_all_identifiers', 'off', true)"
)

# For one transaction only: behind a proxy, another client may get the session with its settings.
SETTINGS = """
SELECT pg_catalog.set_config(name, '0', true)
FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout',
               'transaction_timeout', 'lock_timeout')
-- Keys of far rows are kept as text, and every session must read their dates alike.
UNION ALL SELECT pg_catalog.set_config('DateStyle', 'ISO', true)
"""

# Before there is a lock, perhaps without schema foh, only the number of the process (PID) is checked.
HOLDS = "SELECT pg_catalog.pg_backend_pid(), foh._holder(%(index)s) = pg_catalog.pg_backend_pid()"

TAKE = """
UPDATE foh.updating SET pid = pg_catalog.pg_backend_pid(), key = %(key)s, role = session_user
WHERE index = %(index)s
"""


# Where an updater works: a DSN, an idle connection, or None for what libpq's environment variables say.
Target = str | psycopg.Connection[Any] | None


class Session:
    """One connection in autocommit mode, and at most one index locked by it.

    `connection`: an idle connection; it is in autocommit mode from here on.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            raise InputError("the connection is inside a transaction: commit first, or pass a DSN")
        self.connection = connection
        self.names: dict[str, str] = {}
        self.encoding = "utf-8"
        self.locked: int | None = None
        self._key = 0
        connection.autocommit = True
        (self.pid,) = self.one(PID)
        self._refuse_standby()
        refuse_pooled_transactions(connection)
        refuse_foreign(connection)
        self._client_encoding = connection.info.parameter_status("client_encoding")
        if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            # Its texts are any bytes. In this encoding each byte is a letter, and comes back as it was.
            connection.execute("SET client_encoding = 'LATIN1'")
            self.encoding = "latin-1"

    def end(self) -> None:
        """Release the lock, and leave the connection with the encoding that it had."""
        self.unlock()
        if self.encoding != "utf-8" and not self.connection.closed:
            self.connection.execute(
                "SELECT pg_catalog.set_config('client_encoding', %s, false)", [self._client_encoding]
            )

    def told(self, text: str) -> str:
        """What a person has typed, as the texts that this session reads."""
        return text.encode().decode(self.encoding)

    # -- statements ----------------------------------------------------------------------------------------

    def compose(
        self, text: LiteralString, parameters: Any, columns: Mapping[str, Iterable[str]] | None = None
    ) -> sql.Composed:
        """Fill the {placeholders} with the quoted names of the index, as foh._names gives them.

        `columns`: placeholders that stand for several columns, with the names of these.
        """
        listed = {name: sql.SQL(", ").join(map(sql.Identifier, of)) for name, of in (columns or {}).items()}
        # With parameters psycopg reads every % as the beginning of one, also inside a quoted name.
        names = {
            name: sql.SQL(self.names[name].replace("%", "%%") if parameters else self.names[name])
            for _, name, _, _ in Formatter().parse(text)
            if name and name not in listed
        }
        return sql.SQL(TO_PRIMARY + text).format(**names, **listed)

    def execute(self, text: LiteralString, parameters: Mapping[str, Any] | None = None) -> int:
        """Run one statement; return how many rows it touched."""
        with self._pinned(), self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(self.compose(text, parameters), parameters or None).rowcount

    def vacuum(self, text: LiteralString) -> None:
        """Run a VACUUM, which allows no transaction around it and, with qualified names, needs none."""
        self.connection.execute(self.compose(text, None))

    def rows(self, text: LiteralString, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with self._pinned(), self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(self.compose(text, parameters), parameters or None).fetchall()

    def one(self, text: LiteralString, parameters: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        (row,) = self.rows(text, parameters)
        return row

    def of_primary(self, text: LiteralString, parameters: Mapping[str, Any] | None = None) -> Any:
        """The second column of a statement whose first one is pg_is_in_recovery().

        A pool may send each statement to another server. So the statement that decides whether there is
        anything to do says itself where it ran: a standby that lags would answer that nothing waits.
        """
        standby, value = self.one(text, parameters)
        if standby:
            raise SessionError(STANDBY)
        return value

    def copy_out(
        self,
        text: LiteralString,
        columns: Sequence[Column],
        parameters: Mapping[str, Any] | None = None,
        **names: Iterable[str],
    ) -> Iterator[tuple[Any, ...]]:
        """Read rows in binary; `names` are the columns that a placeholder of the text stands for."""
        statement = self.compose(text, parameters, names)
        with self._pinned():
            yield from copy_out(self.connection, statement, columns, parameters=parameters or None)

    def read_all(
        self,
        text: LiteralString,
        columns: Sequence[Column],
        parameters: Mapping[str, Any] | None = None,
        **names: Iterable[str],
    ) -> tuple[Any, ...]:
        """The same in one piece: all values of each column, of which there may be none."""
        parts = [*self.copy_out(text, columns, parameters, **names)]
        if parts:
            return tuple(map(join, zip(*parts, strict=True)))
        none = np.zeros(0, dtype=np.int64)
        return tuple(column.read(none.view(np.uint8), none, none) for column in columns)

    def copy_in(
        self, table: str, names: Sequence[str], columns: Sequence[Column], values: Sequence[Any]
    ) -> int:
        """Append rows to a table of the index, given by its suffix."""
        with self._pinned():
            return copy_in(self.connection, sql.SQL(self.names[table]), names, columns, values)

    # -- transactions --------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self, mode: LiteralString = "READ ONLY") -> Iterator[None]:
        """One snapshot, in which nothing can be written unless the mode is READ WRITE."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, " + mode):
            yield

    @contextmanager
    def write(self) -> Iterator[None]:
        """One transaction that commits at the end."""
        with self._transaction("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"):
            yield

    @contextmanager
    def _transaction(self, mode: LiteralString) -> Iterator[None]:
        with self.connection.transaction():
            self.connection.execute(mode)
            self.connection.execute(PINNED)
            self.execute(SETTINGS)
            self.check()
            yield

    @contextmanager
    def _pinned(self) -> Iterator[None]:
        """Pin the search_path for a statement outside of our transactions, in a transaction of its own."""
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            yield
            return
        with self.connection.transaction():
            self.connection.execute(PINNED)
            yield

    # -- the lock ------------------------------------------------------------------------------------------

    def lock(self, index: int, name: str) -> None:
        """Take the lock of an index until `unlock` or the end of the connection; never wait for it.

        Any role can take an advisory lock whose key it knows. So the key is a random one, and what counts is
        the row of foh.updating that names it together with this process, see foh._holder.
        """
        with self.write():
            try:
                self.execute("SELECT foh._lock(%(index)s)", {"index": index})
            except psycopg.errors.LockNotAvailable as error:
                raise BusyError(
                    f"index {name!r} is being worked on by another updater: try again when it is done"
                ) from error
            self._key = secrets.randbits(63)
            self.execute("SELECT pg_catalog.pg_advisory_lock(%(key)s)", {"key": self._key})
            self.execute(TAKE, {"index": index, "key": self._key})
        self.locked = index

    def unlock(self) -> None:
        if self._key and not self.connection.closed:
            self.execute("SELECT pg_catalog.pg_advisory_unlock(%(key)s)", {"key": self._key})
        self.locked, self._key = None, 0

    def check(self) -> None:
        """Refuse to go on where another server process answers than the one that this session began with."""
        pid, held = (*self.one(PID), None) if self.locked is None else self.one(HOLDS, {"index": self.locked})
        if pid != self.pid:
            raise SessionError(
                f"this connection moved from server process {self.pid} to {pid}: it goes through a proxy "
                "that pools transactions; connect an updater to the server itself"
            )
        if self.locked is not None and not held:
            raise SessionError(
                f"server process {pid} lost the lock of the index: all locks were released, or a proxy "
                "pools transactions; connect an updater to the server itself"
            )

    # -- where an updater cannot work ----------------------------------------------------------------------

    def _refuse_standby(self) -> None:
        if self.one("SELECT pg_catalog.pg_is_in_recovery()")[0]:
            raise SessionError(
                f"{self.connection.info.host} is a standby, which is read-only: connect to the primary"
            )


@contextmanager
def open_session(target: Target) -> Iterator[Session]:
    """A session on a connection that is given, or on one of its own to a DSN (None: libpq's variables)."""
    if isinstance(target, psycopg.Connection):
        autocommit = target.autocommit
        session = Session(target)
        try:
            yield session
        finally:
            session.end()
            if not target.closed:
                target.autocommit = autocommit
        return
    with connect(target, autocommit=True) as connection:
        session = Session(connection)
        try:
            yield session
        finally:
            session.end()
