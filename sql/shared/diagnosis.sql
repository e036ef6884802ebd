-- What is wrong with an index, and which statement helps.

-- What keeps triggers and functions from reading or watching the tables of an index as they are.
CREATE OR REPLACE FUNCTION foh._obstacles(i foh.index) RETURNS TABLE (what text, was text, is_now text, cure text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT o.what, o.was, o.is_now, o.cure
    FROM (SELECT foh._owner() AS owner, format('SELECT foh.refresh(%L)', i.name) AS refresh, format('SELECT foh.drop_index(%L)', i.name) AS drop_index,
                 coalesce(foh._citus_kind(i.source) = 'distributed', false) AS distributed) f
    CROSS JOIN (VALUES (i.source, i.source_name, 'capture'), (i.labels_from, i.labels_from_name, 'capturelabels')) AS r (oid, name, suffix)
    JOIN pg_class c ON c.oid = r.oid
    CROSS JOIN LATERAL (
        SELECT 'a table can no longer have an index' AS what, r.name AS was, x.refusal AS is_now, 'undo the change, or run ' || f.drop_index AS cure
        FROM (VALUES (foh._refusal(c.oid)), (CASE WHEN r.suffix = 'capture' THEN foh._key_refusal(c.oid, ARRAY(SELECT p.name::name FROM foh._present(i) p WHERE p.role = 'key' AND p.name IS NOT NULL)) END)) AS x (refusal) WHERE x.refusal IS NOT NULL
        UNION ALL
        SELECT 'a trigger is missing or disabled', format('%s on %s', e.event, r.name), NULL, format('run %s, then SELECT foh.repair(%L)', f.refresh, i.name)
        FROM unnest(ARRAY['insert', 'update', 'delete', 'truncate']) AS e (event)
        WHERE NOT EXISTS (SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
                          WHERE g.tgrelid = c.oid AND g.tgname = format('foh_%s_%s', i.name, e.event) AND g.tgenabled IN ('O', 'A')
                            AND CASE WHEN f.distributed THEN p.proname = (foh._node_names(i) ->> 'note_name')::name
                                     ELSE p.pronamespace = 'foh'::regnamespace AND p.proname = i.name || '_' || r.suffix END)
        UNION ALL
        SELECT CASE WHEN c.relforcerowsecurity THEN 'row-level security is forced on the owner, as whom the index reads'
                       ELSE format('row-level security hides rows from %I, as whom the index reads', f.owner) END, r.name, NULL,
               format(CASE WHEN c.relforcerowsecurity THEN 'run ALTER TABLE %s NO FORCE ROW LEVEL SECURITY' ELSE 'run ALTER TABLE %s OWNER TO %I' END, foh._qualified(c.oid), f.owner)
        WHERE foh._hides_rows(c)
        UNION ALL
        SELECT format('a table of the index belongs to a role without the rights of %I, as whom the index reads', f.owner),
               r.name, format('belongs to %I', pg_get_userbyid(c.relowner)),
               format('run ALTER TABLE %s OWNER TO %I, or %s', foh._qualified(c.oid), f.owner, f.drop_index)
        WHERE NOT pg_has_role(c.relowner, f.owner, 'USAGE')
        UNION ALL
        SELECT 'the index may not read its table', r.name, NULL, 'run ' || g.command
        FROM (VALUES (has_schema_privilege(f.owner, c.relnamespace, 'USAGE'), format('GRANT USAGE ON SCHEMA %s TO %I', c.relnamespace::regnamespace, f.owner)),
                     (has_table_privilege(f.owner, c.oid, 'SELECT'), format('GRANT SELECT ON %s TO %I', foh._qualified(c.oid), f.owner))) AS g (may, command)
        WHERE NOT g.may) o
    UNION ALL
    SELECT 'pgvector has moved to another schema', 'it', 'is in ' || foh._vector_schema(), format('run SELECT foh.refresh(%L)', i.name)
    FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name AND strpos(p.prosrc, foh._vector_schema() || '.vector_dims(') = 0
    UNION ALL
    SELECT 'the index may not use the schema of pgvector', foh._vector_schema(), NULL, format('run GRANT USAGE ON SCHEMA %s TO %I', foh._vector_schema(), foh._owner())
    WHERE NOT has_schema_privilege(foh._owner(), (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'vector'), 'USAGE')
$function$;

-- What is wrong with an index: objects of it that were dropped, or else its tables. If even that cannot be found out, the reason is what
-- is wrong, so that the other indexes can be looked at all the same.
CREATE OR REPLACE FUNCTION foh._problems(i foh.index) RETURNS TABLE (what text, was text, is_now text, cure text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
-- Names are compared as they were recorded.
SET quote_all_identifiers = off
AS $function$
DECLARE
    citus text[];
BEGIN
    -- What only a distributed table has, its table of shards too, foh.refresh makes again.
    RETURN QUERY
        SELECT CASE WHEN m.is_table THEN 'tables of the index in foh were dropped' ELSE 'functions of the index were dropped' END, string_agg(m.name, ', ' ORDER BY m.name), NULL::text,
               format(CASE WHEN m.is_table THEN 'run SELECT foh.drop_index(%L), and create it again' ELSE 'run SELECT foh.refresh(%L), then SELECT foh.repair(%1$L)' END, i.name)
        FROM (SELECT format('foh.%I', o.object) AS name, t.kind = 'table' AND t.condition <> 'distributed' AS is_table
              FROM foh._templates(i) t JOIN foh._object_names(i.name) o ON o.suffix = t.name
              WHERE CASE t.kind WHEN 'table' THEN NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'foh'::regnamespace AND c.relname = o.object)
                                WHEN 'function' THEN NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = o.object) END) m
        GROUP BY m.is_table ORDER BY m.is_table DESC LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;
    citus := foh._begin_local();
    RETURN QUERY SELECT d.what, d.was, d.is_now, d.cure FROM foh._differences(i) d;
    RETURN QUERY SELECT * FROM foh._obstacles(i);
    PERFORM foh._end_local(citus);
EXCEPTION WHEN OTHERS THEN
    RETURN QUERY SELECT 'the index cannot be looked at', SQLERRM, NULL::text, format('run SELECT foh.refresh(%L)', i.name);
END
$function$;
