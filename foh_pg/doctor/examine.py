from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from foh_pg.doctor.indexes import check_indexes
from foh_pg.doctor.report import NOTE, SEVERITIES, Finding, Report
from foh_pg.doctor.rights import check_rights
from foh_pg.doctor.schema import check_schema
from foh_pg.doctor.server import Facts, check_pgvector, check_publications, check_server, read_facts
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
    report = Report(connection)
    with report.guarded("server"):
        check_server(report, facts)
    with report.guarded("pgvector"):
        check_pgvector(report, facts)
    revision: str | None = None
    try:
        revision = installed.revision(connection)
    except SchemaError as error:
        # Nothing in a schema that is not ours is looked at.
        found, _, cure = str(error).partition(". ")
        report.error("schema", found, cure or "find out who made the schema; foh_pg needs its name")
    except errors.InsufficientPrivilege:
        report.note(
            "schema",
            f"schema foh and its indexes were not looked at: {facts.role} may not read its tables",
            "run foh-pg doctor as the owner of schema foh, or as an updater",
        )
        with report.guarded("rights"):
            check_rights(report, role)
    else:
        check_installed(report, facts, revision, role, max_lag)
    findings = sorted(report.findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return Examination(facts, revision, findings)


def check_installed(report: Report, facts: Facts, revision: str, role: str, max_lag: float) -> None:
    with report.guarded("schema"):
        check_schema(report, facts, revision)
    # The tables of another revision may have other columns.
    if revision != installed.head():
        return
    check_publications(report, facts)
    with report.guarded("rights"):
        check_rights(report, role)
    with report.guarded("index"):
        check_indexes(report, max_lag)
