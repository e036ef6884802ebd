-- What an index consists of, and where its parts are: in schema foh, and in the catalog of PostgreSQL.

-- The role that all of foh belongs to.
CREATE OR REPLACE FUNCTION foh._owner() RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT r.rolname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE n.nspname = 'foh'
$function$;

-- The schema of the pgvector extension, quoted.
CREATE OR REPLACE FUNCTION foh._vector_schema() RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT quote_ident(n.nspname)
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'
$function$;

-- The index of that name, or an error that names those there are.
CREATE OR REPLACE FUNCTION foh._index(name text) RETURNS foh.index
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
BEGIN
    SELECT * INTO i FROM foh.index x WHERE x.name = _index.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: there is no index %', coalesce(quote_literal(name), 'NULL')
            USING ERRCODE = 'undefined_object',
                  HINT = 'Existing: ' || coalesce((SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM foh.index x),
                                                  'none; SELECT foh.create_index(...) makes one.');
    END IF;
    RETURN i;
END
$function$;

-- The tables, types and functions of an index: what a template calls each, and its name in schema foh. The part after the last underscore
-- has none itself, so that two indexes never have an object of the same name.
CREATE OR REPLACE FUNCTION foh._object_names(name text) RETURNS TABLE (suffix text, object name)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.name, $1 || '_' || replace(t.name, '_', '') FROM foh.template t
    WHERE t.kind IN ('table', 'type', 'function') GROUP BY t.name ORDER BY min(t.at)
$function$;

-- The templates of an index. Where several have the same name, the one whose condition holds for the index.
CREATE OR REPLACE FUNCTION foh._templates(i foh.index) RETURNS SETOF foh.template
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT DISTINCT ON (t.name) t.* FROM foh.template t
    WHERE t.kind <> 'shared' AND CASE t.condition
        WHEN '' THEN true
        WHEN 'labels' THEN i.labels IS NOT NULL
        WHEN 'labels_from' THEN i.labels_from IS NOT NULL
        WHEN 'record_key' THEN foh._has_record_key(i)
        WHEN 'row_triggers' THEN i.row_triggers
        WHEN 'distributed' THEN foh._citus_kind(i.source) = 'distributed' END
    ORDER BY t.name, t.condition = ''
$function$;

-- The tables of an index.
CREATE OR REPLACE FUNCTION foh._tables(name text) RETURNS regclass[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(c.oid::regclass ORDER BY c.relname), '{}')
    FROM foh._object_names(name) o JOIN pg_class c ON c.relnamespace = 'foh'::regnamespace AND c.relname = o.object AND c.relkind = 'r'
$function$;

-- The functions of an index.
CREATE OR REPLACE FUNCTION foh._functions(name text) RETURNS SETOF pg_catalog.pg_proc
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.* FROM foh._object_names(name) o JOIN pg_proc p ON p.pronamespace = 'foh'::regnamespace AND p.proname = o.object
$function$;

-- A name as templates write it. Words of PL/pgSQL that are none of SQL are quoted too: NEW.loop would not be found.
CREATE OR REPLACE FUNCTION foh._quoted(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
AS $function$
    SELECT CASE WHEN name IN ('begin', 'by', 'declare', 'execute', 'foreach', 'if', 'loop', 'strict', 'while') THEN '"' || name || '"' ELSE quote_ident(name) END
$function$;

-- A table's name with its schema, quoted, whatever the search path.
CREATE OR REPLACE FUNCTION foh._qualified(relation oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT foh._quoted(n.nspname) || '.' || foh._quoted(c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation
$function$;

-- A type that a key or an included column may have, as templates write it. Some are names and not words of the language: another
-- search_path could hide them.
CREATE OR REPLACE FUNCTION foh._written_type(type regtype) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN type IN ('text'::regtype, 'uuid'::regtype, 'date'::regtype) THEN 'pg_catalog.' ELSE '' END || type::text
$function$;

-- The collation of a column as a clause, so that two columns of different collations can be compared; '' for types
-- without one.
CREATE OR REPLACE FUNCTION foh._collate(relation oid, column_name name) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce((SELECT format(' COLLATE %I.%I', n.nspname, c.collname)
                     FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation JOIN pg_namespace n ON n.oid = c.collnamespace
                     WHERE a.attrelid = relation AND a.attname = column_name AND NOT a.attisdropped), '')
$function$;

-- A table and all partitions below it, level by level. Unlike pg_partition_tree it takes no lock: see foh._lock_tables.
CREATE OR REPLACE FUNCTION foh._partitions(relation oid) RETURNS TABLE (oid oid, level int)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE p AS (
        SELECT c.oid, 0 AS level FROM pg_class c WHERE c.oid = relation
        UNION ALL
        SELECT c.oid, p.level + 1 FROM p JOIN pg_inherits h ON h.inhparent = p.oid JOIN pg_class c ON c.oid = h.inhrelid WHERE c.relispartition
    )
    SELECT p.oid, p.level FROM p
$function$;
