-- Checks the arguments of foh.create_index that can be judged without the table.
CREATE OR REPLACE FUNCTION foh._check_arguments(i foh.index) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF i.bits IS NULL OR i.bits NOT BETWEEN 8 AND 1024 THEN
        RAISE EXCEPTION 'foh: bits is %, it must be between 8 and 1024 (64 suits most tables)', coalesce(i.bits::text, 'NULL') USING ERRCODE = 'invalid_parameter_value';
    ELSIF i.distance IS NULL OR i.distance NOT IN ('cosine', 'l2', 'ip') THEN
        RAISE EXCEPTION 'foh: distance is %, it must be cosine, l2 or ip', coalesce(quote_literal(i.distance), 'NULL') USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$function$;
