-- Called first by every function that reads tables of the application as foh's owner. Locks each, so that nobody alters it before the
-- transaction ends, and refuses one whose owner does not have our rights: what that role has attached to the table would run with them.
-- Policies never run here: such functions set row_security off, which makes reading fail instead.
CREATE OR REPLACE FUNCTION foh._open(VARIADIC tables text[]) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $function$
DECLARE
    name text;
    relation regclass;
BEGIN
    FOREACH name IN ARRAY tables LOOP
        LOOP
            relation := name::regclass;
            -- A distributed table of Citus is locked by Citus, shard by shard.
            EXIT WHEN foh._citus_kind(relation) IS NOT NULL;
            EXECUTE format('SELECT FROM %s LIMIT 0', relation);
            -- A table that was renamed before it was locked may have left its name to another.
            EXIT WHEN to_regclass(name) = relation;
        END LOOP;
        PERFORM foh._refuse_owner(relation);
    END LOOP;
END
$function$;
