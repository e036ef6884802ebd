-- Two settings of Citus for work on an index, and what they were, for foh._end_local; null where there is no Citus. What is done to
-- schema foh stays on this node: Citus would repeat it on the workers as foh's owner, who cannot log in. And the catalog shows
-- shards, which Citus hides: of a reference table the index follows the copy of this node. An error undoes both.
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
