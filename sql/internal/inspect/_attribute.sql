-- A column of a table, or an error that lists those it has.
CREATE OR REPLACE FUNCTION foh._attribute(relation oid, column_name name, argument text) RETURNS pg_catalog.pg_attribute
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    a pg_attribute;
BEGIN
    SELECT * INTO a FROM pg_attribute x
    WHERE x.attrelid = relation AND x.attname = column_name AND x.attnum > 0 AND NOT x.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'foh: % has no column % (argument %)', foh._qualified(relation), coalesce(quote_ident(column_name), 'NULL'), argument
            USING ERRCODE = 'undefined_column',
                  HINT = 'Its columns: ' || (SELECT string_agg(quote_ident(x.attname), ', ' ORDER BY x.attnum) FROM pg_attribute x
                                             WHERE x.attrelid = relation AND x.attnum > 0 AND NOT x.attisdropped) || '.';
    END IF;
    IF a.attgenerated = 'v' THEN
        RAISE EXCEPTION 'foh: column % of % is a virtual generated column, which triggers do not see (argument %)',
            quote_ident(a.attname), foh._qualified(relation), argument USING ERRCODE = 'feature_not_supported', HINT = 'Make it STORED.';
    END IF;
    RETURN a;
END
$function$;
