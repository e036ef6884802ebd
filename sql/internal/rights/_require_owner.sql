-- Raises an error unless the present role is the one that schema foh belongs to. A superuser, too, must become that role first: what
-- the role has attached to its tables would otherwise run with the rights of the superuser.
CREATE OR REPLACE FUNCTION foh._require_owner() RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF current_user <> foh._owner() THEN
        RAISE EXCEPTION 'foh: schema foh belongs to role %, and this session acts as %', quote_ident(foh._owner()), quote_ident(current_user)
            USING ERRCODE = 'insufficient_privilege', HINT = format('Connect as %I, or SET ROLE %1$I first.', foh._owner());
    END IF;
END
$function$;
