-- Columns that an index keeps beside its rows.

-- The type itself, or what it is a domain over.
CREATE OR REPLACE FUNCTION foh._base_type(type oid) RETURNS oid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE base AS (
        SELECT t.oid, t.typtype, t.typbasetype FROM pg_type t WHERE t.oid = type
        UNION ALL
        SELECT t.oid, t.typtype, t.typbasetype FROM base b JOIN pg_type t ON b.typtype = 'd' AND t.oid = b.typbasetype
    )
    SELECT b.oid FROM base b WHERE b.typtype <> 'd'
$function$;

-- The values of an enum, each by the number that PostgreSQL gave it, which stays where a value is renamed.
CREATE OR REPLACE FUNCTION foh._enum_values(type oid) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(jsonb_object_agg(e.oid, e.enumlabel), '{}') FROM pg_enum e WHERE e.enumtypid = type
$function$;

-- Whether an included column, if it is an enum, has the values that were recorded; there may be new ones. Lists keep values by name, and no trigger sees
-- ALTER TYPE ... RENAME VALUE. The name of a value that was renamed may have been given to a new one. In a restored database the numbers are
-- others, so names count there.
CREATE OR REPLACE FUNCTION foh._values_intact(included jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT NOT (included ->> 'enum')::boolean
           OR NOT EXISTS (SELECT v.value FROM jsonb_each_text(included -> 'values') v
                          EXCEPT SELECT e.enumlabel FROM pg_enum e WHERE e.enumtypid = to_regtype(included ->> 'type'))
              AND NOT EXISTS (SELECT FROM pg_enum e WHERE e.enumtypid = to_regtype(included ->> 'type') AND included -> 'values' ->> e.oid::text <> e.enumlabel)
$function$;

-- The columns that an index includes, as table foh.index keeps them: the column's name and number, its type as declared, the type of a value of it in
-- SQL, the type it is kept in, whether it is an enum, and of which values, the number of our column that holds it (slot), and whether the lists have it
-- already (filled). old: the index as it was; a column that stays keeps its slot. Null for a new index, whose lists are empty.
CREATE OR REPLACE FUNCTION foh._inspect_included(i foh.index, include name[], old foh.index) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    included jsonb := '[]';
    slots int := coalesce((SELECT max((c ->> 'slot')::int) FROM jsonb_array_elements(old.included) c), 0);
    wanted name;
    a pg_attribute;
    kept text;
    enum boolean;
    before jsonb;
BEGIN
    FOREACH wanted IN ARRAY coalesce(include, '{}') LOOP
        a := foh._attribute(i.source, wanted, 'include');
        -- The type in which lists and stream keep the column. An enum is kept as text: a column of ours of the application's type would keep the
        -- application from dropping that type.
        SELECT t.typtype = 'e',
               CASE WHEN t.typtype = 'e' OR t.oid = 'varchar'::regtype THEN 'text'
                    WHEN t.oid IN ('smallint'::regtype, 'int'::regtype, 'bigint'::regtype, 'numeric'::regtype, 'real'::regtype, 'float8'::regtype,
                                   'boolean'::regtype, 'text'::regtype, 'uuid'::regtype, 'date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype)
                    THEN format_type(t.oid, NULL) END
        INTO enum, kept FROM pg_type t WHERE t.oid = foh._base_type(a.atttypid);
        IF kept IS NULL THEN
            RAISE EXCEPTION 'foh: column % of % is of type %, and cannot be included', quote_ident(a.attname), i.source_name, format_type(a.atttypid, a.atttypmod)
                USING ERRCODE = 'datatype_mismatch',
                      HINT = 'Columns of type smallint, integer, bigint, numeric, real, double precision, boolean, text, varchar, uuid, date, timestamp, timestamptz and enums can be.';
        ELSIF included @> jsonb_build_array(jsonb_build_object('name', wanted)) THEN
            RAISE EXCEPTION 'foh: column % is to be included twice', quote_ident(wanted) USING ERRCODE = 'duplicate_column';
        END IF;
        -- In a restored database the numbers of columns may differ, so names are compared.
        before := (SELECT c FROM jsonb_array_elements(old.included) c
                   WHERE c ->> 'declared' = format_type(a.atttypid, a.atttypmod) AND foh._values_intact(c)
                     AND CASE WHEN old.source_oid = i.source_oid THEN (c ->> 'attnum')::int = a.attnum ELSE c ->> 'name' = a.attname END);
        IF before IS NULL THEN
            slots := slots + 1;
        END IF;
        included := included || jsonb_build_object(
            'name', a.attname, 'attnum', a.attnum, 'declared', format_type(a.atttypid, a.atttypmod), 'kept', kept,
            'type', CASE WHEN enum THEN format_type(foh._base_type(a.atttypid), NULL) ELSE foh._written_type(kept::regtype) END,
            'enum', enum, 'values', foh._enum_values(foh._base_type(a.atttypid)),
            'slot', coalesce((before ->> 'slot')::int, slots), 'filled', coalesce((before ->> 'filled')::boolean, old IS NULL));
    END LOOP;
    RETURN included;
END
$function$;

-- Adds columns to lists and stream for what the index includes now, and drops those for what it no longer includes.
CREATE OR REPLACE FUNCTION foh._replace_included(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    names constant jsonb := foh._names(new);
    was constant jsonb := coalesce((SELECT jsonb_object_agg(c ->> 'slot', c ->> 'kept') FROM jsonb_array_elements(old.included) c), '{}');
    is_now constant jsonb := coalesce((SELECT jsonb_object_agg(c ->> 'slot', c ->> 'kept') FROM jsonb_array_elements(new.included) c), '{}');
    c record;
BEGIN
    IF was = is_now THEN
        RETURN;
    END IF;
    -- A transaction that writes to the table now does so by the old trigger: wait for it, and let later ones wait.
    PERFORM foh._lock_tables(old, 'ACCESS EXCLUSIVE', true);
    FOR c IN SELECT e.key AS slot FROM jsonb_each(was) e WHERE NOT is_now ? e.key LOOP
        EXECUTE foh._render(format('ALTER TABLE {list} DROP COLUMN included_%1$s; ALTER TABLE {stream} DROP COLUMN included_%1$s', c.slot), names);
    END LOOP;
    FOR c IN SELECT e.key AS slot, e.value AS kept FROM jsonb_each_text(is_now) e WHERE NOT was ? e.key ORDER BY e.key::int LOOP
        EXECUTE foh._render(format('ALTER TABLE {list} ADD COLUMN included_%1$s %2$s[]; ALTER TABLE {list} ALTER COLUMN included_%1$s SET STORAGE EXTERNAL; '
                                   'ALTER TABLE {stream} ADD COLUMN included_%1$s %2$s', c.slot, c.kept), names);
    END LOOP;
    -- A build that was interrupted has filled in other columns.
    DELETE FROM foh.model_state s WHERE s.index = old.id AND s.version = 0 AND s.name IN ('plan', 'position');
END
$function$;

-- Notes that all lists have what the index includes. An updater calls this, which may not write to the column itself: what is in it becomes
-- part of functions.
CREATE OR REPLACE FUNCTION foh._filled(index int) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
    UPDATE foh.index i SET included = (SELECT jsonb_agg(c.value || '{"filled": true}' ORDER BY c.at) FROM jsonb_array_elements(i.included) WITH ORDINALITY AS c (value, at))
    WHERE i.id = $1
$function$;

-- Records values that were added to included enums. An updater calls this before it takes in rows that have them.
CREATE OR REPLACE FUNCTION foh._add_values(index int) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
    UPDATE foh.index i SET included = n.included
    FROM foh.index o CROSS JOIN LATERAL (
        SELECT jsonb_agg(CASE WHEN foh._values_intact(c.value) THEN c.value || jsonb_build_object('values', foh._enum_values(to_regtype(c.value ->> 'type'))) ELSE c.value END ORDER BY c.at) AS included
        FROM jsonb_array_elements(o.included) WITH ORDINALITY AS c (value, at)) n
    WHERE o.id = $1 AND i.id = o.id AND i.included @> '[{"enum": true}]' AND i.included <> n.included
$function$;

-- What the placeholders stand for that have to do with included columns; see foh._names. included: what foh._matched must know of them, by name: the
-- place of each among them, its type, and the type it is kept in. included_columns: for patterns.
CREATE OR REPLACE FUNCTION foh._included_names(i foh.index) RETURNS jsonb
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_build_object(
        'included', coalesce(jsonb_object_agg(c.value ->> 'name', jsonb_build_object('name', c.value -> 'name', 'at', c.at, 'type', c.value -> 'type', 'kept', c.value -> 'kept',
                                                                                     'enum', c.value -> 'enum')) FILTER (WHERE c.value IS NOT NULL), '{}')::text,
        'included_columns', coalesce(jsonb_agg(jsonb_build_object('number', c.value ->> 'slot', 'name', foh._quoted(c.value ->> 'name'), 'type', c.value ->> 'kept') ORDER BY c.at), '[]'))
    FROM jsonb_array_elements(i.included) WITH ORDINALITY AS c (value, at)
$function$;
