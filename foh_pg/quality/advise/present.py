"""An index that a table has already: what is known of it, and what the figures say to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from foh_pg.quality.advise.sampling import Table
from foh_pg.quality.advise.verdict import Advice

# Without the right to read foh.index nothing is known, which is no error: advise needs no schema foh.
READABLE = (
    "SELECT pg_catalog.has_schema_privilege(s.oid, 'USAGE') "
    "AND pg_catalog.has_table_privilege(c.oid, 'SELECT') "
    "AND pg_catalog.has_table_privilege(pg_catalog.to_regclass('foh.run'), 'SELECT') "
    "FROM pg_catalog.pg_namespace s JOIN pg_catalog.pg_class c ON c.relnamespace = s.oid "
    "WHERE s.nspname = 'foh' AND c.relname = 'index'"
)
FIND = """
SELECT i.name, i.bits, r.version, r.p10, r.exact
FROM foh.index i LEFT JOIN LATERAL (
    SELECT e.to_version AS version, (e.metrics #>> '{index,p10}')::float8 AS p10,
           (e.metrics #>> '{exact,p10}')::float8 AS exact
    FROM foh.run e
    WHERE e.index = i.id AND e.kind = 'evaluate' AND e.error IS NULL AND e.finished_at IS NOT NULL
    ORDER BY e.id DESC LIMIT 1) r ON true
WHERE i.source = pg_catalog.format('%%I.%%I', %(schema)s::text, %(name)s::text)::pg_catalog.regclass
  AND i.embedding = %(embedding)s AND i.labels IS NOT DISTINCT FROM %(labels)s
ORDER BY i.id DESC LIMIT 1
"""


@dataclass(frozen=True)
class Present:
    """An index on the same columns, and its last evaluation, if there was one."""

    name: str
    bits: int
    version: int | None
    p10: float | None
    exact: float | None

    def said(self, advice: Advice) -> str:
        """What to do with the index, as the first line of the advice."""
        there = f"Index {self.name!r} with {self.bits} bits is there"
        if advice.choice != "foh":
            return f"{there}. {advice.use} foh-pg drop-index {self.name} removes the index."
        if advice.bits is not None and advice.bits > self.bits:
            return (
                f"{there}, and {advice.bits} bits are clearly better: create another index, build it, and "
                "drop this one."
            )
        return f"{there}: keep it."

    def evaluated(self) -> str:
        """How good it is on the whole table."""
        if self.p10 is None or self.exact is None:
            return f"foh-pg evaluate {self.name} measures it on the whole table."
        return (
            f"On the whole table, version {self.version} of the index had P@10 {self.p10:.3f}, the exact "
            f"distance {self.exact:.3f} (foh-pg evaluate {self.name})."
        )


def find(connection: psycopg.Connection[Any], table: Table) -> Present | None:
    """The newest index on these columns of a table that this role may know of."""
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        readable = cursor.execute(READABLE).fetchone()
        if readable is None or not readable[0]:
            return None
        columns = {"schema": table.schema, "name": table.name, "embedding": table.embedding}
        found = cursor.execute(FIND, {**columns, "labels": table.labels}).fetchone()
    return None if found is None else Present(*found)
