-- Indexes of 0.1.0: their lists have another form now, and their functions belong to the owner of the table. The tables of an
-- index are dropped here, all but the hash functions, and made again by install/indexes.sql; the stream then says that the
-- source must be read again, which covers every entry that waited.
DO $foh$
DECLARE
    ours constant name := current_user;
    caller constant name := coalesce(nullif(current_setting('foh.caller_role'), 'none'), session_user);
    i foh.index;
    t record;
    f record;
BEGIN
    -- With the rights of who migrates: foh's owner of 0.1.0 may not lock an application's table.
    PERFORM set_config('role', caller, true);
    FOR t IN SELECT DISTINCT c.oid, c.oid::regclass AS relation, r.rolname AS owner, x.name
             FROM foh.index x JOIN pg_class c ON c.oid IN (x.source, x.labels_from) JOIN pg_roles r ON r.oid = c.relowner ORDER BY c.oid
    LOOP
        IF NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = caller) AND NOT pg_has_role(ours, t.owner, 'USAGE') THEN
            RAISE EXCEPTION 'index % is on %, which belongs to role %: from this version on an index belongs to the owner of its table, and role % may not act for that role',
                quote_literal(t.name), t.relation, quote_ident(t.owner), quote_ident(ours)
                USING ERRCODE = 'FH001', HINT = CASE
                    WHEN pg_has_role(t.owner, ours, 'MEMBER')
                    THEN format('Migrate as a superuser, or let one run REVOKE %I FROM %I; GRANT %2$I TO %1$I; first.', ours, t.owner)
                    ELSE format('Migrate as a superuser, or let one run GRANT %I TO %I; first.', t.owner, ours) END;
        END IF;
        -- Writers wait here, before their trigger runs. One that waited inside of it would go on with a function that is gone.
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t.relation);
        -- What foh's owner was allowed to read is taken back.
        IF EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = t.oid AND p.polname = 'foh'
                   AND p.polroles = ARRAY[(SELECT r.oid FROM pg_roles r WHERE r.rolname = ours)]) THEN
            EXECUTE format('DROP POLICY foh ON %s', t.relation);
        END IF;
        IF t.owner <> ours THEN
            EXECUTE format('REVOKE SELECT (%s) ON %s FROM %I', (SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a
                           WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped), t.relation, ours);
        END IF;
    END LOOP;
    FOR t IN SELECT r.rolname AS member FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
             WHERE m.roleid = (SELECT o.oid FROM pg_roles o WHERE o.rolname = ours) AND ours = 'foh_owner'
               AND r.rolname NOT IN (session_user, caller) AND NOT r.rolsuper AND NOT r.rolcreaterole
    LOOP
        RAISE WARNING 'foh: % is a member of %, and so may do everything in foh and in every table with an index', quote_ident(t.member), quote_ident(ours)
            USING HINT = format('SELECT foh.grant(owner => %L) gives it the right to have indexes on its own tables in place of that; foh.grant(updater => ...) less.', t.member);
    END LOOP;
    PERFORM set_config('role', ours, true);

    FOR i IN SELECT x.* FROM foh.index x ORDER BY x.id LOOP
        FOR t IN SELECT s.suffix FROM unnest('{center,center_code,gone,list,sample,item,stream}'::text[]) AS s (suffix) LOOP
            EXECUTE format('DROP TABLE foh.%I', i.name || '_' || t.suffix);
        END LOOP;
        -- Triggers hold on to capture; who may search is written on search. Both are replaced in place.
        FOR f IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
                 WHERE p.pronamespace = 'foh'::regnamespace AND p.proname IN (SELECT (i.name || '_' || s)::name
                     FROM unnest('{place,record,intact,check,repair,candidates,encode,explain,near,nearest,entries,state,exact,hamming,check_code,hash_functions,describe}'::text[]) s)
        LOOP
            EXECUTE format('DROP FUNCTION %s', f.signature);
        END LOOP;
    END LOOP;
END
$foh$;
