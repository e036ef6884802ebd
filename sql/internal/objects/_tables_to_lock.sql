-- The application's tables of an index that are still there, each with its partitions, parents first. A table of another role is left
-- out: who is not its owner may not lock it, and making or dropping a trigger does so.
CREATE OR REPLACE FUNCTION foh._tables_to_lock(i foh.index) RETURNS oid[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(p.oid ORDER BY t.number, p.level, p.oid), '{}')
    FROM unnest(ARRAY[i.source, i.labels_from]::oid[]) WITH ORDINALITY AS t (oid, number)
    CROSS JOIN LATERAL foh._partitions(t.oid) p JOIN pg_class c ON c.oid = p.oid AND pg_has_role(c.relowner, 'USAGE')
$function$;
