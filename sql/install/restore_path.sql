-- Puts back the search_path that trust.sql changed: the transaction may belong to an application, which goes on with it.
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('foh.caller_search_path'), true);
-- And the settings of Citus that lock.sql changed, where it did.
SELECT pg_catalog.set_config('citus.enable_ddl_propagation', pg_catalog.split_part(s.was, ' ', 1), true),
       pg_catalog.set_config('citus.override_table_visibility', pg_catalog.split_part(s.was, ' ', 2), true),
       pg_catalog.set_config('foh.caller_citus', '', true)
FROM (SELECT pg_catalog.current_setting('foh.caller_citus', true) AS was) s WHERE s.was OPERATOR(pg_catalog.<>) ''::pg_catalog.text;
