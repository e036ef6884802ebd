-- What the codes of a fallback mean, for people.
CREATE OR REPLACE FUNCTION foh._fallback(code text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE code
        WHEN 'building' THEN 'the index is being built'
        WHEN 'changed' THEN 'the source has changed'
        WHEN 'resync' THEN 'the source must be read again'
        WHEN 'unplaced' THEN 'many rows wait that no list leads to'
        WHEN 'small' THEN 'the index is small'
        WHEN 'asked' THEN 'recall 1 asks for the exact answer'
        WHEN NULL THEN NULL
        ELSE code END
$function$;
