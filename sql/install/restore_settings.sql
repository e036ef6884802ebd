-- Puts back the settings that trust.sql changed: the transaction may belong to an application, which goes on with it.
SELECT pg_catalog.set_config(s.key, s.value, true) FROM pg_catalog.jsonb_each_text(pg_catalog.current_setting('foh.caller_settings')::pg_catalog.jsonb) s;
-- And the settings of Citus that lock.sql changed, where it did.
SELECT pg_catalog.set_config('citus.enable_ddl_propagation', pg_catalog.split_part(s.was, ' ', 1), true),
       pg_catalog.set_config('citus.override_table_visibility', pg_catalog.split_part(s.was, ' ', 2), true),
       pg_catalog.set_config('foh.caller_citus', '', true)
FROM (SELECT pg_catalog.current_setting('foh.caller_citus', true) AS was) s WHERE s.was OPERATOR(pg_catalog.<>) ''::pg_catalog.text;
