-- The tables and functions that every index has and this one has not: somebody dropped them.
CREATE OR REPLACE FUNCTION foh._missing_objects(i foh.index) RETURNS TABLE (name text, is_table boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT n.names ->> o.suffix, o.is_table
    FROM (SELECT foh._names(i) AS names) n
    CROSS JOIN (SELECT s.suffix, true AS is_table FROM unnest('{projection,quantizer,area,center,list,sample,item,stream}'::text[]) AS s (suffix)
                UNION ALL
                SELECT s.suffix, false FROM unnest('{place,record,intact,capture,check,repair,follow,search,candidates,explain,near,nearest_centers,state,exact,exact_distance,score,describe,rows,unchanged,answer}'::text[]) AS s (suffix)) o
    WHERE CASE WHEN o.is_table THEN to_regclass(n.names ->> o.suffix) IS NULL
               ELSE NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = (parse_ident(n.names ->> o.suffix))[2]) END
$function$;
