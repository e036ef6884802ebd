"""Schema foh: whether it is there, and of this version of the package."""

from __future__ import annotations

from foh_pg.doctor.report import Report
from foh_pg.doctor.server import Facts, quoted
from foh_pg.schema import installed
from foh_pg.version import __version__

MAY_CREATE = "SELECT has_database_privilege(current_database(), 'CREATE') AS may"
INSTALLED = "SELECT version FROM foh.code"


def check_schema(report: Report, facts: Facts, revision: str) -> None:
    if revision == installed.BASE:
        row = report.connection.execute(MAY_CREATE).fetchone()
        database, role = quoted(facts.database), quoted(facts.role)
        grant = "" if row and row["may"] else f"GRANT CREATE ON DATABASE {database} TO {role}; then "
        found = f"schema foh is not installed in database {database}"
        report.error("schema", found, f"{grant}foh-pg migrate")
    elif revision != installed.head():
        report.error(
            "schema",
            f"schema foh is at revision {revision}, this foh_pg ({__version__}) needs {installed.head()}",
            "foh-pg migrate",
        )
    elif installed.code_is_outdated(report.connection):
        row = report.connection.execute(INSTALLED).fetchone()
        version = row["version"] if row else "unknown"
        report.warn(
            "schema",
            f"the functions of schema foh came with foh_pg {version}, and this {__version__} has others",
            "foh-pg migrate; or install the foh_pg that the database was migrated with",
        )
