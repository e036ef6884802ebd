-- The collation of a column as a clause, so that two columns of different collations can be compared; '' for types
-- without one.
CREATE OR REPLACE FUNCTION foh._collate(relation oid, column_name name) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce((SELECT format(' COLLATE %I.%I', n.nspname, c.collname)
                     FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation JOIN pg_namespace n ON n.oid = c.collnamespace
                     WHERE a.attrelid = relation AND a.attname = column_name AND NOT a.attisdropped), '')
$function$;
