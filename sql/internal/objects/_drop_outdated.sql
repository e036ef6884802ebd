-- Drops the functions of an index that were made anew with other arguments: CREATE OR REPLACE leaves the old one beside the new
-- one, and a call that fits both is refused. before: where each function stood in pg_proc (ctid) before they were made anew.
-- Roles that may execute a dropped function may execute its successor. An object that depends on such a function is never
-- dropped: its author must decide.
CREATE OR REPLACE FUNCTION foh._drop_outdated(i foh.index, before tid[]) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    f record;
    statement text;
    users text;
BEGIN
    FOR f IN SELECT o.oid::regprocedure AS signature, n.oid::regprocedure AS successor,
                    ARRAY(SELECT format('GRANT EXECUTE ON FUNCTION %s TO %s', n.oid::regprocedure, a.grantee::regrole)
                          FROM aclexplode(o.proacl) a WHERE a.grantee NOT IN (0, o.proowner)) AS grants
             FROM pg_proc o JOIN pg_proc n ON n.pronamespace = o.pronamespace AND n.proname = o.proname
             WHERE o.pronamespace = 'foh'::regnamespace AND o.oid IN (SELECT x.oid FROM foh._functions(i.name) x)
               AND o.ctid = ANY (before) AND n.ctid <> ALL (before)
    LOOP
        FOREACH statement IN ARRAY f.grants LOOP
            EXECUTE statement;
        END LOOP;
        BEGIN
            EXECUTE format('DROP FUNCTION %s', f.signature);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
            RAISE EXCEPTION 'foh: % is replaced by %, and other objects use it', f.signature, f.successor
                USING ERRCODE = 'dependent_objects_still_exist', DETAIL = users,
                      HINT = 'Drop these, try again, and create them anew with the new arguments.';
        END;
    END LOOP;
END
$function$;
