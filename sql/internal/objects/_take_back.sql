-- Drops the functions of an index whose owner, a former owner of the table, the present role cannot act for; the owner of the schema
-- may drop them. They are made again afterwards. Two of them belong to triggers: foh.refresh and foh-pg migrate remove these first.
CREATE OR REPLACE FUNCTION foh._take_back(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
             WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = ANY (foh._object_names(i.name))
               AND NOT pg_has_role(current_user, p.proowner, 'USAGE')
    LOOP
        EXECUTE format('DROP FUNCTION %s', f.signature);
    END LOOP;
END
$function$;
