-- Lets a role search indexes (reader: the index of that name, or all that there are) or keep all of them up to date (updater), or takes
-- the right back. Called by the owner of schema foh. Returns a row per role and index: what the role may do now, what that exposes, and
-- what the role lacks outside of foh, as statements. The rights are plain ones: \dp and \df+ show them.
CREATE OR REPLACE FUNCTION foh.grant(name text DEFAULT NULL, reader name DEFAULT NULL, updater name DEFAULT NULL, revoke boolean DEFAULT false)
RETURNS TABLE (role name, kind text, index text, may text, exposes text, missing text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    g record;
    citus constant text[] := foh._begin_local();
    i foh.index;
BEGIN
    PERFORM foh._require_owner();
    IF $1 IS NOT NULL THEN
        i := foh._index($1);
        IF $3 IS NOT NULL THEN
            RAISE EXCEPTION 'foh: an updater keeps all indexes up to date: leave out the name %', quote_literal($1) USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    FOR g IN SELECT * FROM (VALUES ('reader', $2), ('updater', $3)) AS v (kind, role) WHERE v.role IS NOT NULL LOOP
        IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = g.role) THEN
            RAISE EXCEPTION 'foh: there is no role %', quote_ident(g.role) USING ERRCODE = 'undefined_object';
        ELSIF g.role = foh._owner() THEN
            RAISE EXCEPTION 'foh: role % owns schema foh and may do everything in it', quote_ident(g.role) USING ERRCODE = 'invalid_grant_operation';
        ELSIF g.kind = 'updater' THEN
            PERFORM foh._grant_updating(g.role, revoke);
            -- A reader keeps what searches need.
            PERFORM foh._grant_reading(x, g.role, false) FROM foh.index x WHERE g.role IN (SELECT foh._readers(x));
            RETURN QUERY SELECT g.role, g.kind, NULL::text, t.may, t.exposes, NULL::text FROM foh._right(g.kind, revoke) t;
            CONTINUE;
        END IF;
        FOR i IN SELECT x.* FROM foh.index x WHERE $1 IS NULL OR x.name = $1 ORDER BY x.name LOOP
            PERFORM foh._grant_reading(i, g.role, revoke);
            RETURN QUERY SELECT g.role, g.kind, i.name, t.may, t.exposes, CASE WHEN NOT revoke THEN foh._missing_rights(i, g.role) END
                         FROM foh._right(g.kind, revoke) t;
        END LOOP;
    END LOOP;
    PERFORM foh._end_local(citus);
END
$function$;
