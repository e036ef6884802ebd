-- Remembers which functions there are before the present ones are made: see drop_outdated.sql.
SELECT pg_catalog.set_config('foh.functions_before',
    (SELECT coalesce(array_agg(p.ctid), '{}')::text FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'foh'::regnamespace), true)
