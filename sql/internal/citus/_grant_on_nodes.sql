-- Grants or revokes the one function that a search of a distributed table calls on the nodes and that PUBLIC may not call.
CREATE OR REPLACE FUNCTION foh._grant_on_nodes(i foh.index, role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was text[];
BEGIN
    IF foh._citus_kind(i.source) = 'distributed' THEN
        was := foh._begin_spread(i);
        EXECUTE format(CASE WHEN revoke THEN 'REVOKE EXECUTE ON FUNCTION %s FROM %I' ELSE 'GRANT EXECUTE ON FUNCTION %s TO %I' END,
                       to_regproc(foh._node_names(i) ->> 'waiting')::regprocedure, role);
        PERFORM foh._end_spread(was);
    END IF;
END
$function$;
