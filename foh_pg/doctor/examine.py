from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from foh_pg.doctor.finding import NOTE, SEVERITIES, Finding
from foh_pg.doctor.guard import guarded
from foh_pg.doctor.indexes import index_findings
from foh_pg.doctor.rights import rights_findings
from foh_pg.doctor.schema import Unreadable, foreign_finding, read_revision, schema_findings
from foh_pg.doctor.server import Facts, pgvector_findings, read_facts, server_findings
from foh_pg.errors import SchemaError
from foh_pg.schema import installed


@dataclass(frozen=True)
class Examination:
    """What was found, the worst first, and where. `revision` is None where it could not be read."""

    facts: Facts
    revision: str | None
    findings: list[Finding]

    @property
    def well(self) -> bool:
        return all(finding.severity == NOTE for finding in self.findings)


def examine(
    connection: psycopg.Connection[dict[str, Any]], role: str | None = None, max_lag: float = 600.0
) -> Examination:
    """Look at all that a new user gets wrong. Only reads, and of schema foh nothing that is not ours.

    `role`: whose rights to search are looked at; those of the connection's role unless given.
    """
    facts = read_facts(connection)
    role = role or facts.role
    findings = [
        *guarded(connection, "server", lambda: server_findings(facts, connection.info.backend_pid)),
        *guarded(connection, "pgvector", lambda: pgvector_findings(facts)),
    ]
    revision: str | None = None
    try:
        revision = read_revision(connection)
    except SchemaError as error:
        findings.append(foreign_finding(error))
    except Unreadable:
        findings.append(not_looked_at(facts))
        findings += guarded(connection, "rights", lambda: rights_findings(connection, role))
    else:
        findings += installed_findings(connection, facts, revision, role, max_lag)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Examination(facts, revision, findings)


def installed_findings(
    connection: psycopg.Connection[dict[str, Any]], facts: Facts, revision: str, role: str, max_lag: float
) -> Iterator[Finding]:
    yield from guarded(connection, "schema", lambda: schema_findings(connection, facts, revision))
    # The tables of another revision may have other columns.
    if revision != installed.head():
        return
    yield from publication_findings(facts)
    yield from guarded(connection, "rights", lambda: rights_findings(connection, role))
    yield from guarded(connection, "index", lambda: index_findings(connection, max_lag))


def not_looked_at(facts: Facts) -> Finding:
    return Finding(
        "schema",
        NOTE,
        f"schema foh and its indexes were not looked at: {facts.role} may not read its tables",
        "run foh-pg doctor as the owner of schema foh, or as an updater",
    )


def publication_findings(facts: Facts) -> Iterator[Finding]:
    if facts.publications is not None:
        yield Finding(
            "publications",
            NOTE,
            f"publication {facts.publications} is FOR ALL TABLES and takes the tables of foh along",
            "publish the schemas of the application instead: docs/how-to/replicas.md",
        )
