-- The names of an index's objects begin with its name: with the longest suffix it must fit into 63 bytes.
CREATE OR REPLACE FUNCTION foh._check_name(name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF coalesce(name, '') = '' THEN
        RAISE EXCEPTION 'foh: an index needs a name' USING ERRCODE = 'invalid_name';
    ELSIF starts_with(name, '_') THEN
        RAISE EXCEPTION 'foh: index name % begins with an underscore, as functions of foh do: choose another', quote_literal(name)
            USING ERRCODE = 'invalid_name';
    ELSIF octet_length(name) > 44 THEN
        RAISE EXCEPTION 'foh: index name % is % bytes long; at most 44 leave room for the names of its tables', quote_literal(name), octet_length(name)
            USING ERRCODE = 'name_too_long';
    END IF;
END
$function$;
