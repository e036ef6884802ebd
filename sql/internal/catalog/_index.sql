-- The index of that name, or an error that names those there are.
CREATE OR REPLACE FUNCTION foh._index(name text) RETURNS foh.index
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index;
BEGIN
    SELECT * INTO i FROM foh.index x WHERE x.name = _index.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: there is no index %', coalesce(quote_literal(name), 'NULL')
            USING ERRCODE = 'undefined_object',
                  HINT = 'Existing: ' || coalesce((SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM foh.index x),
                                                  'none; SELECT foh.create_index(...) makes one.');
    END IF;
    RETURN i;
END
$function$;
