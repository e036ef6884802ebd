-- Changes two settings of Citus for work on an index, and returns what they were, for foh._end_local; null where there is no Citus.
-- One keeps changes of schema foh on this node: Citus would repeat them on the workers. The other
-- shows shards in the catalog: the index of a reference table follows the copy on this node. An error undoes both.
CREATE OR REPLACE FUNCTION foh._begin_local() RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was text[];
BEGIN
    IF current_setting('citus.enable_ddl_propagation', true) <> '' THEN
        was := ARRAY[current_setting('citus.enable_ddl_propagation'), current_setting('citus.override_table_visibility')];
        PERFORM foh._end_local('{off,off}');
    END IF;
    RETURN was;
END
$function$;
