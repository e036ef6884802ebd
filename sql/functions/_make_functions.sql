-- Makes the functions of an index: with the rights of who asks for it where these suffice, as those of a superuser do, or of a
-- role that may be both foh's owner and the table's; else with those of foh's owner.
CREATE OR REPLACE FUNCTION foh._make_functions(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    set_option constant text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    IF pg_has_role(current_user, foh._owner(), set_option) AND pg_has_role(current_user, foh._owner(), 'USAGE')
       AND pg_has_role(current_user, foh._source_owner(i), set_option) AND pg_has_role(current_user, foh._source_owner(i), 'USAGE') THEN
        PERFORM foh._define_functions(i);
    ELSE
        PERFORM foh._claim(i.source);
        PERFORM foh._functions_as_owner(i.id);
    END IF;
END
$function$;
