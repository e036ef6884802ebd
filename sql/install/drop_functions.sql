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
