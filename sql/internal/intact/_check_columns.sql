-- An error where the columns of an index are no longer what its tables were made for.
CREATE OR REPLACE FUNCTION foh._check_columns(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    d int;
BEGIN
    IF new.key_type <> old.key_type THEN
        RAISE EXCEPTION 'foh: the key of % was % when index % was created and is % now', new.source_name, old.key_type, quote_literal(old.name), new.key_type
            USING ERRCODE = 'datatype_mismatch', HINT = format('Drop the index and create it again: SELECT foh.drop_index(%L).', old.name);
    END IF;
    d := foh._check_dimensions(new, CASE WHEN new.embedding_typmod = -1 OR new.embedding_type LIKE '%[]' THEN old.dimensions END);
    IF d <> old.dimensions THEN
        RAISE EXCEPTION 'foh: the embedding has % dimensions now, index % was made for %', d, quote_literal(old.name), old.dimensions
            USING ERRCODE = 'datatype_mismatch', HINT = 'Create a new index for the new embedding, then drop this one.';
    END IF;
END
$function$;
