"""What is in schema foh, as text: two databases with the same text have the same schema."""

from __future__ import annotations

from typing import Any

import psycopg

QUERY = r"""
SELECT 'relation', c.oid::regclass::text, c.relkind::text || c.relrowsecurity, {relacl}, c.reloptions::text,
       pg_get_userbyid(c.relowner), coalesce(pg_get_viewdef(c.oid), '')
FROM pg_class c WHERE relnamespace = 'foh'::regnamespace
UNION ALL
SELECT 'column', a.attrelid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod),
       (SELECT count(*) FROM pg_attribute b WHERE b.attrelid = a.attrelid AND b.attnum BETWEEN 1 AND a.attnum
        AND NOT b.attisdropped) || a.attnotnull::text || coalesce({attacl}, ''),
       a.attstorage::text || a.attidentity::text || a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'foh'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL
FROM pg_constraint WHERE connamespace = 'foh'::regnamespace
UNION ALL
SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid), NULL, NULL, NULL, NULL
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'foh'::regnamespace
UNION ALL
SELECT 'function', p.oid::regprocedure::text, p.prokind::text, {proacl}, p.proconfig::text,
       pg_get_userbyid(p.proowner), CASE WHEN p.prokind <> 'a' THEN regexp_replace(pg_get_functiondef(p.oid), '(_intact_in_plan\()''\d+''', '\1an oid', 'g') END
FROM pg_proc p WHERE pronamespace = 'foh'::regnamespace
UNION ALL
SELECT 'policy', polrelid::regclass::text, polname, polcmd::text, pg_get_expr(polqual, polrelid),
       pg_get_expr(polwithcheck, polrelid), polroles::regrole[]::text
FROM pg_policy JOIN pg_class c ON c.oid = polrelid WHERE c.relnamespace = 'foh'::regnamespace
UNION ALL
SELECT 'type', t.oid::regtype::text, t.typtype::text, pg_get_userbyid(t.typowner), NULL, NULL, NULL
FROM pg_type t WHERE t.typnamespace = 'foh'::regnamespace AND t.typcategory <> 'A'
UNION ALL
SELECT 'schema', nspname, {nspacl}, pg_get_userbyid(nspowner), NULL, NULL, NULL
FROM pg_namespace WHERE nspname = 'foh'
"""

# Rights in one order: that of the grants does not matter.
for _rights in ("relacl", "attacl", "proacl", "nspacl"):
    QUERY = QUERY.replace(
        f"{{{_rights}}}",
        f"(SELECT string_agg(x::text, ' ' ORDER BY x::text COLLATE \"C\") FROM unnest({_rights}) x)",
    )


def dump(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    rows = connection.execute(QUERY).fetchall()
    if connection.execute("SELECT to_regclass('foh.template') IS NOT NULL").fetchone() == (True,):
        rows += connection.execute("SELECT 'template', t.* FROM foh.template t").fetchall()
        rows += connection.execute("SELECT 'version', version_num FROM foh.alembic_version").fetchall()
    return sorted(rows, key=repr)
