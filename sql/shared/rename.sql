-- Renames an index, and the columns of its results.

-- Gives an index another name: its tables, functions, triggers and what is granted on them stay. So an index that was built beside another can
-- take its place, and searches need not change. Waits at most 10 seconds for transactions that use the table.
CREATE OR REPLACE FUNCTION foh.rename_index(name text, new_name text) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Settings of the session that change how text is read, names are quoted or numbers are written must not get into what is rendered here.
SET standard_conforming_strings = on
SET quote_all_identifiers = off
SET extra_float_digits = 1
SET lock_timeout = '10s'
AS $function$
DECLARE
    citus constant text[] := foh._begin_local();
    old foh.index := foh._to_change(name);
    new foh.index := old;
    o record;
BEGIN
    PERFORM foh._check_arguments(new_name, old.bits, old.distance);
    IF foh._citus_kind(old.source) = 'distributed' THEN
        RAISE EXCEPTION 'foh: index % is on a distributed table, where the nodes know it by its name', quote_literal(name)
            USING ERRCODE = 'feature_not_supported', HINT = 'Create an index of the other name, build it, and drop this one.';
    END IF;
    PERFORM foh._lock_tables(old, 'ACCESS EXCLUSIVE', true);
    PERFORM foh._remove_triggers(old);
    FOR o IN SELECT format('ALTER FUNCTION %s RENAME TO %I', p.oid::regprocedure, n.object) AS statement
             FROM foh._object_names(name) w JOIN foh._object_names(new_name) n ON n.suffix = w.suffix
             JOIN pg_proc p ON p.pronamespace = 'foh'::regnamespace AND p.proname = w.object
             UNION ALL
             -- Tables, their indexes and sequences, which begin with the name, and the types of results and keys.
             SELECT format('ALTER %s foh.%I RENAME TO %I', CASE c.relkind WHEN 'i' THEN 'INDEX' WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
                           c.relname, new_name || substr(c.relname, length(name) + 1))
             FROM pg_class c
             WHERE c.relnamespace = 'foh'::regnamespace AND starts_with(c.relname, name || '_')
               AND (c.oid = ANY (foh._tables(name)) OR (c.relkind = 'c' AND c.relname IN (SELECT w.object FROM foh._object_names(name) w))
                    OR c.oid IN (SELECT x.indexrelid FROM pg_index x WHERE x.indrelid = ANY (foh._tables(name)))
                    OR c.oid IN (SELECT d.objid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.refobjid = ANY (foh._tables(name)) AND d.deptype = 'i'))
    LOOP
        EXECUTE o.statement;
    END LOOP;
    UPDATE foh.index x SET name = new_name WHERE x.id = old.id;
    new.name := new_name;
    PERFORM foh._make_functions(new);
    PERFORM foh._attach(new);
    PERFORM foh._end_local(citus);
    RETURN new_name;
END
$function$;

-- Renames the columns of an index's results after its key column was renamed, since CREATE OR REPLACE cannot do that.
CREATE OR REPLACE FUNCTION foh._rename_key(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was constant jsonb := foh._names(old);
    names constant jsonb := foh._names(new);
    before constant name[] := old.key || ARRAY[was ->> 'distance_name', was ->> 'score_name']::name[];
    passing constant text := to_hex(hashtextextended(concat_ws(' ', old.key, new.key), 0)) || '_';
    after constant name[] := new.key || ARRAY[names ->> 'distance_name', names ->> 'score_name']::name[];
BEGIN
    -- In two steps, through names that no column has: the new name of one column may be the old name of another.
    FOR n IN 1 .. cardinality(before) LOOP
        EXECUTE format('ALTER TYPE %s RENAME ATTRIBUTE %I TO %I', was ->> 'result', before[n], passing || n);
    END LOOP;
    FOR n IN 1 .. cardinality(after) LOOP
        EXECUTE format('ALTER TYPE %s RENAME ATTRIBUTE %I TO %I', was ->> 'result', passing || n, after[n]);
    END LOOP;
END
$function$;
