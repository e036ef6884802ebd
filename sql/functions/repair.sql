-- Finds what the triggers did not see (logical replication, session_replication_role, ATTACH and DETACH PARTITION, a
-- data-only restore) and queues it: rows missing in the index, rows gone from the source, rows whose bits or labels differ.
CREATE OR REPLACE FUNCTION foh.repair(name text) RETURNS TABLE (missing bigint, gone bigint, changed bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    i foh.index := foh._index(name);
    p record;
BEGIN
    SELECT t.problem, t.detail INTO p FROM foh._problems(i) t LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'foh: index % cannot be repaired: % (%)', quote_literal(name), p.problem, p.detail
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF i.status = 'building' THEN
        RAISE EXCEPTION 'foh: index % has not been built', quote_literal(name)
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('foh-pg build %s places its rows.', name);
    END IF;
    RETURN QUERY EXECUTE format('SELECT * FROM foh.%I()', i.name || '_repair');
END
$function$;
