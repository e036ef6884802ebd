"""What a role may not do that it will want to: search the indexes there are, or create the first."""

from __future__ import annotations

from psycopg import sql

from foh_pg.doctor.report import Report
from foh_pg.doctor.server import quoted
from foh_pg.errors import InputError

KNOWN = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %(role)s) AS known"
# Every role can read the catalog of functions: even one that sees no table of foh learns what is missing.
INDEXES = """
SELECT left(p.proname, -length('_describe')) AS name,
       has_schema_privilege(%(role)s, p.pronamespace, 'USAGE')
           AND has_function_privilege(%(role)s, s.oid, 'EXECUTE') AS may_search,
       has_schema_privilege(p.pronamespace, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE') AS may_ask
FROM pg_proc p
JOIN pg_proc s ON s.pronamespace = p.pronamespace
              AND s.proname = left(p.proname, -length('_describe')) || '_search'
WHERE p.pronamespace = 'foh'::regnamespace AND p.proname LIKE '%%\\_describe' AND p.pronargs = 0
ORDER BY 1
"""
# The table is looked up in the catalog: a cast to regclass fails where the role may not use its schema.
ON_THE_TABLE = """
SELECT d.source, d.key, d.embedding, d.vector_schema,
       has_schema_privilege(%(role)s, d.vector_schema, 'USAGE') AS vectors,
       -- Null where a column is gone or is called otherwise by now: foh.refresh comes first.
       (SELECT bool_and(has_column_privilege(%(role)s, a.attrelid, a.attnum, 'SELECT')) FROM pg_attribute a
        WHERE a.attrelid = t.oid AND a.attname = ANY (d.key || d.embedding) AND NOT a.attisdropped
        HAVING count(*) = 1 + cardinality(d.key)) AS columns,
       has_schema_privilege(%(role)s, t.relnamespace, 'USAGE') AS schema,
       (parse_ident(d.source))[1] AS table_schema
FROM foh.{}() d CROSS JOIN LATERAL (
    SELECT c.oid, c.relnamespace FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = (parse_ident(d.source))[1] AND c.relname = (parse_ident(d.source))[2]) t
"""
MAY_CREATE = """
SELECT bool_or(has_function_privilege(%(role)s, p.oid, 'EXECUTE')) AS may
FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = 'create_index'
"""


def check_rights(report: Report, role: str) -> None:
    known = report.connection.execute(KNOWN, {"role": role}).fetchone()
    if not (known and known["known"]):
        raise InputError(f"there is no role {role!r}")
    indexes = report.connection.execute(INDEXES, {"role": role}).fetchall()
    for index in indexes:
        about = report.about(index["name"])
        if not index["may_search"]:
            about.warn(
                "rights",
                f"role {quoted(role)} may not search",
                f"foh-pg grant {index['name']} --reader {quoted(role)}, as the owner of schema foh",
            )
        elif index["may_ask"]:
            with about.guarded("rights"):
                check_table(about, index["name"], role)
    if not indexes:
        row = report.connection.execute(MAY_CREATE, {"role": role}).fetchone()
        if not (row and row["may"]):
            report.warn(
                "rights",
                f"role {quoted(role)} may not create an index",
                "connect as the owner of schema foh: SELECT nspowner::regrole FROM pg_namespace "
                "WHERE nspname = 'foh'",
            )


def check_table(report: Report, index: str, role: str) -> None:
    """A search reads the table with the rights of the caller."""
    statement = sql.SQL(ON_THE_TABLE).format(sql.Identifier(f"{index}_describe"))
    for row in report.connection.execute(statement, {"role": role}):
        lacks = []
        if not row["vectors"]:
            lacks.append(f"USAGE ON SCHEMA {quoted(row['vector_schema'])}")
        if not row["schema"]:
            lacks.append(f"USAGE ON SCHEMA {quoted(row['table_schema'])}")
        if row["columns"] is False:
            columns = ", ".join(map(quoted, [*row["key"], row["embedding"]]))
            lacks.append(f"SELECT ({columns}) ON {row['source']}")
        if lacks:
            report.warn(
                "rights",
                f"role {quoted(role)} may call the search, and lacks what the search needs outside of foh",
                " ".join(f"GRANT {right} TO {quoted(role)};" for right in lacks),
            )
