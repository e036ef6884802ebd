-- Raises an error unless the role that asks (see foh._claim) has the rights of the owner of the table, or of foh's owner.
CREATE OR REPLACE FUNCTION foh._claimed(source oid, owner name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    asking name;
BEGIN
    DELETE FROM foh.claim c WHERE c.source = _claimed.source AND c.transaction = pg_current_xact_id() RETURNING c.role INTO asking;
    IF asking IS NULL OR NOT (pg_has_role(asking, owner, 'USAGE') OR pg_has_role(asking, foh._owner(), 'USAGE')) THEN
        RAISE EXCEPTION 'foh: % belongs to role %, and % is not a member of that role', coalesce(foh._qualified(source), 'the index'), quote_ident(owner),
            coalesce(quote_ident(asking), 'who asks')
            USING ERRCODE = 'insufficient_privilege', HINT = 'Run this as the owner of the table or as a member of that role.';
    END IF;
END
$function$;
