-- Makes a role a member of foh's owner, or takes it back: what the updater and whoever creates indexes needs.
CREATE OR REPLACE FUNCTION foh._grant_ownership(role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner name := foh._owner();
BEGIN
    IF role = owner THEN
        RETURN;
    ELSIF revoke THEN
        EXECUTE format('REVOKE %I FROM %I', owner, role);
    ELSE
        EXECUTE format('GRANT %I TO %I', owner, role)
                || CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET TRUE' ELSE '' END;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'foh: % may not hand out membership in %', quote_ident(current_user), quote_ident(owner)
        USING ERRCODE = 'insufficient_privilege', DETAIL = SQLERRM,
              HINT = format('Run this as the role that installed foh, or as one that has ADMIN OPTION on %I.', owner);
END
$function$;
