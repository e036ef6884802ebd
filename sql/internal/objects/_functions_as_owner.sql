-- The same as foh._define_functions with the rights of foh's owner, for the owner of the table to call.
CREATE OR REPLACE FUNCTION foh._functions_as_owner(index int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
BEGIN
    SELECT * INTO STRICT i FROM foh.index x WHERE x.id = index;
    PERFORM foh._claimed(i.source, foh._source_owner(i));
    PERFORM foh._define_functions(i);
END
$function$;
