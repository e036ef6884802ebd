-- Lets roles search, write, update or own an index, or takes the right back. name null means: all present indexes that the caller
-- can see. May be called by the owner of the table, by a member of foh's owner, or by a superuser. The right to own is given by a
-- role that can make foh's owner a member of the new owner. Returns a row per role and index: what the role may do now, what that exposes,
-- and what the role lacks outside of foh.
CREATE OR REPLACE FUNCTION foh.grant(name text DEFAULT NULL, reader name DEFAULT NULL, writer name DEFAULT NULL,
                                     updater name DEFAULT NULL, owner name DEFAULT NULL, revoke boolean DEFAULT false)
RETURNS TABLE (role name, kind text, index text, may text, exposes text, missing text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- The policies of foh show each role its own rows. A session that has switched row_security off would get errors instead.
SET row_security = on
AS $function$
#variable_conflict use_column
DECLARE
    g record;
    citus constant text[] := foh._begin_local();
    i foh.index;
BEGIN
    IF $1 IS NOT NULL THEN
        i := foh._index($1);
    END IF;
    FOR g IN SELECT * FROM (VALUES ('reader', $2), ('writer', $3), ('updater', $4), ('owner', $5)) AS v (kind, role) WHERE v.role IS NOT NULL LOOP
        IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = g.role) THEN
            RAISE EXCEPTION 'foh: there is no role %', quote_ident(g.role) USING ERRCODE = 'undefined_object';
        END IF;
        IF g.kind = 'owner' THEN
            PERFORM foh._grant_owning(g.role, revoke);
            RETURN QUERY SELECT g.role, g.kind, NULL::text, t.may, t.exposes, NULL::text FROM foh._right(g.kind, revoke) t;
            CONTINUE;
        END IF;
        FOR i IN SELECT x.* FROM foh.index x WHERE $1 IS NULL OR x.name = $1 ORDER BY x.name LOOP
            IF g.kind <> 'writer' THEN
                PERFORM foh._grant_role(i, g.role, g.kind, revoke);
            END IF;
            IF g.kind = 'reader' THEN
                PERFORM foh._grant_on_nodes(i, g.role, revoke);
            END IF;
            RETURN QUERY SELECT g.role, g.kind, i.name, t.may, t.exposes, CASE WHEN NOT revoke THEN foh._missing_rights(i, g.role, g.kind) END
                         FROM foh._right(g.kind, revoke) t;
        END LOOP;
    END LOOP;
    PERFORM foh._end_local(citus);
END
$function$;
