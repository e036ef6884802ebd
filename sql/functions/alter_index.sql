-- Changes options of an index; foh._options says when each takes effect. The next update encodes everything again where homes,
-- neighbors or label_weight have changed.
CREATE OR REPLACE FUNCTION foh.alter_index(name text, options jsonb) RETURNS text
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
BEGIN
    PERFORM foh._require_owner();
    PERFORM foh._lock(old.id);
    PERFORM foh._check_source(old);
    -- A column that has another type or name now is a matter for foh.refresh.
    IF EXISTS (SELECT FROM foh._columns(old) c WHERE NOT c.usable) THEN
        PERFORM foh._refuse_changed(name);
    END IF;
    new.options := foh._check_options(alter_index.options, old.options);
    IF new.options -> 'triggers' <> old.options -> 'triggers' THEN
        PERFORM foh._lock_tables(old, 'ACCESS EXCLUSIVE', false);
        PERFORM foh._remove_triggers(old);
    END IF;
    new := foh._inspect_source(new);
    new := foh._replace_index(old, new);
    PERFORM foh._make_functions(new);
    PERFORM foh._attach(new);
    PERFORM foh._end_local(citus);
    RETURN name;
END
$function$;
