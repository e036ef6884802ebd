-- Lets a role make indexes on its own tables, or takes it back. Functions that read such a table must belong to that role, so
-- foh's owner must be able to act for it; never the other way round.
CREATE OR REPLACE FUNCTION foh._grant_owning(role name, revoke boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ours constant name := foh._owner();
BEGIN
    IF role = ours THEN
        RETURN;
    ELSIF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = role) THEN
        RAISE EXCEPTION 'foh: role % is a superuser, and would be lent to %', quote_ident(role), quote_ident(ours)
            USING ERRCODE = 'invalid_grant_operation', HINT = 'A superuser may create indexes on its tables without a grant.';
    ELSIF revoke AND EXISTS (SELECT FROM foh.index i WHERE foh._acting_role(i.name) = role) THEN
        RAISE EXCEPTION 'foh: role % owns indexes: %', quote_ident(role),
            (SELECT string_agg(quote_ident(i.name), ', ' ORDER BY i.name) FROM foh.index i WHERE foh._acting_role(i.name) = role)
            USING ERRCODE = 'dependent_objects_still_exist', HINT = 'Drop them first: their triggers need the right.';
    END IF;
    BEGIN
        IF revoke THEN
            PERFORM foh._end_membership(role, ours);
        ELSE
            -- Earlier versions made owners and updaters members of foh's owner.
            PERFORM foh._end_membership(ours, role);
            EXECUTE format('GRANT %I TO %I', role, ours)
                    || CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET TRUE' ELSE '' END;
        END IF;
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'foh: % may not let % act for role %', quote_ident(current_user), quote_ident(ours), quote_ident(role)
            USING ERRCODE = 'insufficient_privilege', DETAIL = SQLERRM,
                  HINT = format('Run this as a superuser, or as a role that has ADMIN OPTION on %I.', role);
    END;
    IF revoke THEN
        PERFORM foh._revoke_shared(role);
    ELSE
        PERFORM foh._grant_shared(role, 'owner');
    END IF;
END
$function$;
