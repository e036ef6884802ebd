-- Indexes that exist are given to the owners of their tables, and what foh's owner was allowed to read there is taken back.
DO $foh$
DECLARE
    i foh.index;
    t record;
    ours constant name := foh._owner();
BEGIN
    -- With the rights of who migrates: a superuser may act for every owner.
    PERFORM set_config('role', current_setting('foh.caller_role'), true);
    FOR i IN SELECT x.* FROM foh.index x JOIN pg_class c ON c.oid = x.source ORDER BY x.name LOOP
        PERFORM foh._make_functions(i);
        FOR t IN SELECT c.oid::regclass AS relation, c.relowner, (SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a
                        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
                 FROM pg_class c WHERE c.oid IN (i.source, i.labels_from) AND c.relowner <> (SELECT oid FROM pg_roles WHERE rolname = ours)
        LOOP
            IF EXISTS (SELECT FROM pg_policy WHERE polrelid = t.relation AND polname = 'foh'
                       AND polroles = ARRAY[(SELECT oid FROM pg_roles WHERE rolname = ours)]) THEN
                EXECUTE format('DROP POLICY foh ON %s', t.relation);
            END IF;
            EXECUTE format('REVOKE SELECT (%s) ON %s FROM %I', t.columns, t.relation, ours);
        END LOOP;
    END LOOP;
    FOR t IN SELECT m.member::regrole AS member FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
             WHERE m.roleid = (SELECT oid FROM pg_roles WHERE rolname = ours) AND ours = 'foh_owner'
               AND m.member NOT IN (SELECT oid FROM pg_roles WHERE rolname IN (session_user, current_user)) AND NOT r.rolsuper AND NOT r.rolcreaterole
    LOOP
        RAISE WARNING 'foh: % is a member of %, and so may do everything in foh and in every table with an index', t.member, ours
            USING HINT = format('REVOKE %I FROM %s; and see foh.grant for what it needs.', ours, t.member);
    END LOOP;
    PERFORM set_config('role', ours, true);
END
$foh$;
