-- Whether the names in a search still mean the table and the columns of the index, no row lies in a table that inherits, and keys are
-- unique. The catalog is read as of the snapshot.
CREATE OR REPLACE FUNCTION foh._source_intact(i foh.index) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(to_regclass(i.source_name) = i.source, false)
           AND NOT EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent WHERE h.inhparent = i.source AND c.relkind <> 'p')
           AND 2 = (SELECT count(*) FROM foh._columns(i) c
                    WHERE c.usable AND (c.role = 'embedding' OR c.role = 'key' AND EXISTS (
                        SELECT FROM pg_index x WHERE x.indrelid = i.source AND x.indisprimary AND x.indnkeyatts = 1 AND x.indkey[0] = c.attnum)))
$function$;
