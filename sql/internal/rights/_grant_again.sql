-- After the functions of an index were made anew: roles that could search or update it can do so with the new ones too.
CREATE OR REPLACE FUNCTION foh._grant_again(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT g.role, g.kind FROM foh._grantees(i) g LOOP
        IF r.kind = 'updater' THEN
            PERFORM foh._grant_index(i, r.role, 'updater');
        ELSE
            PERFORM foh._grant_reading(i, r.role, false);
        END IF;
    END LOOP;
END
$function$;
