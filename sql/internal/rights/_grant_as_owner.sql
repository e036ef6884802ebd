-- Grants as foh._grant_role does, but with the rights of foh's owner, for the owner of the table to call.
CREATE OR REPLACE FUNCTION foh._grant_as_owner(index int, role name, kind text, revoke boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
BEGIN
    SELECT * INTO STRICT i FROM foh.index x WHERE x.id = _grant_as_owner.index;
    PERFORM foh._claimed(i.source, foh._source_owner(i));
    IF kind = 'reader' THEN
        PERFORM foh._grant_reading(i, role, revoke);
    ELSE
        PERFORM foh._grant_updating(i, role, revoke);
    END IF;
END
$function$;
