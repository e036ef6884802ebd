-- Only the owner of a table may put triggers on it and grant rights on it.
CREATE OR REPLACE FUNCTION foh._check_ownership(relation regclass) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner name := (SELECT r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE c.oid = relation);
BEGIN
    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
        RAISE EXCEPTION 'foh: % belongs to role %, and % is not a member of that role', relation, quote_ident(owner), quote_ident(current_user)
            USING ERRCODE = 'insufficient_privilege', HINT = 'Run this as the owner of the table or as a member of that role.';
    END IF;
END
$function$;
