-- Makes the functions of an index: with the rights of the caller where they suffice (a superuser's do), else with those of foh's owner.
CREATE OR REPLACE FUNCTION foh._make_functions(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF foh._has_both_rights(foh._source_owner(i)) THEN
        PERFORM foh._define_functions(i);
    ELSE
        PERFORM foh._claim(i.source);
        PERFORM foh._functions_as_owner(i.id);
    END IF;
END
$function$;
