-- Goes back to the caller's role and settings, except for the search_path: the transaction may belong to an application, which
-- goes on with it.
SELECT pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true),
       pg_catalog.set_config('check_function_bodies',
           pg_catalog.current_setting('foh.caller_check_function_bodies'), true);
