-- Puts back the search_path that trust.sql changed: the transaction may belong to an application, which goes on with it.
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('foh.caller_search_path'), true);
