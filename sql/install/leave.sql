-- Back to the caller's role and settings, all but the search_path: the transaction may be an application's and go on.
SELECT pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true),
       pg_catalog.set_config('check_function_bodies',
           pg_catalog.current_setting('foh.caller_check_function_bodies'), true);
