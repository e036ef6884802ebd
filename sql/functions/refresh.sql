-- Brings an index in line with its table after an ALTER: renamed columns and tables are followed by oid and attribute
-- number; embedding and labels may be given where a column was replaced. Makes missing triggers again.
CREATE OR REPLACE FUNCTION foh.refresh(name text, embedding name DEFAULT NULL, labels name DEFAULT NULL) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Settings of the session that change how text is read, names are quoted or numbers are written must not get into what is rendered here.
SET standard_conforming_strings = on
SET quote_all_identifiers = off
SET extra_float_digits = 1
SET lock_timeout = '10s'
AS $function$
DECLARE
    old foh.index := foh._index(name);
    new foh.index := old;
    citus constant text[] := foh._begin_local();
    c record;
BEGIN
    PERFORM foh._require_owner();
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
    new := foh._replace_index(old, new);
    PERFORM foh._make_functions(new);
    PERFORM foh._attach(new);
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;
