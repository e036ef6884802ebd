-- What is wrong with the tables of an index: dropped, changed, or not watched by its triggers. After a colon, the statement that
-- helps, ready to be run.
CREATE OR REPLACE FUNCTION foh._check_tables(i foh.index) RETURNS TABLE (problem text, detail text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
-- Names are compared as they were recorded.
SET quote_all_identifiers = off
AS $function$
DECLARE
    r record;
    dropped boolean := false;
    refresh constant text := format('run SELECT foh.refresh(%L)', i.name);
    drop_index constant text := format('run SELECT foh.drop_index(%L)', i.name);
    distributed constant boolean := coalesce(foh._citus_kind(i.source) = 'distributed', false);
    citus constant text[] := foh._begin_local();
BEGIN
    FOR r IN SELECT t.relation::oid AS oid, t.name, t.suffix FROM (VALUES (i.source, i.source_name, 'capture'),
                    (i.labels_from, i.labels_from_name, 'capturelabels')) AS t (relation, name, suffix) WHERE t.name IS NOT NULL
    LOOP
        IF NOT EXISTS (SELECT FROM pg_class WHERE oid = r.oid) THEN
            problem := 'a table of the index was dropped: ' || drop_index;
            detail := r.name;
            RETURN NEXT;
            dropped := true;
            CONTINUE;
        END IF;
        IF foh._qualified(r.oid) <> r.name THEN
            problem := 'a table of the index was renamed: ' || refresh;
            detail := format('%s is now %s', r.name, foh._qualified(r.oid));
            RETURN NEXT;
        END IF;
        RETURN QUERY
            SELECT 'a table of the index can have none any more: undo the change, or ' || drop_index, format('%s %s', r.name, x.refusal)
            FROM (VALUES (foh._refusal(r.oid)), (CASE WHEN r.oid = i.source THEN foh._key_refusal(r.oid) END)) AS x (refusal)
            WHERE x.refusal IS NOT NULL;
        RETURN QUERY
            SELECT format('a trigger is missing or disabled: %s, then SELECT foh.repair(%L)', refresh, i.name), format('%s on %s', e.event, r.name)
            FROM unnest(ARRAY['insert', 'update', 'delete', 'truncate']) AS e (event)
            WHERE NOT EXISTS (SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
                              WHERE g.tgrelid = r.oid AND g.tgname = format('foh_%s_%s', i.name, e.event) AND g.tgenabled IN ('O', 'A')
                                AND CASE WHEN distributed THEN p.proname = (foh._node_names(i) ->> 'note_name')::name
                                         ELSE p.pronamespace = 'foh'::regnamespace AND p.proname = i.name || '_' || r.suffix END);
        RETURN QUERY
            SELECT CASE WHEN c.relforcerowsecurity THEN format('row-level security is forced on the owner, as whom the index reads: run ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', foh._qualified(c.oid))
                        ELSE format('row-level security hides rows from %I, as whom the index reads: run ALTER TABLE %s OWNER TO %1$I', foh._owner(), foh._qualified(c.oid)) END, r.name
            FROM pg_class c WHERE c.oid = r.oid AND foh._hides_rows(c);
        RETURN QUERY
            SELECT format('a table of the index belongs to a role without the rights of %I, as whom the index reads: run ALTER TABLE %s OWNER TO %1$I, or SELECT foh.drop_index(%L)',
                          foh._owner(), foh._qualified(c.oid), i.name),
                   format('%s belongs to %I', r.name, pg_get_userbyid(c.relowner))
            FROM pg_class c WHERE c.oid = r.oid AND NOT pg_has_role(c.relowner, foh._owner(), 'USAGE');
        RETURN QUERY
            SELECT format('the index may not read its table: run %s', g.command), r.name
            FROM pg_class c CROSS JOIN LATERAL (VALUES
                (has_schema_privilege(foh._owner(), c.relnamespace, 'USAGE'), format('GRANT USAGE ON SCHEMA %s TO %I', c.relnamespace::regnamespace, foh._owner())),
                (has_table_privilege(foh._owner(), c.oid, 'SELECT'), format('GRANT SELECT ON %s TO %I', foh._qualified(c.oid), foh._owner()))) AS g (may, command)
            WHERE c.oid = r.oid AND NOT g.may;
    END LOOP;
    IF dropped THEN
        PERFORM foh._end_local(citus);
        RETURN;
    END IF;
    RETURN QUERY
        SELECT 'pgvector has moved to another schema: ' || refresh, 'it is in ' || foh._vector_schema()
        FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (i.name || '_search')::name
          AND strpos(p.prosrc, foh._vector_schema() || '.vector_dims(') = 0;
    RETURN QUERY
        SELECT 'the index may not use the schema of pgvector: run ' || g.command, g.command
        FROM (SELECT format('GRANT USAGE ON SCHEMA %s TO %I', foh._vector_schema(), foh._owner()) AS command) g
        WHERE NOT has_schema_privilege(foh._owner(), (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'vector'), 'USAGE');
    RETURN QUERY
        SELECT 'a column has changed: ' || refresh,
               format('%s %I is %s', c.role, c.recorded, CASE WHEN c.present IS NULL THEN 'gone'
                      WHEN c.present <> c.recorded THEN format('named %I', c.present) ELSE 'of type ' || format_type(c.type, c.typmod) END)
        FROM foh._columns(i) c WHERE NOT c.usable;
    PERFORM foh._end_local(citus);
END
$function$;
