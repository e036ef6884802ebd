-- Back to the caller's role and settings: the transaction may be an application's and go on.
SELECT pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true),
       pg_catalog.set_config('check_function_bodies',
           pg_catalog.current_setting('foh.caller_check_function_bodies'), true),
       pg_catalog.set_config('search_path', pg_catalog.current_setting('foh.caller_search_path'), true);
