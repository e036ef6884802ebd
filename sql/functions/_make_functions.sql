-- Makes the functions of an index: with the rights of a superuser who asks for it, else with those of foh's owner.
CREATE OR REPLACE FUNCTION foh._make_functions(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM foh._define_functions(i);
    ELSE
        PERFORM foh._claim(i.source);
        PERFORM foh._functions_as_owner(i.id);
    END IF;
END
$function$;
