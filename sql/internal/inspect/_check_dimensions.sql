-- The dimensions of an index: those of the column, or those given where the column leaves them open.
CREATE OR REPLACE FUNCTION foh._check_dimensions(i foh.index, given int) RETURNS int
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    declared int := CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN nullif(i.embedding_typmod, -1) END;
    found int;
BEGIN
    IF declared IS NULL AND given IS NULL THEN
        EXECUTE format(CASE WHEN i.embedding_type IN ('vector', 'halfvec') THEN 'SELECT %3$s.vector_dims(%1$I) FROM %2$s WHERE %1$I IS NOT NULL LIMIT 1'
                            ELSE 'SELECT cardinality(%1$I) FROM %2$s WHERE cardinality(%1$I) > 0 LIMIT 1' END,
                       i.embedding, i.source_name, foh._vector_schema()) INTO found;
        IF found IS NULL THEN
            RAISE EXCEPTION 'foh: column % of % does not say how many dimensions it has, and no row does', quote_ident(i.embedding), i.source_name
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass the argument dimensions.';
        END IF;
    ELSIF given <> declared THEN
        RAISE EXCEPTION 'foh: dimensions is %, column % of % has %', given, quote_ident(i.embedding), i.source_name, declared
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave out the argument dimensions.';
    END IF;
    IF coalesce(declared, given, found) NOT BETWEEN 1 AND 16000 THEN
        RAISE EXCEPTION 'foh: % dimensions; between 1 and 16000 can be indexed', coalesce(declared, given, found) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce(declared, given, found);
END
$function$;
