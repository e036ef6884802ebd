"""The server, the database and pgvector, before anything of ours is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from foh_pg.doctor.report import Report
from foh_pg.schema.requirements import OLDEST_PGVECTOR, OLDEST_SERVER, REQUIREMENTS

# Earlier versions count differing bits a byte at a time on PostgreSQL 18, which slows every search down.
FAST_PGVECTOR = (0, 8, 3)

FACTS = """
SELECT current_setting('server_version_num')::int / 10000 AS major,
       split_part(current_setting('server_version'), ' ', 1) AS server,
       current_database() AS database, current_user AS role,
       (SELECT e.extversion FROM pg_extension e WHERE e.extname = 'vector') AS pgvector,
       (SELECT a.default_version FROM pg_available_extensions a WHERE a.name = 'vector') AS available,
       pg_is_in_recovery() AS standby, pg_backend_pid() AS pid,
       current_setting('autovacuum')::boolean AS autovacuum,
       (SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname)
        FROM pg_publication p WHERE p.puballtables) AS publications
"""


@dataclass(frozen=True)
class Facts:
    """What the catalog says of server and database."""

    major: int
    server: str
    database: str
    role: str
    pgvector: str | None
    available: str | None
    standby: bool
    pid: int
    autovacuum: bool
    publications: str | None


def read_facts(connection: psycopg.Connection[Any]) -> Facts:
    with connection.cursor(row_factory=class_row(Facts)) as cursor:
        facts = cursor.execute(FACTS).fetchone()
    assert facts is not None
    return facts


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> numbers("0.8.3")
    (0, 8, 3)
    >>> numbers("0.9.0-dev")
    (0, 9, 0)
    """
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def quoted(name: str) -> str:
    """A name as it stands in SQL, for a statement that a person will paste."""
    simple = re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    return name if simple else sql.Identifier(name).as_string(None)


def check_server(report: Report, facts: Facts) -> None:
    if facts.major < OLDEST_SERVER:
        report.error(
            "server",
            f"PostgreSQL {facts.server} is too old: {REQUIREMENTS}",
            f"upgrade to PostgreSQL {OLDEST_SERVER} or newer",
        )
    if facts.standby:
        report.note(
            "server",
            "this server is a standby: searches work here, updates do not",
            "connect updaters to the primary",
        )
    if facts.pid != report.connection.info.backend_pid:
        report.note(
            "pooler",
            "this connection goes through a proxy, which works as long as it pools sessions",
            "connect updaters to the server itself, see docs/how-to/managed.md",
        )
    if not facts.autovacuum:
        report.warn(
            "autovacuum",
            "autovacuum is off: every search reads past the entries of the stream that updates took out",
            "ALTER SYSTEM SET autovacuum = on; then SELECT pg_reload_conf();",
        )


def check_publications(report: Report, facts: Facts) -> None:
    if facts.publications is not None:
        report.note(
            "publications",
            f"publication {facts.publications} is FOR ALL TABLES and takes the tables of foh along",
            "publish the schemas of the application instead: docs/how-to/replicas.md",
        )


def check_pgvector(report: Report, facts: Facts) -> None:
    if facts.pgvector is None:
        cure = "CREATE EXTENSION vector; as a superuser, or as the administrator of your provider"
        if facts.available is None:
            cure = "install pgvector on the server, then CREATE EXTENSION vector;"
        found = f"the extension vector (pgvector) is not installed in database {quoted(facts.database)}"
        report.error("pgvector", found, cure)
        return
    version = numbers(facts.pgvector)
    newer = facts.available is not None and numbers(facts.available) > version
    update = "ALTER EXTENSION vector UPDATE;"
    if not newer:
        update = f"install a newer pgvector on the server, then {update}"
    if version < OLDEST_PGVECTOR:
        report.error("pgvector", f"pgvector {facts.pgvector} is too old: {REQUIREMENTS}", update)
    elif facts.major >= 18 and version < FAST_PGVECTOR:
        found = f"pgvector {facts.pgvector} counts differing bits slowly on PostgreSQL 18, unlike 0.8.3"
        report.warn("pgvector", found, update)
    elif newer:
        found = f"the database uses pgvector {facts.pgvector}, the server has {facts.available}"
        report.note("pgvector", found, update)
