-- What trust.sql changed: the transaction may be an application's and go on.
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('foh.caller_search_path'), true);
