-- Makes the tables of an index, and the first model in them. Hash functions that exist already stay.
CREATE OR REPLACE FUNCTION foh._make_tables(i foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $function$
DECLARE
    names jsonb := foh._names(i);
BEGIN
    EXECUTE foh._render((SELECT body FROM foh.template WHERE name = 'tables'), names);
    PERFORM foh._make_shard_table(names);
    -- What a search returns. A type of its own, so that the key keeps its name even where a parameter has the same name.
    IF to_regtype(names ->> 'result') IS NULL THEN
        EXECUTE foh._render('CREATE TYPE {result} AS ({key} {key_type}, {distance_name} float8, {score_name} float8)', names);
    END IF;
    -- Rows that fit a page stay in it: reading them out of TOAST costs three times as much.
    IF i.dimensions <= 2000 THEN
        EXECUTE foh._render('ALTER TABLE {projection} ALTER COLUMN weights SET STORAGE PLAIN', names);
    END IF;
    EXECUTE foh._render((SELECT body FROM foh.template WHERE name = 'first_model'), names);
END
$function$;
