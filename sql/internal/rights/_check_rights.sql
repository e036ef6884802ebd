-- Raises an error where foh's owner may not do with a table what an index needs.
CREATE OR REPLACE FUNCTION foh._check_rights(relation oid) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ours constant name := foh._owner();
    c pg_class;
    lacking text;
BEGIN
    SELECT * INTO STRICT c FROM pg_class x WHERE x.oid = relation;
    PERFORM foh._refuse_owner(relation);
    lacking := concat_ws('; ',
        CASE WHEN NOT has_schema_privilege(ours, (SELECT e.extnamespace FROM pg_extension e WHERE e.extname = 'vector'), 'USAGE')
             THEN format('GRANT USAGE ON SCHEMA %s TO %I', foh._vector_schema(), ours) END,
        CASE WHEN NOT has_schema_privilege(ours, c.relnamespace, 'USAGE') THEN format('GRANT USAGE ON SCHEMA %s TO %I', c.relnamespace::regnamespace, ours) END,
        CASE WHEN NOT (has_table_privilege(ours, c.oid, 'SELECT') AND has_table_privilege(ours, c.oid, 'TRIGGER'))
             THEN format('GRANT SELECT, TRIGGER ON %s TO %I', foh._qualified(relation), ours) END);
    IF lacking <> '' THEN
        RAISE EXCEPTION 'foh: role %, which schema foh belongs to, lacks rights that an index on % needs', quote_ident(ours), foh._qualified(relation)
            USING ERRCODE = 'insufficient_privilege', HINT = lacking || ';';
    END IF;
    IF foh._hides_rows(c) THEN
        RAISE EXCEPTION 'foh: row-level security of % applies to %, as whom an index reads all rows', foh._qualified(relation), quote_ident(ours)
            USING ERRCODE = 'wrong_object_type',
                  HINT = CASE WHEN c.relforcerowsecurity THEN format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY; and let the application write as another role.', foh._qualified(relation))
                              ELSE format('ALTER TABLE %s OWNER TO %I;', foh._qualified(relation), ours) END;
    END IF;
END
$function$;
