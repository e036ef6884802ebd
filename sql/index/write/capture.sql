-- The trigger of the source: finds the keys whose key, embedding or labels changed, and records them.
-- Bits, home and version of all rows come from one INSERT ... SELECT, so from one snapshot. The SET clauses pin its
-- plan, which may have been cached for one row and a table of one page: each row is looked up by key, and JIT is off.
-- Rows are taken as they were written. Where a trigger of the application has written to the table within another write
-- (setting foh.nested), a later write of the transaction may have the older image: then rows are read from the source.
CREATE OR REPLACE FUNCTION {capture}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET row_security = on
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $body$
#variable_conflict use_variable
DECLARE
    intact boolean := {intact}(TG_RELID);
    deferred boolean := coalesce(lower(current_setting('foh.defer', true)), '') IN ('on', 'true', 'yes', '1');
    nested boolean := coalesce(current_setting('foh.nested', true), '') = 'on';
    key_column name;
    touched {key_type}[];
BEGIN
    IF intact IS NULL THEN
        -- Either the index is gone, or it was created after this transaction took its snapshot: then an entry in the stream
        -- makes the next update read the whole source.
        IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        END IF;
        RETURN NULL;
    ELSIF TG_OP = 'TRUNCATE' THEN
        INSERT INTO {stream} (op, version, center) VALUES ('t', 0, 0);
        RETURN NULL;
    ELSIF NOT intact THEN
        -- The source no longer looks as recorded: queue the keys and warn. The write never fails for this.
        RAISE WARNING 'foh: % has changed since index % was created or refreshed; rows are queued', TG_RELID::regclass, {name}
            USING HINT = 'Run SELECT foh.refresh(' || quote_literal({name}) || ').';
        key_column := foh._key_column({id});
        IF key_column IS NULL THEN
            INSERT INTO {stream} (op, version, center) VALUES ('r', 0, 0);
        ELSE
            {queue_keys}
        END IF;
        RETURN NULL;
    END IF;
    IF pg_trigger_depth() > 1 AND NOT nested THEN
        PERFORM set_config('foh.nested', 'on', true);
    END IF;
    {record_rows}
    RETURN NULL;
END
$body$;
