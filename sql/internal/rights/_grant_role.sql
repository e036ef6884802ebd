-- Grants with the rights of the caller where they suffice (a superuser's do), else with those of foh's owner.
CREATE OR REPLACE FUNCTION foh._grant_role(i foh.index, role name, kind text, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF foh._has_both_rights(foh._source_owner(i)) THEN
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
