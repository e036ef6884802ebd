-- Around the functions, views and templates of the present version, which are all made again.

-- foh: step remember_functions
-- Remembers which functions there are before the present ones are made: see drop_outdated.
SELECT pg_catalog.set_config('foh.functions_before',
    (SELECT coalesce(array_agg(p.ctid), '{}')::text FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'foh'::regnamespace), true)

-- foh: step drop_outdated
-- Drops the shared functions that an earlier version made and the present one does not have.
DO $foh$
BEGIN
    PERFORM foh._drop_outdated(ARRAY(
        SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'foh'::regnamespace AND p.oid IS DISTINCT FROM to_regprocedure('foh._as_owner(text)')
            AND NOT EXISTS (SELECT FROM foh.index i WHERE p.oid IN (SELECT o.oid FROM foh._functions(i.name) o))), current_setting('foh.functions_before')::tid[]);
END
$foh$;

-- foh: step grants
-- PostgreSQL lets PUBLIC execute every new function. This runs last, in the transaction that made the functions.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA foh FROM PUBLIC;
REVOKE ALL ON SCHEMA foh FROM PUBLIC;

-- foh: step indexes
-- The functions of indexes that exist, from the present templates.
DO $foh$
DECLARE
    i foh.index;
BEGIN
    FOR i IN SELECT x.* FROM foh.index x JOIN pg_class c ON c.oid = x.source ORDER BY x.id LOOP
        PERFORM foh._make_functions(i);
        -- The present version may have functions that readers call and an earlier one had not.
        PERFORM foh._grant_reading(i, r, false) FROM foh._readers(i) r;
        IF foh._citus_kind(i.source) = 'distributed' THEN
            PERFORM foh._attach_distributed(i);
        END IF;
    END LOOP;
END
$foh$;

-- foh: step drop_functions
-- Drops the indexes first, with all that foh.drop_index removes from the application's tables. Then drops our views and our
-- functions, in one statement each: they may depend on each other, and an object of somebody else that depends on one of
-- them stops the removal.
DO $foh$
DECLARE
    victim text;
BEGIN
    FOR victim IN SELECT name FROM foh.index ORDER BY name LOOP
        PERFORM foh.drop_index(victim);
    END LOOP;

    SELECT string_agg(format('foh.%I', relname), ', ') INTO victim
    FROM pg_class WHERE relnamespace = 'foh'::regnamespace AND relkind = 'v';
    IF victim IS NOT NULL THEN
        EXECUTE 'DROP VIEW ' || victim;
    END IF;

    SELECT string_agg(oid::regprocedure::text, ', ') INTO victim
    FROM pg_proc WHERE pronamespace = 'foh'::regnamespace AND oid IS DISTINCT FROM to_regprocedure('foh._as_owner(text)');
    IF victim IS NOT NULL THEN
        EXECUTE 'DROP ROUTINE ' || victim;
    END IF;

    DELETE FROM foh.template;
END
$foh$;
