-- Renames the columns of an index's results after its key column was renamed, since CREATE OR REPLACE cannot do that.
CREATE OR REPLACE FUNCTION foh._rename_key(old foh.index, new foh.index) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    was jsonb := foh._names(old);
    names jsonb := foh._names(new);
    candidates oid := (SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.proname = old.name || '_candidates');
    c record;
BEGIN
    EXECUTE format('DROP FUNCTION %s', candidates::regprocedure);
    -- In two steps, through names that are not in use: the new name of one column may be the old name of another.
    FOR c IN SELECT t.name, t.position FROM unnest(ARRAY['key', 'distance_name', 'score_name']) WITH ORDINALITY AS t (name, position) LOOP
        EXECUTE format('ALTER TYPE %s RENAME ATTRIBUTE %s TO %I', was ->> 'result', was ->> c.name, '$' || c.position);
    END LOOP;
    FOR c IN SELECT t.name, t.position FROM unnest(ARRAY['key', 'distance_name', 'score_name']) WITH ORDINALITY AS t (name, position) LOOP
        EXECUTE format('ALTER TYPE %s RENAME ATTRIBUTE %I TO %s', was ->> 'result', '$' || c.position, names ->> c.name);
    END LOOP;
END
$function$;
