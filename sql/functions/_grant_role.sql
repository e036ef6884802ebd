-- Grants with the rights of a superuser who asks for it, else with those of foh's owner.
CREATE OR REPLACE FUNCTION foh._grant_role(i foh.index, role name, kind text, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        IF kind = 'reader' THEN
            PERFORM foh._grant_reading(i, role, revoke);
        ELSE
            PERFORM foh._grant_updating(i, role, revoke);
        END IF;
    ELSE
        PERFORM foh._claim(i.source);
        PERFORM foh._grant_as_owner(i.id, role, kind, revoke);
    END IF;
END
$function$;
