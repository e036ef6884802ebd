-- One migration at a time in this database: the others wait here and then find the work done.
SELECT pg_catalog.pg_advisory_xact_lock(6713192, 0);
-- Schema foh is on this node alone: Citus, where it is installed, would repeat all this on the workers.
-- Citus also hides shards, which some indexes follow. restore_settings.sql puts both settings back.
SELECT pg_catalog.set_config('foh.caller_citus', pg_catalog.concat_ws(' ', s.propagation, s.visibility), true),
       pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true), pg_catalog.set_config('citus.override_table_visibility', 'off', true)
FROM (SELECT pg_catalog.current_setting('citus.enable_ddl_propagation', true) AS propagation,
             pg_catalog.current_setting('citus.override_table_visibility', true) AS visibility) s WHERE s.propagation OPERATOR(pg_catalog.<>) ''::pg_catalog.text;
