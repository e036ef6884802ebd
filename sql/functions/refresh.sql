-- Brings an index in line with its table after an ALTER: renamed columns and tables are followed by oid and attribute
-- number, a new owner too; embedding and labels may be given where a column was replaced. Makes missing triggers again.
CREATE OR REPLACE FUNCTION foh.refresh(name text, embedding name DEFAULT NULL, labels name DEFAULT NULL) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Names are compared as they were recorded.
SET quote_all_identifiers = off
-- The policies of foh show each role its own rows. A session that has switched row_security off would get errors instead.
SET row_security = on
SET lock_timeout = '10s'
AS $function$
DECLARE
    old foh.index := foh._index(name);
    new foh.index := old;
    citus constant text[] := foh._begin_local();
    c record;
BEGIN
    PERFORM foh._lock(old.id);
    PERFORM foh._check_source(old);
    FOR c IN SELECT * FROM foh._columns(old) LOOP
        CASE c.role
            WHEN 'embedding' THEN new.embedding := coalesce(refresh.embedding, c.present);
            WHEN 'labels' THEN new.labels := coalesce(refresh.labels, c.present);
            WHEN 'labels_key' THEN new.labels_key := c.present;
            ELSE new.key := c.present;
        END CASE;
        IF c.present IS NULL AND (CASE c.role WHEN 'embedding' THEN refresh.embedding WHEN 'labels' THEN refresh.labels END) IS NULL THEN
            RAISE EXCEPTION 'foh: column % of index % is gone (%)', quote_ident(c.recorded), quote_literal(name), c.role
                USING ERRCODE = 'undefined_column',
                      HINT = CASE WHEN c.role IN ('embedding', 'labels') THEN format('Name the column that took its place: foh.refresh(%L, %s => ...).', name, c.role)
                                  ELSE format('Drop the index and create it again: SELECT foh.drop_index(%L).', name) END;
        END IF;
    END LOOP;
    IF old.labels IS NULL THEN
        new.labels := refresh.labels;
    END IF;
    new := foh._inspect_source(new);
    PERFORM foh._check_columns(old, new);
    PERFORM foh._check_ownership(new.source);
    PERFORM foh._check_ownership(new.labels_from);
    -- The table has a new owner. The functions of the former owner will be dropped, and the triggers, which depend on two of
    -- these, are made again below.
    IF foh._acting_role(name) IS DISTINCT FROM foh._source_owner(new) THEN
        PERFORM foh._lock_tables(old, 'ACCESS EXCLUSIVE', false);
        PERFORM foh._remove_triggers(old);
    END IF;
    PERFORM foh._claim(new.source);
    new := foh._replace_index(new);
    PERFORM foh._make_functions(new);
    PERFORM foh._attach(new);
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;
