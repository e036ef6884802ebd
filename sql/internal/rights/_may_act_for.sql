-- Raises an error unless the present role can make functions of foh belong to the given role.
CREATE OR REPLACE FUNCTION foh._may_act_for(role name) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF pg_has_role(current_user, role, 'USAGE')
       AND pg_has_role(current_user, role, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'foh: role % may not act for %, whose table the index is on', quote_ident(current_user), quote_ident(role)
        USING ERRCODE = 'insufficient_privilege',
              HINT = CASE WHEN (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = role)
                          THEN 'The table belongs to a superuser: run this as one, or give the table to an ordinary role.'
                          ELSE format('Run SELECT * FROM foh.grant(owner => %L) as a superuser, or as a role that has ADMIN OPTION on %I.', role, role) END;
END
$function$;
