-- The objects of indexes that exist, from the present templates. Tables that a migration dropped, since their form has
-- changed, are made again empty: the source must then be read again, and searches read it until that is done.
DO $foh$
DECLARE
    ours constant name := current_user;
    i foh.index;
    handed_on boolean;
BEGIN
    FOR i IN SELECT x.* FROM foh.index x ORDER BY x.id LOOP
        IF to_regclass(format('foh.%I', i.name || '_stream')) IS NULL THEN
            PERFORM foh._make_tables(i);
            EXECUTE format('INSERT INTO foh.%I (op, version, center) VALUES (''r'', 0, 0)', i.name || '_stream');
        END IF;
    END LOOP;
    -- With the rights of the role that migrates: a superuser may act for every owner.
    PERFORM set_config('role', current_setting('foh.caller_role'), true);
    FOR i IN SELECT x.* FROM foh.index x JOIN pg_class c ON c.oid = x.source ORDER BY x.id LOOP
        -- The table has a new owner, and triggers call functions of the former one, which only a superuser may replace: the others drop
        -- and make them again, and so the triggers.
        handed_on := foh._acting_role(i.name) IS DISTINCT FROM foh._source_owner(i)
                     AND (SELECT NOT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user);
        IF handed_on THEN
            PERFORM foh._remove_triggers(i);
        END IF;
        PERFORM foh._make_functions(i);
        IF handed_on THEN
            PERFORM foh._attach(i);
        END IF;
        IF foh._citus_kind(i.source) = 'distributed' THEN
            PERFORM foh._attach_distributed(i);
        END IF;
    END LOOP;
    PERFORM set_config('role', ours, true);
END
$foh$;
