"""Schema foh goes only when no table has an index in it any more: others may have made theirs there."""

from __future__ import annotations

from collections.abc import Sequence

from foh_pg.errors import SchemaError

# From the catalog, which everybody may read. No percent sign: drivers would read it.
INDEXED = """
SELECT DISTINCT pg_catalog.quote_ident(n.nspname) OPERATOR(pg_catalog.||) '.'
                OPERATOR(pg_catalog.||) pg_catalog.quote_ident(c.relname)
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE p.pronamespace OPERATOR(pg_catalog.=) pg_catalog.to_regnamespace('foh')
ORDER BY 1
"""

# Whether this role may look at the indexes; no row where schema foh is missing. For a pinned search_path.
READABLE = """
SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'foh' AND c.relname = 'index' AND c.relkind = 'r'
"""


def refuse_indexed(tables: Sequence[str], otherwise: str) -> None:
    """An error where tables have an index; `otherwise` says how a migration is undone without the schema."""
    if tables:
        has = "has an index" if len(tables) == 1 else "have indexes"
        raise SchemaError(
            f"schema foh cannot be removed, {', '.join(tables)} {has} in it: drop that index first (foh-pg "
            f"status lists them), or keep the schema: {otherwise}"
        )
