-- One migration at a time in this database: the others wait here and then find the work done.
SELECT pg_catalog.pg_advisory_xact_lock(6713192, 0);
