-- Takes back from a role what all indexes share, once it can neither search nor update any of them and owns no table of one.
CREATE OR REPLACE FUNCTION foh._revoke_unused(role name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF has_function_privilege(role, 'foh.create_index(text,regclass,name,name,regclass,name,int,int,text,int,int,int,int,float8,jsonb)', 'EXECUTE') THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM foh.index x JOIN pg_proc p ON p.pronamespace = 'foh'::regnamespace AND p.proname = (x.name || '_search')::name
                   WHERE has_function_privilege(role, p.oid, 'EXECUTE') OR has_table_privilege(role, x.stream, 'SELECT')) THEN
        PERFORM foh._revoke_shared(role);
    END IF;
END
$function$;
