"""What schema `foh` of a database is: whether it is ours, and at which revision.

Every command asks this, so nothing here needs Alembic, which takes longer to import than most commands take
to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from foh_pg.errors import SchemaError
from foh_pg.schema import files, script
from foh_pg.schema.drivers import Driver, driver_of, is_autocommit, is_sqlalchemy, readable_errors

if TYPE_CHECKING:
    from foh_pg.schema.drivers import Connection

BASE = "base"

# Null, and so not readable, where the table is missing.
READABLE = (
    "SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass('foh.code')::pg_catalog.oid, 'SELECT')"
)


@cache
def revisions() -> tuple[str, ...]:
    """All revisions, the oldest first: the scripts of `migrations/versions/` begin with theirs."""
    scripts = (files.folder("migrations") / "versions").glob("[0-9]*_*.py")
    return tuple(sorted(script.name.partition("_")[0] for script in scripts))


def head() -> str:
    """The revision that this package was written for."""
    return revisions()[-1]


def revision(connection: Connection, owner: str | None = None) -> str:
    """The revision that schema `foh` of this database is at: "base" where it is not installed.

    `owner`: the role for which a migration works, where that is another than the role of the connection.
    """
    driver = driver_of(connection)
    with readable_errors(), driver.transaction(), trusted(driver, owner) as installed:
        return present_revision(driver) if installed else BASE


def refuse_foreign(connection: Connection) -> None:
    """Refuse a schema `foh` that is not ours or whose owner a superuser must not trust; read none of it."""
    if is_sqlalchemy(connection) and is_autocommit(connection):  # type: ignore[arg-type]
        # One statement is a transaction, at whose end the search_path is what it was.
        with readable_errors():
            connection.exec_driver_sql(  # type: ignore[union-attr]
                script.trust(None), execution_options={"no_parameters": True}
            )
        return
    driver = driver_of(connection)
    with readable_errors(), driver.transaction(), trusted(driver):
        pass


def code_is_outdated(connection: Connection, owner: str | None = None) -> bool:
    """Whether this database is at our revision with functions of another version of the package."""
    driver = driver_of(connection)
    with readable_errors(), driver.transaction(), trusted(driver, owner) as installed:
        return installed and present_revision(driver) == head() and functions_are_outdated(driver)


@contextmanager
def trusted(driver: Driver, owner: str | None = None) -> Iterator[bool]:
    """Whether schema `foh` is there and ours; what is not ours is refused. Inside, settings are pinned."""
    driver.run(script.trust(owner))
    [installed] = driver.column("SELECT pg_catalog.current_setting('foh.installed')")
    yield installed == "yes"
    driver.run(files.step("session", "restore_settings"))


def present_revision(driver: Driver) -> str:
    found = driver.column("SELECT version_num FROM foh.alembic_version")
    if len(found) != 1:
        raise SchemaError(
            f"foh.alembic_version has {len(found)} rows, and one is expected: it was changed by hand; "
            "restore the schema from a backup, or drop it and migrate again"
        )
    if found[0] not in revisions():
        raise SchemaError(
            f"schema foh in this database is at revision {found[0]!r}, which this foh_pg does not know: "
            "a newer one migrated it; upgrade the package (pip install --upgrade foh_pg)"
        )
    return str(found[0])


def functions_are_outdated(driver: Driver) -> bool:
    [readable] = driver.column(READABLE)
    # A role that may not read the table could not renew the functions either.
    return bool(readable) and driver.column("SELECT digest FROM foh.code") != [script.code_digest()]
